// Certificates for workers. The bearer of an enrolment bundle may ask for one of a worker that is not alive, within the
// bundle's quota; a worker for its own, to renew it. The reactor decides, and its decision is on disk before anything is signed.
import { createHash } from "node:crypto";
import type { ServiceImpl } from "@connectrpc/connect";
import { failure } from "../../base/errors.ts";
import type { WorkerId } from "../../base/ids.ts";
import { parseUlidBytes } from "../../base/ids.ts";
import type { EnrolmentService } from "../../gen/rollout/v1/enrolment_pb.ts";
import type { Logger } from "../../observe/log.ts";
import type { Peer } from "../../transport/caller.ts";
import { peerOf, requireWorkerItself } from "../../transport/caller.ts";
import type { SigningOutcome } from "../../transport/tls/authority.ts";
import { describeIdentity } from "../../transport/tls/identity.ts";
import { LIFETIMES } from "../../transport/tls/lifetimes.ts";
import type { JoiningBundle } from "../turn/input.ts";
import type { Leader } from "./leader.ts";
import { ask } from "./leader.ts";

/** Signs for the run's CA. Absent when the certificates of this run come from elsewhere. */
export type SignWorkerRequest = (csr: Uint8Array, workerId: WorkerId) => Promise<SigningOutcome>;

export interface EnrolmentOptions {
  readonly sign: SignWorkerRequest | undefined;
  /** Whether the bundle of this id is the coordinator's own, which it renews by itself. */
  readonly isOwnBundle: (id: string) => boolean;
  readonly log: Logger;
}

const AUDITED_MAX = 1_000;

export function enrolmentService(
  leader: Leader,
  { sign, isOwnBundle, log }: EnrolmentOptions,
): ServiceImpl<typeof EnrolmentService> {
  const { address, envelope: coordinator } = leader;
  const refuse = (reason: string): never => {
    throw failure("enrolment_refused", { address, reason });
  };
  const audited = new Set<string>();
  // Once for each, and a stranger with a bundle cannot fill the log.
  const audit = (about: Readonly<Record<"worker_id" | "bearer" | "reason", string>>): void => {
    const line = Object.values(about).join();
    if (audited.has(line) || audited.size >= AUDITED_MAX) return;
    audited.add(line);
    log.warn("worker certificate refused", about);
  };
  return {
    async signWorkerCertificate({ workerId: bytes, csr }, context) {
      const workerId = parseUlidBytes<WorkerId>(bytes) ?? refuse("worker_id is not 16 bytes");
      const peer = peerOf(context);
      const { identity: caller } = peer;
      if (caller.role === "worker") requireWorkerItself(context, workerId);
      if (sign === undefined) return refuse("the certificates of this run are not made by its coordinator");
      const bundle = caller.role === "worker" ? undefined : joiningBundle(peer, isOwnBundle(caller.id), csr);
      const verdict = await ask(leader, { kind: "enrol", workerId, bundle });
      if (verdict.kind === "alive") throw failure("worker_alive", { worker: workerId });
      if (verdict.kind === "revoked") throw failure("certificate_revoked", { who: verdict.who });
      if (verdict.kind === "refused") {
        audit({ worker_id: workerId, bearer: caller.id, reason: verdict.reason });
        return refuse(verdict.reason);
      }
      if (verdict.kind === "exhausted")
        return refuse(`${describeIdentity(caller)} has let in ${verdict.quota} workers, its enrolment.quota`);
      const outcome = await sign(csr, workerId);
      if (outcome.kind === "refused") return refuse(outcome.reason);
      log.info("worker certificate signed", { worker_id: workerId, for: caller.role, bearer: caller.id });
      return { coordinator, certificate: outcome.certificate, validForMs: BigInt(outcome.validForMs) };
    },
  };
}

/** The share of a bundle's lifetime that is left when its end is warned of. */
const WARN_BELOW = 1 / 5;

function joiningBundle(
  { identity, notBeforeMs, notAfterMs }: Peer,
  isRenewed: boolean,
  csr: Uint8Array,
): JoiningBundle {
  const lifetimeMs = Math.max(0, notAfterMs - notBeforeMs - LIFETIMES.backdateMs);
  const warnFromWallMs = isRenewed ? notAfterMs : notAfterMs - lifetimeMs * WARN_BELOW;
  const request = createHash("sha256").update(csr).digest("hex");
  return { id: identity.id, endsAtWallMs: notAfterMs, warnFromWallMs, request };
}
