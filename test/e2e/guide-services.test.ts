// Sections 7 and 8 of docs/guide.md: the units' own lines are carried out as systemd would, with a directory that stands for
// /var/lib/rollout, and a run goes on while everything that works on it is put in a new version, which npm has packed.
import { execFile } from "node:child_process";
import { mkdirSync, readFileSync, symlinkSync, writeFileSync } from "node:fs";
import { delimiter, dirname, join } from "node:path";
import { promisify } from "node:util";
import { expect } from "chai";
import { repositoryFile } from "../../scripts/generate-docs.ts";
import { withCluster } from "../support/cluster.ts";
import type { Cluster } from "../support/cluster.ts";
import { concurrentTests } from "../support/concurrent.ts";
import { blocksOfFile } from "./document-blocks.ts";
import { restartableAddress } from "../support/listeners.ts";
import type { RolloutProcess } from "../support/rollout-process.ts";
import { environmentFor } from "../support/rollout-process.ts";
import { readJournal, runUntil } from "../support/run-observer.ts";

const execute = promisify(execFile);

const HOME = "/var/lib/rollout";
const NEWER = "0.1.999";
/** Long enough for a coordinator to be replaced on a busy machine: nobody is to be failed here, and nothing to run twice. */
const PATIENT = { "liveness.worker_self_fence_timeout": "8s", "liveness.coordinator_failure_timeout": "10s" };
const MOCK = { "mock.sleep": "100ms", "mock.journal": "./journal" };
/** Before the upgrade, and after it. */
const ITEMS = [40, 20] as const;

describe("the guide", () => {
  const it = concurrentTests(2);

  it("leads to services: what their units say starts, reloads, works and stops, and a wrong configuration stays down", async () => {
    await withCluster({}, async (cluster) => {
      const [coordinatorUnit, workerUnit] = ["rollout-coordinator", "rollout-worker@"].map(unitOf);
      if (coordinatorUnit === undefined || workerUnit === undefined) throw new Error("two units");
      const home = cluster.file("home");
      const env = installProgram(cluster);
      const inHome = (command: string): string => command.replaceAll(HOME, home);
      const shell = (command: string, more: Readonly<Record<string, string>> = {}): Promise<unknown> =>
        execute("sh", ["-euc", inHome(command)], { env: { ...env, ...more }, cwd: cluster.directory });
      const start = (unit: Unit): RolloutProcess =>
        cluster.launch([], {
          ...{ env, directory: "home", wrapper: ["sh", "-c", `exec ${inHome(unit.ExecStart)}`] },
        });

      for (const unit of [coordinatorUnit, workerUnit]) expect(unit).to.include({ WorkingDirectory: HOME });
      await shell(guideCommand("rollout init").replace(/^runuser -u rollout -- /, ""));
      const file = join(home, "rollout.toml");
      const settings = readFileSync(file, "utf8").replace("127.0.0.1:50051", await restartableAddress());
      writeFileSync(file, settings);

      const coordinator = start(coordinatorUnit);
      await coordinator.event("coordinator_leading");
      const workers = [start(workerUnit), start(workerUnit)];
      const isReady = (): true | undefined =>
        new Set(coordinator.seen("worker_heartbeat", { state: "Ready" }).map((beat) => beat.worker_id))
          .size === 2
          ? true
          : undefined;
      await coordinator.until("two workers", isReady);
      await shell(coordinatorUnit.ExecReload, { MAINPID: String(coordinator.pid) });
      writeFileSync(cluster.file("items.jsonl"), "1\n2\n3\n");
      await shell(`rollout submit items.jsonl --seal --config ${HOME}/rollout.toml`);
      await coordinator.event("run_completed");

      for (const each of [...workers, coordinator])
        expect(await each.stop(), each.describe()).to.deep.equal({ code: 0, signal: null });
      expect(coordinator.stderr.filter((line) => line.startsWith("error"))).to.deep.equal([]);
      writeFileSync(file, settings.replace("[storage]", "[storing]"));
      const { code } = await start(coordinatorUnit).ended;
      expect(coordinatorUnit).to.include({ RestartPreventExitStatus: String(code) });
    });
  });

  it("leads through an upgrade while a run goes on: everybody is replaced, and each item runs once", async () => {
    await withCluster({ ...MOCK, ...PATIENT }, async (cluster) => {
      const program = await unpackNewer(cluster);
      const { stdout } = await execute(process.execPath, [program, "--version"]);
      expect(stdout).to.contain(`rollout ${NEWER}`);
      const old = await cluster.startCoordinator();
      const workers = await cluster.startWorkers(2);
      await submit(cluster, ITEMS[0]);
      await runUntil(cluster, ({ done }) => done > 0);

      const [first, second] = workers;
      await first?.stop();
      expect(await old.stop()).to.deep.equal({ code: 0, signal: null });
      // The second worker is still the old program when the coordinator is the new one.
      const next = await cluster.startCoordinator({ program });
      const id = (await second?.id()) ?? "";
      await next.event("worker_heartbeat", { worker_id: id, state: "Ready" });
      const replaced = [await cluster.startWorker({ program })];
      const drained = await cluster.run("worker", "drain", id, "--wait");
      expect(drained.code, drained.stderr).to.equal(0);
      expect(await second?.ended).to.deep.equal({ code: 0, signal: null });
      replaced.push(await cluster.startWorker({ program }));

      const total = ITEMS[0] + ITEMS[1];
      await submit(cluster, total, "--seal");
      const { done, failed } = await runUntil(cluster, ({ state }) => state === "complete");
      expect({ done, failed }).to.deep.equal({ done: total, failed: 0 });
      expect(next.seen("worker_failed")).to.deep.equal([]);
      const executions = readJournal(cluster.file("journal"));
      expect(executions, "once each").to.have.length(total);
      const by = executions.map(({ worker }) => worker);
      for (const worker of replaced) expect(by).to.include(await worker.id());
    });
  });
});

/** The items 1 to `count`; those that the run has already are not new. */
async function submit(cluster: Cluster, count: number, ...more: string[]): Promise<void> {
  const values = Array.from({ length: count }, (_, at) => ({ n: at + 1 }));
  await cluster.submit(values, ...more);
}

interface Unit {
  readonly ExecStart: string;
  /** Empty where there is none. */
  readonly ExecReload: string;
}

/** The settings of a unit by their names. */
function unitOf(name: string): Unit {
  const text = readFileSync(repositoryFile(`packaging/systemd/${name}.service`), "utf8");
  const settings = Object.fromEntries(
    [...text.matchAll(/^(\w+)=(.*)$/gm)].map(([, key = "", value = ""]) => [key, value]),
  );
  const { ExecStart, ExecReload = "" } = settings;
  if (ExecStart === undefined) throw new Error(`${name} starts nothing`);
  return { ...settings, ExecStart, ExecReload };
}

/** The line of section 7 with these words. */
function guideCommand(words: string): string {
  const [block] = blocksOfFile("docs/guide.md").filter(({ text }) => text.includes("systemctl enable --now"));
  const line = block?.text.split("\n").find((each) => each.includes(words));
  if (line === undefined) throw new Error(`the guide does not say ${words}`);
  return line;
}

/** `rollout` on a PATH of its own, as it is when it is installed for all users; the environment that goes with it. */
function installProgram(cluster: Cluster): Record<string, string> {
  const bin = cluster.file("bin");
  mkdirSync(bin);
  const text = `#!/bin/sh\nexec "${process.execPath}" "${repositoryFile("bin/run.js")}" "$@"\n`;
  writeFileSync(join(bin, "rollout"), text, { mode: 0o755 });
  return { ...environmentFor(), PATH: [bin, dirname(process.execPath), "/usr/bin", "/bin"].join(delimiter) };
}

/** The package as npm packs it, in a directory and with a version of its own, without fetching its dependencies again. */
async function unpackNewer(cluster: Cluster): Promise<string> {
  const words = ["pack", "--ignore-scripts", "--silent", "--pack-destination", cluster.directory];
  const { stdout } = await execute("npm", words, { cwd: repositoryFile(".") });
  await execute("tar", ["-xf", cluster.file(stdout.trim()), "-C", cluster.directory]);
  const root = cluster.file("package");
  const manifest = JSON.parse(readFileSync(join(root, "package.json"), "utf8")) as object;
  writeFileSync(join(root, "package.json"), JSON.stringify({ ...manifest, version: NEWER }));
  symlinkSync(repositoryFile("node_modules"), join(root, "node_modules"));
  return join(root, "bin/run.js");
}
