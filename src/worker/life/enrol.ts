// The worker's certificate: asked for with the enrolment bundle, kept in the worker's own store, renewed with itself long
// before it ends. The private key is made here and never leaves. A certificate is taken from a leader that this worker would
// obey, and from no other.
import type { Clock } from "../../base/clock.ts";
import type { WorkerId } from "../../base/ids.ts";
import { ulidToBytes } from "../../base/ids.ts";
import type { EnrolmentService } from "../../gen/rollout/v1/enrolment_pb.ts";
import type { Client } from "@connectrpc/connect";
import { makeCertificateRequest } from "../../transport/tls/certificate-request.ts";
import { pemBlock } from "../../transport/tls/certificate-making.ts";
import type { Admission, EpochGuard } from "../link/epoch-guard.ts";
import type { OwnCredentials } from "./worker-records.ts";

/** The share of its lifetime after which a certificate is renewed: days of trouble fit into the rest. */
const RENEW_AFTER = 0.5;

export interface SigningRequest {
  readonly client: Pick<Client<typeof EnrolmentService>, "signWorkerCertificate">;
  readonly workerId: WorkerId;
  readonly caPem: string;
  readonly guard: Pick<EpochGuard, "admit">;
  readonly clock: Clock;
  /** Ends the call: it then fails as `interrupted`. */
  readonly signal: AbortSignal;
}

export type SigningAnswer =
  | { readonly kind: "signed"; readonly own: OwnCredentials }
  | Extract<Admission, { readonly kind: "refused" }>;

/** As a coordinator of 0.1 answers. */
const NAMES_NO_EPOCH =
  "it names no epoch, as rollout 0.1 does: the coordinator has to be upgraded before its workers";

/** Throws what the call throws: enrolment_refused, permission_denied, or that the coordinator is out of reach. */
export async function requestCertificate({
  client,
  workerId,
  caPem,
  guard,
  clock,
  signal,
}: SigningRequest): Promise<SigningAnswer> {
  const { csr, keyPem } = await makeCertificateRequest();
  const answer = await client.signWorkerCertificate({ workerId: ulidToBytes(workerId), csr }, { signal });
  if (answer.coordinator === undefined) return { kind: "refused", reason: NAMES_NO_EPOCH };
  const admission = await guard.admit(answer.coordinator);
  if (admission.kind === "refused") return admission;
  const own = {
    credentials: { certificatePem: pemBlock("CERTIFICATE", answer.certificate), keyPem, caPem },
    renewAtWallMs: clock.wallMs() + Number(answer.validForMs) * RENEW_AFTER,
  };
  return { kind: "signed", own };
}
