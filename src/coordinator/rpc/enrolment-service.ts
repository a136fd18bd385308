// Certificates for workers. The bearer of an enrolment bundle may ask for any worker's; a worker for its own, to renew it.
import type { ServiceImpl } from "@connectrpc/connect";
import { failure } from "../../base/errors.ts";
import type { WorkerId } from "../../base/ids.ts";
import { parseUlidBytes } from "../../base/ids.ts";
import type { EnrolmentService } from "../../gen/rollout/v1/enrolment_pb.ts";
import type { Logger } from "../../observe/log.ts";
import { callerOf, requireWorkerItself } from "../../transport/caller.ts";
import type { SigningOutcome } from "../../transport/tls/authority.ts";
import type { Leader } from "./leader.ts";

/** Signs for the run's CA. Absent when the certificates of this run come from elsewhere. */
export type SignWorkerRequest = (csr: Uint8Array, workerId: WorkerId) => Promise<SigningOutcome>;

export interface EnrolmentOptions {
  readonly sign: SignWorkerRequest | undefined;
  readonly log: Logger;
}

export function enrolmentService(
  leader: Leader,
  { sign, log }: EnrolmentOptions,
): ServiceImpl<typeof EnrolmentService> {
  const { address, envelope: coordinator } = leader;
  const refuse = (reason: string): never => {
    throw failure("enrolment_refused", { address, reason });
  };
  return {
    async signWorkerCertificate({ workerId: bytes, csr }, context) {
      const workerId = parseUlidBytes<WorkerId>(bytes) ?? refuse("worker_id is not 16 bytes");
      const caller = callerOf(context);
      if (caller.role === "worker") requireWorkerItself(context, workerId);
      if (sign === undefined) return refuse("the certificates of this run are not made by its coordinator");
      const outcome = await sign(csr, workerId);
      if (outcome.kind === "refused") return refuse(outcome.reason);
      log.info("worker certificate signed", { worker_id: workerId, for: caller.role, bearer: caller.id });
      return { coordinator, certificate: outcome.certificate, validForMs: BigInt(outcome.validForMs) };
    },
  };
}
