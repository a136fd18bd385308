// A coordinator that refuses: the real listener under the run's own CA, with an answer of its own to every call. For the
// errors that only a coordinator of another version, or one at its limits, would give.
import type { RolloutError } from "../../../src/base/errors.ts";
import { OperatorService } from "../../../src/gen/rollout/v1/run_pb.ts";
import type { RunningServer } from "../../../src/transport/server.ts";
import type { Identity } from "../../../src/transport/tls/identity.ts";
import type { Cluster } from "../../support/cluster.ts";
import { authorityIn } from "../../support/real-authority.ts";
import { startTestServer } from "../../support/test-server.ts";

/** Listens on a free port. The cluster's CA has to be there; Without an error nobody may call anything. */
export async function startFakeCoordinator(
  cluster: Cluster,
  error?: () => RolloutError,
): Promise<RunningServer> {
  const authority = await authorityIn(cluster.file("data/tls"));
  const ca = { issue: (identity: Identity) => authority.issue({ identity, hosts: ["127.0.0.1"] }) };
  const { runId } = cluster;
  return startTestServer(
    { runId, ca },
    {
      access: error === undefined ? {} : { "rollout.v1.OperatorService/ListWorkers": ["operator"] },
      routes: (router) =>
        void router.service(OperatorService, {
          listWorkers: () => {
            throw error?.() ?? new Error("nobody may come here");
          },
        }),
    },
  );
}
