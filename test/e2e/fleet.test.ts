// A fleet with real processes: workers come with the backlog, one that is killed is replaced, a coordinator that is killed finds its own again, and
// nobody is left at the end.
import { readFile, writeFile } from "node:fs/promises";
import { expect } from "chai";
import { withCluster } from "../support/cluster.ts";
import type { Cluster } from "../support/cluster.ts";
import { eventually } from "../support/eventually.ts";
import { GATED_MANIFEST } from "./gated-items.ts";
import type { GatedItem } from "./gated-items.ts";
import { CONFIG, configureFleet, endWorkers, isRunning, lead, started, status } from "./local-fleet.ts";

/** Beside those that are looked at. */
const FURTHER = ["starting", "queued", "machine_hours", "cost", "reason", "min", "max"];

/** The commands about a fleet of two workers, which leave it as it was. */
async function expectCommands(cluster: Cluster, allocation: string): Promise<void> {
  const json = async (...words: string[]): Promise<unknown> =>
    JSON.parse((await cluster.run("fleet", ...words, "--json")).stdout);
  const here = { name: "here", provider: "exec", state: "active", want: 2, joined: 2, ending: 0 };
  const [status, list, explained, check, logs, unknown, worker, doctor] = await Promise.all([
    cluster.run("status"),
    json("list"),
    cluster.run("fleet", "explain", "here"),
    json("check", "here"),
    json("logs", allocation),
    cluster.run("fleet", "resume", "there"),
    cluster.run("explain", allocation),
    cluster.run("doctor", "--config", CONFIG),
  ]);
  expect(status.stdout).to.match(/ {2}fleet here: active, wants 2, 2 joined/);
  expect(worker.stdout).to.match(/It is an allocation of fleet here: joined, asked for /);
  expect(doctor.stdout)
    .to.match(/ok +fleet +here: its program is .*local/)
    .and.match(/warn +fleet +workers of here on other machines/);
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
  const text = await readFile(cluster.file(CONFIG), "utf8");
  await writeFile(cluster.file(CONFIG), text.replace("max = 2", "max = 2\nmin = 1"));
  next.send("SIGHUP");
  await eventually("changed settings", async () => (await status(cluster)).fleets[0]?.min === 1);
  await writeFile(after ?? "", "");
  await next.event("run_completed", { done: 8, failed: 0 });
  for (const { allocation } of [other, replaced]) await next.event("allocation_ended", { allocation });
  expect((await status(cluster)).fleets[0]).to.include({ joined: 0, starting: 0, queued: 0, ending: 0 });
  const workers = await started(cluster);
  expect([...workers.keys()]).to.have.members([lost, other.allocation, replaced.allocation]);
  for (const [id, { pid, log }] of workers) {
    expect(isRunning(pid), id).to.equal(false);
    // A worker that was killed may have left a result, which the next one has delivered in its name.
    const own = log.split("\n").filter((line) => line.includes("worker starts") && line.includes(id));
    expect(own, id).to.have.length(1);
  }
  expect(await next.stop()).to.deep.equal({ code: 0, signal: null });
}
