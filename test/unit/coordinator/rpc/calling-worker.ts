// The identity of a worker that somebody else has made: a certificate of the test's CA, a transport of Connect's own, answers that get lost.
import { Code, ConnectError } from "@connectrpc/connect";
import type { Interceptor, Transport } from "@connectrpc/connect";
import { createConnectTransport } from "@connectrpc/connect-node";
import { ulidToBytes } from "../../../../src/base/ids.ts";
import { newWorkerId } from "../../../support/certificates.ts";
import { incarnationId } from "../../../support/world-worker.ts";
import type { ListeningCoordinator } from "../../../support/test-coordinator.ts";

export interface CallingIdentity {
  readonly transport: Transport;
  readonly worker: { readonly workerId: Uint8Array; readonly incarnation: Uint8Array };
}

/** A transport of Connect's own. The last of so many calls is carried out, and its answer does not arrive. */
export async function callingIdentity(
  { ca, runId, server }: Pick<ListeningCoordinator, "ca" | "runId" | "server">,
  loseEveryNth = Infinity,
): Promise<CallingIdentity> {
  const id = newWorkerId();
  const issued = await ca.issue({ runId, role: "worker", id });
  const { certificatePem: cert, keyPem: key, caPem } = issued;
  let calls = 0;
  const loseAnswers: Interceptor = (next) => async (request) => {
    const answer = await next(request);
    if (++calls % loseEveryNth === 0) throw new ConnectError("the answer was lost", Code.Unavailable);
    return answer;
  };
  const transport = createConnectTransport({
    baseUrl: `https://${server.address}`,
    httpVersion: "2",
    nodeOptions: { cert, key, ca: caPem, checkServerIdentity: () => undefined },
    interceptors: [loseAnswers],
  });
  const worker = { workerId: ulidToBytes(id), incarnation: ulidToBytes(incarnationId(1)) };
  return { transport, worker };
}
