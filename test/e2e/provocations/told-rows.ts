// Rows that a coordinator tells, which is made to say them: one listener and one process of commands for all of them, one after the other.
import { spawn } from "node:child_process";
import { once } from "node:events";
import { createInterface } from "node:readline";
import { fileURLToPath } from "node:url";
import { failure } from "../../../src/base/errors.ts";
import type { RolloutError } from "../../../src/base/errors.ts";
import type { Cluster } from "../../support/cluster.ts";
import { environmentFor } from "../../support/rollout-process.ts";
import type { EndedCommand } from "./commands-program.ts";
import { startFakeCoordinator } from "./fake-coordinator.ts";
import { withOperator } from "./operator-files.ts";

const PROGRAM = fileURLToPath(new URL("./commands-program.ts", import.meta.url));

/** A command, with `--json`, to which the coordinator says this row. */
type Tell = (error: RolloutError) => Promise<EndedCommand>;

export async function tellingRows(cluster: Cluster, use: (tell: Tell) => Promise<void>): Promise<void> {
  await withOperator(cluster);
  let row = failure("overloaded", { what: "nothing yet", limit: 0 });
  const server = await startFakeCoordinator(cluster, () => row);
  const child = spawn(process.execPath, [PROGRAM], {
    cwd: cluster.directory,
    env: environmentFor({ ROLLOUT_LOG_LEVEL: "error" }),
    stdio: ["pipe", "pipe", "inherit"],
  });
  const answers = createInterface({ input: child.stdout });
  const args = ["worker", "list", "--coordinator-addr", server.address, "--json"];
  try {
    await use(async (error) => {
      row = error;
      child.stdin.write(`${JSON.stringify(args)}\n`);
      const [line] = (await once(answers, "line")) as [string];
      return JSON.parse(line) as EndedCommand;
    });
  } finally {
    child.stdin.end();
    await once(child, "close");
    await server.close(0);
  }
}
