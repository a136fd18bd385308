// Two versions of one plugin on a real worker process, given work by a coordinator that does what the test says: processes that
// answer, and one that refuses to start while another of its kind lives, as a model does on a GPU that holds one.
import { expect } from "chai";
import { existsSync, mkdirSync, readFileSync, symlinkSync, writeFileSync } from "node:fs";
import { taskOf } from "../../src/config/task.ts";
import { loadManifest } from "../../src/config/manifest.ts";
import type { Beat } from "../../src/gen/rollout/v1/heartbeat_pb.ts";
import { OutcomeClass } from "../../src/gen/rollout/v1/work_pb.ts";
import type { Result } from "../../src/gen/rollout/v1/work_pb.ts";
import { newWorkerId } from "../support/certificates.ts";
import { withCluster } from "../support/cluster.ts";
import type { Cluster, WorkerProcess } from "../support/cluster.ts";
import { concurrentTests } from "../support/concurrent.ts";
import { eventually } from "../support/eventually.ts";
import { writeCredentials } from "../support/real-authority.ts";
import { assignment, startScriptedCoordinator } from "../support/scripted-coordinator.ts";
import type { ScriptedCoordinator, ScriptedSession } from "../support/scripted-coordinator.ts";

/**
 * Its version is its argument. It ends some time after it was told to, and one that starts meanwhile notes that and dies, when the
 * worker's environment says that there is room for one.
 */
const SERVER = `
  import { appendFileSync, readFileSync, writeFileSync } from "node:fs";
  import { createInterface } from "node:readline";
  const version = process.argv[2];
  const lives = (pid) => { try { return process.kill(pid, 0); } catch { return false; } };
  const holder = () => { try { return Number(readFileSync("gpu", "utf8")); } catch { return 0; } };
  if (process.env.ONE_GPU === "1") {
    if (holder() > 0 && lives(holder())) {
      appendFileSync("refused", version + "\\n");
      process.exit(1);
    }
    writeFileSync("gpu", String(process.pid));
  }
  appendFileSync("loaded", version + "\\n");
  process.on("SIGTERM", () => setTimeout(() => process.exit(0), 200));
  const say = (message) => process.stdout.write(JSON.stringify(message) + "\\n");
  say({ type: "ready" });
  for await (const line of createInterface(process.stdin)) {
    const { type, id, payload } = JSON.parse(line);
    if (type === "item") say({ type: "result", id, output: { by: version, of: payload, score: Number(version) / 4 } });
  }
  // Standard input has ended: it goes when it is told to, and by itself if nobody tells it.
  setTimeout(() => process.exit(0), 300);
`;

interface Output {
  readonly by: string;
  readonly of: number;
}

describe("versions side by side", () => {
  const it = concurrentTests(2);

  /** `file` without its ending is the version that it is of. */
  function writeManifest(cluster: Cluster, file: string, version: string): void {
    const command = `command = ["node", "server.mjs", "${version}"]\nconcurrency = 4\nkill_grace = "10s"`;
    writeFileSync(
      cluster.file(file),
      `name = "m"\nversion = "${version}"\nbackend = "process"\n[process]\n${command}\n`,
    );
  }

  /** A worker of a coordinator that is scripted, and its session. */
  async function withWorker(
    flags: readonly string[],
    use: (cluster: Cluster, scripted: ScriptedCoordinator, launch: Launch) => Promise<void>,
  ): Promise<void> {
    const scripted = await startScriptedCoordinator();
    try {
      const settings = { run_id: scripted.runId, "worker.coordinator_addr": scripted.server.address };
      await withCluster(settings, async (cluster) => {
        writeFileSync(cluster.file("server.mjs"), SERVER);
        writeManifest(cluster, "v1.toml", "1");
        const launch: Launch = async (env = {}) => {
          const id = newWorkerId();
          const identity = { runId: scripted.runId, role: "worker", id } as const;
          const own = await writeCredentials(cluster.file("own"), await scripted.ca.issue(identity));
          const worker = cluster.launchWorker({ env, args: [...own, "--slots", "4", ...flags] });
          const session = await scripted.session(scripted.sessions.length);
          await session.reconcile();
          return { worker, session };
        };
        await use(cluster, scripted, launch);
      });
    } finally {
      await scripted.close();
    }
  }

  type Launch = (
    env?: Readonly<Record<string, string>>,
  ) => Promise<{ readonly worker: WorkerProcess; readonly session: ScriptedSession }>;

  const outputs = (results: readonly Result[]): [number, string, string][] =>
    results.map(({ output, pluginVersion }) => {
      const { by, of } = JSON.parse(Buffer.from(output).toString()) as Output;
      return [of, by, pluginVersion];
    });

  /** Items that are given when they were asked for; the payload is the number as JSON. */
  async function give(
    session: ScriptedSession,
    items: readonly (readonly [number: number, version: string])[],
    pointers: readonly { readonly name: string; readonly pointer: string }[] = [],
  ): Promise<void> {
    await eventually("it asks for work", () => session.credit > 0);
    const { lastNumber = 0n } = session;
    const assignments = items.map(([number, pluginVersion]) =>
      assignment(number, { payload: Buffer.from(String(number)), pluginVersion }),
    );
    session.lastNumber = lastNumber + BigInt(items.length);
    const batch = { firstNumber: lastNumber + 1n, assignments, plugin: "m" };
    session.say({ frame: { case: "assignments", value: { ...batch, pointers: [...pointers] } } });
  }

  const done = (session: ScriptedSession, count: number): Promise<Result[]> =>
    eventually(`${count} results`, () => session.results.length >= count && session.results);

  it("execute each item by exactly the version that it names, and read numbers in what it says", () =>
    withWorker(["--plugin", "v1.toml", "--plugin", "v2.toml"], async (cluster, _, launch) => {
      writeManifest(cluster, "v2.toml", "2");
      const { session } = await launch();
      const items = [
        [1, ""],
        [2, "2"],
        [3, "1"],
        [4, "3"],
      ] as const;
      const pointers = [
        { name: "score", pointer: "/score" },
        { name: "none", pointer: "/none" },
      ];
      await give(session, items, pointers);
      await eventually("it hands back what it does not have", () => session.handedBack.includes(4));
      const results = [...(await done(session, 3))];
      results.sort((one, other) => (one.attempt?.itemId[0] ?? 0) - (other.attempt?.itemId[0] ?? 0));
      expect(results.map(({ outcome }) => outcome)).to.deep.equal(
        Array<OutcomeClass>(3).fill(OutcomeClass.SUCCESS),
      );
      expect(outputs(results)).to.deep.equal([
        [1, "1", "1"],
        [2, "2", "2"],
        [3, "1", "1"],
      ]);
      expect(results.map(({ measures }) => measures.map(({ value }) => value))).to.deep.equal([
        [0.25, undefined],
        [0.5, undefined],
        [0.25, undefined],
      ]);
    }));

  it("are added from a directory without a restart, also through a link, and a broken manifest ends no worker", () =>
    withWorker(["--plugin", "v1.toml", "--plugin-dir", "plugins"], async (cluster, scripted, launch) => {
      const { worker, session } = await launch();
      const last = (): Beat | undefined => scripted.beats.at(-1);
      await give(session, [[1, "2"]]);
      await eventually("it has no such version", () => session.handedBack.includes(1));
      expect(last()?.loadedVersions).to.equal(0);

      mkdirSync(cluster.file("plugins"));
      writeFileSync(cluster.file("plugins/broken.toml"), "name =\n");
      writeManifest(cluster, "v2.toml", "2");
      symlinkSync("../v2.toml", cluster.file("plugins/v2.toml"));
      await eventually("its beats name it", () => last()?.plugins.length === 2);
      expect(last()?.plugins.map(({ name, version }) => [name, version])).to.deep.equal([
        ["m", "1"],
        ["m", "2"],
      ]);
      const digests = await Promise.all(
        ["v1.toml", "v2.toml"].map(async (file) => taskOf(await loadManifest(cluster.file(file))).digest),
      );
      expect(last()?.taskDigests.map((digest) => Buffer.from(digest))).to.deep.equal(digests);
      expect(last()?.loadedVersions).to.equal(2);
      await worker.until("it warns of the other file", () =>
        worker.log.find(({ level, message }) => level === "warn" && message.includes("broken.toml")),
      );
      expect(existsSync(cluster.file("loaded")), "it has no item yet").to.equal(false);

      await give(session, [
        [2, "2"],
        [3, ""],
      ]);
      expect(outputs(await done(session, 2)).sort()).to.deep.equal([
        [2, "2", "2"],
        [3, "1", "1"],
      ]);
      await worker.stop();
    }));

  it("take turns on a machine that has room for one: one is gone before the other starts, and no item is charged", () =>
    withWorker(
      ["--plugin", "v1.toml", "--plugin", "v2.toml", "--loaded-versions", "1"],
      async (cluster, scripted, launch) => {
        writeManifest(cluster, "v2.toml", "2");
        const { session } = await launch({ ONE_GPU: "1" });
        await give(session, [
          [1, ""],
          [2, ""],
          [3, "2"],
        ]);
        await done(session, 3);
        await give(session, [
          [4, "2"],
          [5, ""],
        ]);
        const results = await done(session, 5);
        expect(outputs(results).sort()).to.deep.equal([
          [1, "1", "1"],
          [2, "1", "1"],
          [3, "2", "2"],
          [4, "2", "2"],
          [5, "1", "1"],
        ]);
        expect(results.every(({ outcome }) => outcome === OutcomeClass.SUCCESS)).to.equal(true);
        expect(existsSync(cluster.file("refused")), "two were there at once").to.equal(false);
        expect(readFileSync(cluster.file("loaded"), "utf8").trim().split("\n")).to.deep.equal([
          "1",
          "2",
          "1",
        ]);
        expect(scripted.beats.at(-1)?.loadedVersions).to.equal(1);
      },
    ));
});
