// A coordinator that refuses: the real listener under the run's own CA, with an answer of its own to every call. For the
// errors that only a coordinator of another version, or one at its limits, would give.
import { systemClock } from "../../src/base/clock.ts";
import type { RolloutError } from "../../src/base/errors.ts";
import { RunService } from "../../src/gen/rollout/v1/run_pb.ts";
import { silentLogger } from "../../src/observe/log.ts";
import type { AccessTable } from "../../src/transport/access.ts";
import { startServer } from "../../src/transport/server.ts";
import type { RunningServer } from "../../src/transport/server.ts";
import { newIdentity } from "./certificates.ts";
import type { Cluster } from "./cluster.ts";
import { authorityIn } from "./real-authority.ts";

/** Listens on a free port. The cluster's CA has to be there; `error` undefined: nobody may call anything. */
export async function startFakeCoordinator(cluster: Cluster, error?: RolloutError): Promise<RunningServer> {
  const authority = await authorityIn(cluster.file("data/tls"));
  const identity = newIdentity(cluster.runId, "coordinator");
  const access: AccessTable =
    error === undefined ? {} : { "rollout.v1.RunService/ListWorkers": ["operator"] };
  return startServer({
    listenAddr: "127.0.0.1:0",
    credentials: await authority.issue({ identity, hosts: ["127.0.0.1"] }),
    routes: (router) =>
      void router.service(RunService, {
        listWorkers: () => {
          throw error ?? new Error("nobody may come here");
        },
      }),
    access,
    log: silentLogger,
    audit: () => undefined,
    clock: systemClock,
  });
}
