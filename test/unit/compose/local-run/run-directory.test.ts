import { existsSync } from "node:fs";
import { mkdir, readFile, rm, stat, writeFile } from "node:fs/promises";
import { expect } from "chai";
import { newUlid } from "../../../../src/base/ids.ts";
import type { RunId, WorkerId } from "../../../../src/base/ids.ts";
import type { Clock } from "../../../../src/base/clock.ts";
import { systemClock } from "../../../../src/base/clock.ts";
import { systemRandom } from "../../../../src/base/random.ts";
import { holderNameOf } from "../../../../src/compose/store-holders.ts";
import { localConfigText } from "../../../../src/compose/local-run/local-config.ts";
import type { KeyedTask } from "../../../../src/compose/local-run/run-directory.ts";
import { RunDirectory, runDirectoryOf } from "../../../../src/compose/local-run/run-directory.ts";
import { commandManifest } from "../../../../src/config/manifest.ts";
import { resolveConfig } from "../../../../src/config/resolve.ts";
import { taskOf } from "../../../../src/config/task.ts";
import { FAILED_PREFIX } from "../../../../src/storage/keys.ts";
import { openLevelStore } from "../../../../src/storage/level/level-store.ts";
import { useClosers } from "../../../support/closers.ts";
import { failureOf } from "../../../support/rejection.ts";
import { useTemporaryDirectory } from "../../../support/temporary-directory.ts";

const PORTS = { clock: systemClock, random: systemRandom };
const CAT = taskOf(commandManifest(["cat"], "/"));
const REV = taskOf(commandManifest(["rev"], "/"));

describe("the directory of a local run", () => {
  const closeLater = useClosers();
  const temporary = useTemporaryDirectory();

  async function claim(
    task: KeyedTask = CAT,
    whenOfAnotherTask: Parameters<typeof RunDirectory.claim>[4] = "replace-if-nothing-came",
    ports = PORTS,
  ): Promise<RunDirectory> {
    const directory = await RunDirectory.claim(temporary.file("run"), "out", task, ports, whenOfAnotherTask);
    closeLater(() => directory.close());
    return directory;
  }

  it("lies beside the output, or is the task's and the input's own, or is what was said", () => {
    const of = (change: Partial<Parameters<typeof runDirectoryOf>[0]>): string =>
      runDirectoryOf({
        directory: undefined,
        output: undefined,
        digest: CAT.digest,
        input: "file /a",
        ...change,
      });
    expect(of({ output: "/a/out" })).to.equal("/a/out.rollout");
    expect(of({ output: "/a/out", directory: "/b" })).to.equal("/b");
    expect(of({})).to.match(/^\.rollout\/[0-9a-f]{16}$/);
    expect(of({ digest: REV.digest })).to.not.equal(of({}));
    expect(of({ input: "file /b" }), "another input").to.not.equal(of({}));
  });

  it("is removed when the run has recorded nothing, unless it was there before", async () => {
    await (await claim()).discard();
    expect(existsSync(temporary.file("run"))).to.equal(false);
    await (await claim()).close();
    const { runId } = await claim().then(async (again) => {
      await again.discard();
      return again;
    });
    expect((await claim()).runId, "it was there").to.equal(runId);
  });

  it("belongs to one run and one task for good, and only its owner may read it", async () => {
    const first = await claim();
    const { runId } = first;
    await first.close();
    expect((await claim()).runId).to.equal(runId);
    expect((await stat(first.path)).mode & 0o077).to.equal(0);
  });

  it("is refused to another task once an item was recorded, naming both, and is left to its own task", async () => {
    const first = await claim();
    const store = await openLevelStore({
      path: first.file("rollout.db"),
      holderName: "test",
      clock: systemClock,
    });
    const row = { key: `${FAILED_PREFIX}1`, value: Uint8Array.of(1) };
    await store.commit({ puts: [row], deletes: [], expect: [], durability: "sync" });
    await store.close();
    await first.close();
    const error = await failureOf(claim(REV));
    expect(error).to.include({ code: "other_run_task" });
    expect(error.message).to.contain(CAT.summary).and.contain(REV.summary);
    expect(error.hint, "all that would be in the way").to.match(/ remove out \S+\/run$/);
    expect((await claim()).runId).to.equal(first.runId);
  });

  it("is of the fields in which lines have their keys, too", async () => {
    const keyed = { ...CAT, fields: { key: "customer", eventId: "/id" } };
    const first = await claim(keyed);
    await first.close();
    const same = await claim({ ...CAT, fields: { key: "customer", eventId: "/id" } }, "refuse");
    expect(same.runId).to.equal(first.runId);
    await same.close();
    for (const fields of [undefined, { key: "other", eventId: "/id" }, { key: "customer" }]) {
      const error = await failureOf(claim({ ...CAT, fields }, "refuse"));
      expect(error).to.include({ code: "other_run_task" });
      expect(error.message).to.contain(`${CAT.summary} with --key-field customer --event-id-field /id`);
    }
    const next = await claim();
    expect(next.formerTask).to.contain("--key-field customer");
    await next.close();
  });

  it("becomes another task's while nothing was recorded, whatever files are in it", async () => {
    const first = await claim();
    const store = await openLevelStore({
      path: first.file("rollout.db"),
      holderName: "test",
      clock: systemClock,
    });
    await store.close();
    await mkdir(first.file(`state/workers/${newUlid<WorkerId>(systemClock, systemRandom)}`), {
      recursive: true,
    });
    await writeFile(first.file("coordinator.log"), "why\n");
    await first.close();
    const whose = await failureOf(claim(REV, "refuse"));
    expect(whose, "its items are nowhere else").to.include({ code: "other_run_task" });
    const second = await claim(REV);
    expect(second.formerTask).to.equal(CAT.summary);
    expect(second.runId).to.not.equal(first.runId);
    expect(existsSync(first.file("rollout.db")) || existsSync(first.file("state"))).to.equal(false);
    expect(existsSync(first.file("coordinator.log")), "what may say why").to.equal(true);
    await second.close();
    expect((await claim(REV)).formerTask).to.equal(undefined);
  });

  it("is refused to a second process at the same time, naming the first", async () => {
    await claim();
    const error = await failureOf(claim());
    expect(error).to.include({ code: "run_held" });
    expect(error.message).to.contain(`pid ${process.pid}`);
  });

  it("is refused where other files are in it, or where its record is damaged", async () => {
    await mkdir(temporary.file("run"));
    await writeFile(temporary.file("run/cat.jpg"), "");
    expect(await failureOf(claim())).to.include({ code: "run_directory_unusable" });
    await writeFile(temporary.file("run/task.json"), "{}");
    expect(await failureOf(claim())).to.include({ code: "run_directory_unusable" });
  });

  it("says of a lock that is damaged that nothing is lost with it, and is free again without it", async () => {
    const { runId, path, file } = await claim().then(async (first) => {
      await first.close();
      return { runId: first.runId, path: first.path, file: first.file("supervisor/CURRENT") };
    });
    for (const damage of [() => writeFile(file, "MANIFEST-999999\n"), () => rm(file)]) {
      await damage();
      const refused = await failureOf(claim());
      expect(refused).to.include({ code: "store_unusable" });
      expect(refused.message).to.match(/supervisor: it is damaged$/);
      expect(refused.hint).to.match(/^remove it, .*nothing is lost$/);
    }
    await rm(`${path}/supervisor`, { recursive: true });
    expect((await claim()).runId).to.equal(runId);
  });

  it("waits for the processes of an earlier run that hold it, and names them", async () => {
    const directory = await claim();
    const path = directory.file("rollout.db");
    const holderName = holderNameOf("coordinator", true);
    const store = await openLevelStore({ path, holderName, clock: systemClock });
    const waitedFor: string[] = [];
    const waiting = directory.waitForEarlier((holder) => {
      waitedFor.push(holder);
      void store.close();
    }, new AbortController().signal);
    await waiting;
    expect(waitedFor).to.have.length(1);
    expect(waitedFor[0]).to.match(/^the coordinator of rollout run, pid \d+ on host /);
  });

  it("stops waiting when the command is interrupted, also when those processes have ended", async () => {
    const directory = await claim();
    const path = directory.file("rollout.db");
    const holderName = holderNameOf("coordinator", true);
    const store = await openLevelStore({ path, holderName, clock: systemClock });
    const leaving = new AbortController();
    const waiting = directory.waitForEarlier(() => {
      leaving.abort();
      void store.close();
    }, leaving.signal);
    expect(await failureOf(waiting)).to.include({ code: "interrupted" });
  });

  it("waits for a limited time for a process that somebody has started by hand, and says how to go on", async () => {
    let waitedMs = 0;
    const hurried: Clock = {
      ...systemClock,
      monotonicMs: () => waitedMs,
      after: (delayMs, callback) => {
        waitedMs += delayMs;
        return systemClock.after(0, callback);
      },
    };
    const directory = await claim(CAT, "refuse", { ...PORTS, clock: hurried });
    const path = directory.file("rollout.db");
    const holderName = holderNameOf("coordinator", false);
    const store = await openLevelStore({ path, holderName, clock: systemClock });
    closeLater(() => store.close());
    const error = await failureOf(directory.waitForEarlier(() => undefined, new AbortController().signal));
    expect(waitedMs, "no drain of a local run").to.be.lessThan(2_000);
    expect(error).to.include({ code: "run_held" });
    expect(error.message).to.contain("is in use by rollout coordinator run, pid ");
    expect(error.hint).to.contain(`\`kill ${process.pid}\`, and give the same command again`);
  });

  it("has the same workers' ids each time, those that have a database first", async () => {
    const directory = await claim();
    const [one = ""] = await directory.workerIds(1);
    await mkdir(directory.file(`state/workers/${one}`), { recursive: true });
    expect((await directory.workerIds(3))[0]).to.equal(one);
    expect(new Set(await directory.workerIds(3)).size).to.equal(3);
  });

  it("keeps the last log and begins a new one when it has grown long", async () => {
    const directory = await claim();
    const file = await directory.logFile("coordinator");
    await writeFile(file, "short\n");
    await directory.logFile("coordinator");
    expect(await readFile(file, "utf8"), "it goes on").to.equal("short\n");
    await writeFile(file, "x".repeat(5 * 1024 * 1024));
    await directory.logFile("coordinator");
    expect((await stat(`${file}.1`)).size).to.equal(5 * 1024 * 1024);
  });

  it("has a configuration with what was given by flags, also for those who read it later", () => {
    const text = localConfigText(newUlid<RunId>(systemClock, systemRandom), "127.0.0.1:1", undefined, [
      { key: "run.max_attempts", value: "7" },
      { key: "worker.slots", value: "3" },
      { key: "worker.hot_reload", value: true },
      { key: "run.max_fails", value: "5%" },
    ]);
    const config = resolveConfig("coordinator", {
      file: { path: "/run/rollout.toml", text },
      ...{ environment: {}, flags: {}, workingDirectory: "/", topics: [] },
    });
    expect(config.run.maxAttempts).to.equal(7);
    expect(config.run.maxFails).to.not.equal(undefined);
    expect(config.worker).to.include({ slots: 3, hotReload: true, stateDir: "/run/state" });
  });

  it("has a valid configuration file", () => {
    const text = localConfigText(
      newUlid<RunId>(systemClock, systemRandom),
      "127.0.0.1:4711",
      "./plugin.toml",
    );
    const config = resolveConfig("coordinator", {
      file: { path: "/run/rollout.toml", text },
      ...{ environment: {}, flags: {}, workingDirectory: "/", topics: [] },
    });
    expect(config.storage.path).to.equal("/run/rollout.db");
    expect(config.worker.stateDir).to.equal("/run/state");
    expect(config.worker.coordinatorAddr).to.deep.equal(["127.0.0.1:4711"]);
    expect(config.worker.plugins).to.deep.equal(["/run/plugin.toml"]);
  });
});
