// The built library as programs use it: real processes, which are gone when the cluster is, or the program.
import { spawn } from "node:child_process";
import { once } from "node:events";
import { mkdir, readdir, readFile, writeFile } from "node:fs/promises";
import { createInterface } from "node:readline";
import { expect } from "chai";
import { RolloutError, startCluster } from "rollout";
import type { ClusterOptions, LocalCluster, Result } from "rollout";
import { repositoryFile } from "../../scripts/generate-docs.ts";
import { useClosers } from "../support/closers.ts";
import { eventually } from "../support/eventually.ts";
import { processesOf } from "./processes-of.ts";
import { environmentFor } from "../support/rollout-process.ts";
import { useTemporaryDirectory } from "../support/temporary-directory.ts";

describe("a cluster of a program", () => {
  const closeLater = useClosers();
  const directory = useTemporaryDirectory();
  let temporary: string;

  beforeEach(async () => {
    const before = process.env["TMPDIR"];
    temporary = directory.file("temporary");
    await mkdir(temporary);
    process.env["TMPDIR"] = temporary;
    closeLater(() => {
      if (before === undefined) delete process.env["TMPDIR"];
      else process.env["TMPDIR"] = before;
    });
  });

  async function start(options: ClusterOptions): Promise<LocalCluster> {
    const cluster = await startCluster(options);
    closeLater(() => cluster.stop());
    return cluster;
  }

  async function rejectionOf(work: Promise<unknown>): Promise<RolloutError> {
    const error: unknown = await work.then(
      () => "fulfilled",
      (thrown: unknown) => thrown,
    );
    if (error instanceof RolloutError) return error;
    throw new Error(`no RolloutError: ${String(error)}`, { cause: error });
  }

  async function all(results: AsyncIterable<Result>): Promise<string[]> {
    const outputs: string[] = [];
    for await (const { ok, output, error } of results)
      outputs.push(ok ? Buffer.from(output).toString().trim() : (error?.class ?? ""));
    return outputs;
  }

  async function expectNothingLeft(): Promise<void> {
    expect(await processesOf(directory.path)).to.deep.equal([]);
    expect(await readdir(temporary)).to.deep.equal([]);
  }

  it("runs a command on each item, has its workers there at once, and leaves nothing when it stops", async () => {
    const cluster = await start({ command: ["wc", "-w"], workers: 3, slots: 2 });
    const workers = await cluster.client.workers();
    expect(workers.map(({ state, slots }) => [state, slots])).to.deep.equal(
      Array.from({ length: 3 }, () => ["ready", 2]),
    );
    await cluster.client.submit(["one", "one two", "one two three"], { seal: true });
    const outputs = await all(cluster.client.results({ follow: true }));
    expect(outputs.toSorted()).to.deep.equal(["1", "2", "3"]);
    expect(await processesOf(directory.path)).to.have.length.at.least(4);
    await Promise.all([cluster.stop(), cluster.stop()]);
    await expectNothingLeft();
    expect((await rejectionOf(cluster.client.status())).code).to.equal("interrupted");
  });

  it("takes settings by the names of their flags", async () => {
    const settings = { "max-attempts": "1", "item-timeout": "200ms" };
    const cluster = await start({ command: ["sleep", "60"], workers: 1, settings });
    await cluster.client.submit([{ id: "one" }], { seal: true });
    expect(await all(cluster.client.results({ follow: true }))).to.deep.equal(["timeout"]);
    expect((await cluster.client.item("one")).maxAttempts).to.equal(1);
  });

  it("continues in its directory: finished items stay finished, and another task is refused there", async () => {
    const place = { directory: directory.file("run"), workers: 1 };
    const first = await start({ ...place, command: ["cat"] });
    await first.client.submit([1, 2], {});
    await eventually("both", async () => (await first.client.status()).done === 2);
    await first.stop();
    const second = await start({ ...place, command: ["cat"] });
    expect(await second.client.submit([1, 2, 3], { seal: true })).to.include({ added: 1, known: 2 });
    expect((await all(second.client.results({ follow: true }))).toSorted()).to.deep.equal(["1", "2", "3"]);
    const held = await rejectionOf(startCluster({ ...place, command: ["cat"] }));
    expect(held.code).to.equal("run_held");
    await second.stop();
    const refused = await rejectionOf(startCluster({ ...place, command: ["rev"] }));
    expect(refused.code).to.equal("other_run_task");
    expect(await readdir(place.directory)).to.include("rollout.toml");
  });

  it("stays usable when its coordinator is killed", async () => {
    const notices: string[] = [];
    const options = { directory: directory.file("run"), workers: 1, command: ["cat"] };
    const cluster = await start({ ...options, onNotice: (sentence) => notices.push(sentence) });
    await cluster.client.submit([1, 2]);
    const lock = await readFile(directory.file("run/rollout.db.lock"), "utf8");
    process.kill((JSON.parse(lock) as { pid: number }).pid, "SIGKILL");
    const results = all(cluster.client.results({ follow: true, patienceMs: 30_000 }));
    await eventually("it is told of", () => notices.length > 0);
    const isBack = (): Promise<boolean> =>
      cluster.client.seal().then(
        () => true,
        () => false,
      );
    await eventually("it answers again", isBack);
    expect((await results).toSorted()).to.deep.equal(["1", "2"]);
    expect(notices[0]).to.match(/^the coordinator was killed \(SIGKILL\); it is started again$/);
  });

  describe("that cannot work", () => {
    it("is refused with the manifest's error, which names the place", async () => {
      const plugin = directory.file("broken.toml");
      expect((await rejectionOf(startCluster({ plugin }))).code).to.equal("manifest_unreadable");
      await writeFile(plugin, 'name = "x"\nversion = "1"\nbackend = "teleport"\n');
      const error = await rejectionOf(startCluster({ plugin }));
      expect(error.code).to.equal("config_invalid_value");
      expect(error.message).to.contain(plugin);
      await expectNothingLeft();
    });

    it("is refused when the module does not load, saying why, and leaves no process and no directory", async () => {
      const plugin = directory.file("broken.toml");
      const head = 'name = "x"\nversion = "1"\nbackend = "module"\n[module]\n';
      await writeFile(plugin, `${head}module = "./broken.js"\n`);
      // By then its worker has joined long ago.
      const slowly = "await new Promise((resolve) => setTimeout(resolve, 1_500));";
      await writeFile(directory.file("broken.js"), `${slowly}\nthrow new Error("no weights");\n`);
      const error = await rejectionOf(startCluster({ plugin }));
      expect(error.code).to.equal("process_given_up");
      expect(error.message).to.contain("the backend of plugin x does not start").and.contain("no weights");
      await expectNothingLeft();
    });

    it("ends the wait for results when the first item shows it, and can still be stopped", async () => {
      const cluster = await start({ command: ["/nowhere/to/be/found"], workers: 1 });
      await cluster.client.submit([1], { seal: true });
      const error = await rejectionOf(all(cluster.client.results({ follow: true })));
      expect(error.code).to.equal("process_given_up");
      expect(error.message).to.contain("/nowhere/to/be/found");
      expect(await cluster.givenUp).to.equal(error);
      expect(await rejectionOf(cluster.client.status())).to.equal(error);
      await cluster.stop();
      await expectNothingLeft();
    });

    const senseless: readonly [string, ClusterOptions][] = [
      ["a plugin and a command", { plugin: "x.toml", command: ["cat"] }],
      ["a command without words", { command: [] }],
      ["half a worker", { workers: 0.5 }],
      ["no slots", { slots: 0 }],
      ["a setting that says where things are", { settings: { "storage-path": "/" } }],
    ];
    for (const [what, options] of senseless)
      it(`is refused with ${what}, before anything is made`, async () => {
        expect((await rejectionOf(startCluster(options))).code).to.equal("usage");
        await expectNothingLeft();
      });

    it("is refused with a value that no setting has", async () => {
      const error = await rejectionOf(startCluster({ settings: { "max-attempts": "many" } }));
      expect(error.code).to.equal("config_invalid_value");
      await expectNothingLeft();
    });
  });

  it("ends with its program, also when that is killed with -9: no process of it is left", async () => {
    const env = { ...environmentFor(), TMPDIR: temporary };
    const program = spawn(process.execPath, [repositoryFile("test/e2e/library-program.ts")], {
      ...{ env, stdio: ["ignore", "pipe", "inherit"] },
    });
    closeLater(() => program.kill("SIGKILL"));
    const lines: unknown[] = await once(createInterface({ input: program.stdout }), "line");
    expect(lines).to.deep.equal(["busy"]);
    const before = await processesOf(temporary);
    // The program, a coordinator, two workers, and what they execute.
    expect(before).to.have.length.at.least(6);
    program.kill("SIGKILL");
    const isGone = async (): Promise<boolean> => (await processesOf(temporary)).length === 0;
    await eventually("the end of every process", isGone);
  });
});
