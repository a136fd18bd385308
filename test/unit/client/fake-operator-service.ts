// The service of operators with answers of a test's own, behind the real listener and mutual TLS: what a client makes of
// answers that no coordinator would give at will. It can go away and come back at the same address.
import type { ServiceImpl, Transport } from "@connectrpc/connect";
import { KeyService } from "../../../src/gen/rollout/v1/keys_pb.ts";
import { OperatorService } from "../../../src/gen/rollout/v1/run_pb.ts";
import type { AccessTable } from "../../../src/transport/caller.ts";
import { methodName } from "../../../src/transport/errors.ts";
import type { RunningServer } from "../../../src/transport/server.ts";
import { newRunId, TestAuthority } from "../../support/certificates.ts";
import { restartableAddress } from "../../support/listeners.ts";
import { startTestServer } from "../../support/test-server.ts";
import { workerClient } from "../../support/worker-client.ts";

export interface FakeOperatorService {
  /** As an operator. */
  readonly transport: Transport;
  goAway(): Promise<void>;
  comeBack(): Promise<void>;
  close(): Promise<void>;
}

export async function startFakeOperatorService(
  handlers: Partial<ServiceImpl<typeof OperatorService>>,
  ofKeys: Partial<ServiceImpl<typeof KeyService>> = {},
): Promise<FakeOperatorService> {
  const run = { runId: newRunId(), ca: await TestAuthority.make() };
  const methods = [OperatorService, KeyService].flatMap((service) => service.methods).map(methodName);
  const access: AccessTable = Object.fromEntries(methods.map((name) => [name, ["operator"] as const]));
  const listen = (listenAddr: string): Promise<RunningServer> =>
    startTestServer(run, {
      listenAddr,
      access,
      routes: (router) => void router.service(OperatorService, handlers).service(KeyService, ofKeys),
    });
  let server = await listen(await restartableAddress());
  const { address } = server;
  const operator = await workerClient({ ...run, server }, { role: "operator" });
  return {
    transport: operator.transport,
    goAway: () => server.close(0),
    comeBack: async () => void (server = await listen(address)),
    close: async () => {
      operator.close();
      await server.close(0);
    },
  };
}
