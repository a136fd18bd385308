// A fleet with real processes: workers come with the backlog, one that is killed is replaced, a coordinator that is killed finds its own again, and
// nobody is left at the end.
import { readFile, readdir, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { expect } from "chai";
import type { RunStatus } from "../../src/client/run-status.ts";
import { withCluster } from "../support/cluster.ts";
import type { Cluster } from "../support/cluster.ts";
import { eventually } from "../support/eventually.ts";
import { GATED_MANIFEST, writeGatedFunction } from "./gated-items.ts";
import type { GatedItem } from "./gated-items.ts";
import { restartableAddress } from "../support/listeners.ts";
import type { RolloutProcess } from "../support/rollout-process.ts";

const LOCAL = fileURLToPath(new URL("../../examples/fleet/local", import.meta.url));
const PROGRAM = fileURLToPath(new URL("../../bin/run.js", import.meta.url));
const CONFIG = "fleet.toml";
/** Beside those that are looked at. */
const FURTHER = ["starting", "queued", "machine_hours", "cost", "reason", "min", "max"];
const env = { ROLLOUT_PROGRAM: `${process.execPath} ${PROGRAM}` };

/** A coordinator with a fleet of two workers at most. */
async function lead(cluster: Cluster): Promise<RolloutProcess> {
  return cluster.startCoordinator({ args: ["--config", CONFIG], env });
}

async function configureFleet(cluster: Cluster): Promise<void> {
  await cluster.configure({ "transport.listen_addr": await restartableAddress() });
  const fleet = [
    ...["[[fleet]]", 'name = "here"', 'provider = "exec"', `command = ["${LOCAL}"]`, "max = 2"],
    ...['poll_interval = "200ms"', 'idle_timeout = "500ms"', 'finish_within = "0s"', ""],
  ].join("\n");
  await writeGatedFunction(cluster.directory);
  await writeFile(cluster.file(CONFIG), `${await readFile(cluster.file("rollout.toml"), "utf8")}\n${fleet}`);
}

/** Workers that the provider has started: by allocation, the process and its log. */
async function started(
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

function status(cluster: Cluster): Promise<RunStatus> {
  return cluster.ask((client) => client.status());
}

function isRunning(pid: number): boolean {
  try {
    process.kill(pid, 0);
    return true;
  } catch {
    return false;
  }
}

/** They are in process groups of their own, which no test's end reaches. */
async function endWorkers(cluster: Cluster): Promise<void> {
  const workers = await started(cluster).catch(() => undefined);
  for (const { pid } of workers?.values() ?? []) if (isRunning(pid)) process.kill(pid, "SIGKILL");
}

/** The commands about a fleet of two workers, which leave it as it was. */
async function expectCommands(cluster: Cluster, allocation: string): Promise<void> {
  const json = async (...words: string[]): Promise<unknown> =>
    JSON.parse((await cluster.run("fleet", ...words, "--json")).stdout);
  const here = { name: "here", provider: "exec", state: "active", want: 2, joined: 2, ending: 0 };
  const [status, list, explained, check, logs, unknown] = await Promise.all([
    cluster.run("status"),
    json("list"),
    cluster.run("fleet", "explain", "here"),
    json("check", "here"),
    json("logs", allocation),
    cluster.run("fleet", "resume", "there"),
  ]);
  expect(status.stdout).to.match(/ {2}fleet here: active, wants 2, 2 joined/);
  expect(list)
    .to.include(here)
    .and.to.have.keys(...Object.keys(here), ...FURTHER);
  expect(explained.stdout).to.match(
    /it wants 2 \(at least 0, at most 2\), each with 1 slot\n.*a worker joins \d+ ms after/s,
  );
  expect(check).to.include({ fleet: "here", ready: true });
  expect(logs).to.have.property("log").that.includes("worker starts");
  expect([unknown.code, unknown.stderr]).to.satisfy(
    ([code, stderr]: [number, string]) => code !== 0 && stderr.includes("its fleets are: here"),
  );
  expect(await json("pause", "here", "--reason", "at night")).to.include({
    state: "paused",
    reason: "at night",
  });
  expect(await json("scale", "here", "--max", "3")).to.include({ state: "paused", max: 3 });
  expect(await json("scale", "here")).to.include({ max: 2 });
  expect(await json("resume", "here")).to.include({ state: "active" });
}

describe("a fleet", () => {
  it("brings workers with the backlog, replaces one, outlives its coordinator, and leaves nobody", async () => {
    const quick = {
      "worker.plugins": [GATED_MANIFEST],
      "liveness.worker_self_fence_timeout": "2s",
      "liveness.coordinator_failure_timeout": "3s",
    };
    await withCluster(quick, async (cluster) => {
      try {
        await story(cluster);
      } finally {
        await endWorkers(cluster);
      }
    });
  });
});

async function story(cluster: Cluster): Promise<void> {
  await configureFleet(cluster);
  const first = await lead(cluster);
  const [before, after] = ["before", "after"].map((name) => cluster.file(name));
  const items: GatedItem[] = Array.from({ length: 8 }, (_, n) => ({
    n,
    gate: (n < 4 ? before : after) ?? "",
  }));
  await cluster.submit(items, "--seal");
  const lost = (await first.event("allocation_joined")).allocation;
  const other = await eventually("a second worker", () =>
    first.seen("allocation_joined").find(({ allocation }) => allocation !== lost),
  );
  // Each of both has worked: one that has not would count as one that has not started.
  await eventually("both execute", async () => (await status(cluster)).executing === 2);
  await writeFile(before ?? "", "");
  await eventually("some results", async () => (await status(cluster)).done === 4);
  const ended = first.event("allocation_ended", { allocation: lost });
  process.kill((await started(cluster)).get(lost)?.pid ?? 0, "SIGKILL");
  expect(await ended).to.include({ outcome: "lost", cause: "" });
  const replaced = await eventually("a worker in its place", () =>
    first
      .seen("allocation_launched")
      .find(({ allocation }) => ![lost, other.allocation].includes(allocation)),
  );

  // With one that has worked for a while, and one that was started a moment ago.
  await eventually("its process", async () => (await started(cluster)).has(replaced.allocation));
  await first.kill();
  const next = await lead(cluster);
  await eventually("both are there", async () => (await status(cluster)).fleets[0]?.joined === 2);
  expect(next.seen("allocation_launched")).to.deep.equal([]);
  expect(next.seen("allocation_orphan")).to.deep.equal([]);

  await expectCommands(cluster, replaced.allocation);
  await writeFile(after ?? "", "");
  await next.event("run_completed", { done: 8, failed: 0 });
  for (const { allocation } of [other, replaced]) await next.event("allocation_ended", { allocation });
  expect((await status(cluster)).fleets[0]).to.include({ joined: 0, starting: 0, queued: 0, ending: 0 });
  const workers = await started(cluster);
  expect([...workers.keys()]).to.have.members([lost, other.allocation, replaced.allocation]);
  for (const [id, { pid, log }] of workers) {
    expect(isRunning(pid), id).to.equal(false);
    expect(log.split("worker starts").length - 1, id).to.equal(1);
  }
  expect(await next.stop()).to.deep.equal({ code: 0, signal: null });
}
