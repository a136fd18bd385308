// A fleet of the local example: its configuration, and the processes that it has started.
import { readFile, readdir, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import type { RunStatus } from "../../src/client/run-status.ts";
import type { Cluster } from "../support/cluster.ts";
import { restartableAddress } from "../support/listeners.ts";
import type { RolloutProcess } from "../support/rollout-process.ts";
import { writeGatedFunction } from "./gated-items.ts";

const LOCAL = fileURLToPath(new URL("../../examples/fleet/local", import.meta.url));
const PROGRAM = fileURLToPath(new URL("../../bin/run.js", import.meta.url));
export const CONFIG = "fleet.toml";
const env = { ROLLOUT_PROGRAM: `${process.execPath} ${PROGRAM}` };

/** A coordinator with a fleet of two workers at most. */
export async function lead(cluster: Cluster): Promise<RolloutProcess> {
  return cluster.startCoordinator({ args: ["--config", CONFIG], env });
}

/** `more`: lines of its table. */
export async function configureFleet(cluster: Cluster, more: readonly string[] = []): Promise<void> {
  await cluster.configure({ "transport.listen_addr": await restartableAddress() });
  const fleet = [
    ...["[[fleet]]", 'name = "here"', 'provider = "exec"', `command = ["${LOCAL}"]`, "max = 2"],
    ...['poll_interval = "200ms"', 'idle_timeout = "500ms"', 'finish_within = "0s"', ...more, ""],
  ].join("\n");
  await writeGatedFunction(cluster.directory);
  await writeFile(cluster.file(CONFIG), `${await readFile(cluster.file("rollout.toml"), "utf8")}\n${fleet}`);
}

/** Workers that the provider has started: by allocation, the process and its log. */
export async function started(
  cluster: Cluster,
): Promise<Map<string, { readonly pid: number; readonly log: string }>> {
  const [all = "none"] = await readdir(cluster.file("data/fleet"));
  const directory = cluster.file(join("data/fleet", all));
  const found = new Map<string, { pid: number; log: string }>();
  for (const id of await readdir(directory)) {
    const [pid, log] = await Promise.all(
      ["pid", "log"].map((name) => readFile(join(directory, id, name), "utf8").catch(() => "")),
    );
    // One without is about to be started.
    if (pid !== "") found.set(id, { pid: Number.parseInt(pid ?? "", 10), log: log ?? "" });
  }
  return found;
}

export function status(cluster: Cluster): Promise<RunStatus> {
  return cluster.ask((client) => client.status());
}

export function isRunning(pid: number): boolean {
  try {
    process.kill(pid, 0);
    return true;
  } catch {
    return false;
  }
}

/** They are in process groups of their own, which no test's end reaches. */
export async function endWorkers(cluster: Cluster): Promise<void> {
  const workers = await started(cluster).catch(() => undefined);
  for (const { pid } of workers?.values() ?? []) if (isRunning(pid)) process.kill(pid, "SIGKILL");
}
