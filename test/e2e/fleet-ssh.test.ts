// A fleet of hosts by ssh with real processes: workers come over a real sshd on loopback, one that is killed is replaced, and nobody is left.
import { readdirSync, readFileSync } from "node:fs";
import { readFile, writeFile } from "node:fs/promises";
import { basename, join } from "node:path";
import { fileURLToPath } from "node:url";
import { expect } from "chai";
import type { RunStatus } from "../../src/client/run-status.ts";
import { useSshd } from "../contract/ssh-rig.ts";
import { QUICK, withCluster } from "../support/cluster.ts";
import type { Cluster } from "../support/cluster.ts";
import { eventually } from "../support/eventually.ts";
import { restartableAddress } from "../support/listeners.ts";
import type { RolloutProcess } from "../support/rollout-process.ts";
import { gatedItems, GATED_MANIFEST, writeGatedFunction } from "./gated-items.ts";

const PROGRAM = fileURLToPath(new URL("../../bin/run.js", import.meta.url));
const CONFIG = "fleet.toml";

/** A coordinator with a fleet of two hosts, whose workers start in the cluster's directory. */
async function lead(cluster: Cluster, sshConfig: string): Promise<RolloutProcess> {
  await cluster.configure({ "transport.listen_addr": await restartableAddress() });
  const fleet = [
    ...["[[fleet]]", 'name = "lab"', 'provider = "ssh"', 'hosts = ["a", "b"]'],
    ...[`ssh = ["ssh", "-F", "${sshConfig}"]`, `program = "'${process.execPath}' '${PROGRAM}'"`],
    ...[`dir = "${cluster.directory}"`, 'poll_interval = "300ms"', 'idle_timeout = "500ms"'],
    ...['finish_within = "0s"', "tunnel = true", ""],
  ].join("\n");
  await writeGatedFunction(cluster.directory);
  await writeFile(cluster.file(CONFIG), `${await readFile(cluster.file("rollout.toml"), "utf8")}\n${fleet}`);
  return cluster.startCoordinator({ args: ["--config", CONFIG] });
}

/** Paths that hosts have of a fleet, below its directories there. */
function onHosts(cluster: Cluster): string[] {
  try {
    return readdirSync(cluster.file(".rollout/fleet"), { recursive: true, encoding: "utf8" });
  } catch {
    return [];
  }
}

function readOnHost(cluster: Cluster, allocation: string, name: string): string {
  const path = onHosts(cluster).find((each) => each.endsWith(join(allocation, name))) ?? "";
  return readFileSync(cluster.file(join(".rollout/fleet", path)), "utf8");
}

function pidOf(cluster: Cluster, allocation: string): number {
  return Number.parseInt(readOnHost(cluster, allocation, "worker"), 10);
}

/** They are in sessions of their own, which no test's end reaches. */
function endWorkers(cluster: Cluster): void {
  for (const path of onHosts(cluster).filter((each) => each.endsWith("/worker"))) {
    const pid = Number.parseInt(readFileSync(cluster.file(join(".rollout/fleet", path)), "utf8"), 10);
    if (environmentOf(pid).includes(cluster.directory)) process.kill(pid, "SIGKILL");
  }
}

/** Command line and environment; empty when there is no such process. */
function environmentOf(pid: number): string {
  try {
    return ["cmdline", "environ"].map((name) => readFileSync(`/proc/${pid}/${name}`, "utf8")).join("\0");
  } catch {
    return "";
  }
}

function status(cluster: Cluster): Promise<RunStatus> {
  return cluster.ask((client) => client.status());
}

describe("a fleet of hosts by ssh", () => {
  const sshd = useSshd(["a", "b"]);

  it("brings workers to hosts, replaces one that was killed, and leaves nothing there", async () => {
    await withCluster({ ...QUICK, "worker.plugins": [GATED_MANIFEST] }, async (cluster) => {
      try {
        await story(cluster, await lead(cluster, sshd().config));
      } finally {
        endWorkers(cluster);
      }
    });
  });
});

async function story(cluster: Cluster, first: RolloutProcess): Promise<void> {
  const [before, after] = ["before", "after"].map((name) => cluster.file(name)) as [string, string];
  await cluster.submit(
    [...gatedItems(0, 4, { gate: before }), ...gatedItems(4, 8, { gate: after })],
    "--seal",
  );
  const lost = (await first.event("allocation_joined")).allocation;
  await eventually("both execute", async () => (await status(cluster)).executing === 2);
  const bundle = readOnHost(cluster, lost, "bundle.pem");
  const key = bundle.split("PRIVATE KEY-----\n")[1]?.slice(0, 48) ?? "";
  expect(key).to.have.length(48);
  const [line, ...seen] = [
    environmentOf(pidOf(cluster, lost)),
    readOnHost(cluster, lost, "log"),
    JSON.stringify([first.log, first.events]),
  ];
  expect(line).to.include(cluster.runId).and.to.include(lost);
  for (const text of [line, ...seen]) expect(text).not.to.include(key);
  await writeFile(before, "");
  await eventually("some results", async () => (await status(cluster)).done === 4);
  const ended = first.event("allocation_ended", { allocation: lost });
  process.kill(pidOf(cluster, lost), "SIGKILL");
  expect(await ended).to.include({ outcome: "lost", cause: "" });
  await eventually("a worker in its place", () => first.seen("allocation_joined").length === 3);
  const workers = first.seen("allocation_joined");

  // Its tunnels end with it, and are there again at their ports.
  await first.kill();
  const next = await cluster.startCoordinator({ args: ["--config", CONFIG] });
  await writeFile(after, "");
  await next.event("run_completed", { done: 8, failed: 0 });
  expect(next.seen("allocation_launched")).to.deep.equal([]);
  for (const { allocation } of workers)
    if (allocation !== lost) await next.event("allocation_ended", { allocation });
  expect((await status(cluster)).fleets[0]).to.include({
    joined: 0,
    starting: 0,
    ending: 0,
    provider: "ssh",
  });
  // The log is left of the one that was killed.
  const left = onHosts(cluster).filter((path) => path.split("/").length === 3);
  expect(left.map((path) => basename(path))).to.have.members(["ended", "keeper", "log", "worker"]);
  expect(left.every((path) => path.includes(lost))).to.equal(true);
  await expectRefused(cluster, lost, bundle);
  expect(await next.stop()).to.deep.equal({ code: 0, signal: null });
}

/** The bundle of an allocation that is over lets nobody in, neither its own worker nor another, and the coordinator says so. */
async function expectRefused(cluster: Cluster, allocation: string, bundle: string): Promise<void> {
  await writeFile(cluster.file("kept.pem"), bundle, { mode: 0o600 });
  const words = ["worker", "run", "--enrolment", "kept.pem", "--state-dir", "late"];
  const late = await cluster.run(...words, "--worker-id", allocation);
  expect([late.code, late.stderr]).to.satisfy(
    ([code, stderr]: [number, string]) => code !== 0 && stderr.includes(`allocation ${allocation} is over`),
    late.stderr,
  );
  expect(
    cluster.coordinator.log.some((line) => JSON.stringify(line).includes(`${allocation} is over`)),
  ).to.equal(true);
}
