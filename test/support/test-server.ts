// The real listener of a coordinator, on a free port of loopback, with what a test puts behind it.
import { systemClock } from "../../src/base/clock.ts";
import type { RunId } from "../../src/base/ids.ts";
import { silentLogger } from "../../src/observe/log.ts";
import { startServer } from "../../src/transport/server.ts";
import type { RunningServer, ServerOptions } from "../../src/transport/server.ts";
import type { Credentials, Identity } from "../../src/transport/tls/identity.ts";
import { newIdentity } from "./certificates.ts";
import { restartableAddress } from "./listeners.ts";

/** A run, and its CA. */
export interface TestRun {
  readonly runId: RunId;
  readonly ca: { issue(identity: Identity): Promise<Credentials> };
}

/** It says nothing, unless `options` differ. */
export async function startTestServer(
  { runId, ca }: TestRun,
  options: Pick<ServerOptions, "routes" | "access"> & Partial<ServerOptions>,
): Promise<RunningServer> {
  return startServer({
    listenAddr: await restartableAddress(),
    credentials: await ca.issue(newIdentity(runId, "coordinator")),
    clock: systemClock,
    log: silentLogger,
    audit: () => undefined,
    ...options,
  });
}
