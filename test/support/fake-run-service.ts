// The service of operators with answers of a test's own, behind the real listener and mutual TLS: what a client makes of
// answers that no coordinator would give at will. It can go away and come back at the same address.
import type { ServiceImpl } from "@connectrpc/connect";
import type { Transport } from "@connectrpc/connect";
import { systemClock } from "../../src/base/clock.ts";
import { RunService } from "../../src/gen/rollout/v1/run_pb.ts";
import { silentLogger } from "../../src/observe/log.ts";
import type { AccessTable } from "../../src/transport/access.ts";
import { openClient } from "../../src/transport/client.ts";
import { startServer } from "../../src/transport/server.ts";
import type { RunningServer } from "../../src/transport/server.ts";
import { newIdentity, newRunId, TestAuthority } from "./certificates.ts";

export interface FakeRunService {
  /** As an operator. */
  readonly transport: Transport;
  goAway(): Promise<void>;
  comeBack(): Promise<void>;
  close(): Promise<void>;
}

export async function startFakeRunService(
  handlers: Partial<ServiceImpl<typeof RunService>>,
): Promise<FakeRunService> {
  const runId = newRunId();
  const ca = await TestAuthority.make();
  const credentials = await ca.issue(newIdentity(runId, "coordinator"));
  const methods = Object.values(RunService.method).map(({ name }) => `rollout.v1.RunService/${name}`);
  const access: AccessTable = Object.fromEntries(methods.map((name) => [name, ["operator"] as const]));
  const listen = (listenAddr: string): Promise<RunningServer> =>
    startServer({
      listenAddr,
      credentials,
      clock: systemClock,
      log: silentLogger,
      access,
      audit: () => undefined,
      routes: (router) => void router.service(RunService, handlers),
    });
  let server = await listen("127.0.0.1:0");
  const { address } = server;
  const client = openClient({
    address,
    runId,
    credentials: await ca.issue(newIdentity(runId, "operator")),
    clock: systemClock,
    log: silentLogger,
  });
  return {
    transport: client.transport,
    goAway: () => server.close(0),
    comeBack: async () => void (server = await listen(address)),
    close: async () => {
      client.close();
      await server.close(0);
    },
  };
}
