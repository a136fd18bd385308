import assert from "node:assert/strict";
import { existsSync, readdirSync } from "node:fs";
import { mkdir, open, readFile, rm, symlink, writeFile } from "node:fs/promises";
import type { FileHandle } from "node:fs/promises";
import { crc32 } from "node:zlib";
import { expect } from "chai";
import { systemClock } from "../../../../src/base/clock.ts";
import { systemRandom } from "../../../../src/base/random.ts";
import { ResultsWriter } from "../../../../src/compose/local-run/result-files.ts";
import { RunDirectory } from "../../../../src/compose/local-run/run-directory.ts";
import {
  finishedAs,
  forgetFinished,
  isOfLocalRun,
  lengthsOf,
  readRecord,
  workersIn,
} from "../../../../src/compose/local-run/run-record.ts";
import type { Asked, RunRecord } from "../../../../src/compose/local-run/run-record.ts";
import { commandManifest } from "../../../../src/config/manifest.ts";
import { taskOf } from "../../../../src/config/task.ts";
import { useClosers } from "../../../support/closers.ts";
import { failureOf } from "../../../support/rejection.ts";
import { useTemporaryDirectory } from "../../../support/temporary-directory.ts";

const CAT = taskOf(commandManifest(["cat"], "/"));
const RUN_ID = "01JZ0000000000000000000000";
const BEGUN_BY = { workingDirectory: "/there", command: "rollout run in.jsonl -- cat" };
const LINE = "a line\n";
const RESULTS = {
  version: 1,
  output: "../out.jsonl",
  begun: { runId: RUN_ID, format: "jsonl", order: "completion", withInput: false, errors: null },
  progress: { cursor: "c1.0", bytes: 7, errorsBytes: 0, results: 1, failures: 0, checksum: crc32(LINE) },
};

describe("the record of a local run's directory", () => {
  const closeLater = useClosers();
  const temporary = useTemporaryDirectory();
  let asked: Asked;

  beforeEach(async () => {
    const output = temporary.file("out.jsonl");
    asked = { input: "0", kind: "json", output, errors: "", format: "jsonl", order: "completion" };
    await writeFile(output, LINE);
  });

  async function claim(): Promise<RunDirectory> {
    const ports = { clock: systemClock, random: systemRandom };
    const directory = await RunDirectory.claim(temporary.file("run"), "out", CAT, ports);
    closeLater(() => directory.close());
    return directory;
  }

  const recordOf = async (directory: RunDirectory): Promise<RunRecord> =>
    (await readRecord(directory.path)) ?? assert.fail();

  const json = async (name: string): Promise<Record<string, unknown>> =>
    JSON.parse(await readFile(temporary.file(`run/${name}`), "utf8")) as Record<string, unknown>;

  const names = (): string[] => readdirSync(temporary.file("run")).filter((name) => /json|cursor/.test(name));

  /** Results without one would be a loss. */
  async function haveDatabase(): Promise<void> {
    await mkdir(temporary.file("run/rollout.db"));
    await writeFile(temporary.file("run/rollout.db/CURRENT"), "");
  }

  /** As 0.1 leaves it: a file for each part. */
  async function leaveEarlier(): Promise<void> {
    const made = await claim();
    await made.close();
    await haveDatabase();
    const { digest, summary } = await recordOf(made);
    const finished = { asked, done: 1, failed: 0, failedByClass: {} };
    const files = {
      "task.json": { version: 1, runId: RUN_ID, digest, summary },
      "command.json": { version: 1, ...BEGUN_BY },
      "results.cursor": RESULTS,
      "finished.json": { version: 1, finished, lengths: await lengthsOf(asked) },
    };
    for (const [name, value] of Object.entries(files))
      await writeFile(temporary.file(`run/${name}`), JSON.stringify(value));
  }

  it("has the same content when it is read again, and is one file", async () => {
    const first = await claim();
    const finished = { asked, done: 1, failed: 0, failedByClass: {}, lengths: await lengthsOf(asked) };
    await first.keep({ begunBy: BEGUN_BY });
    await first.cursorPlace.write(RESULTS);
    await first.keep({ finished });
    await first.close();
    await haveDatabase();
    const second = await claim();
    expect(await recordOf(second)).to.deep.include({ begunBy: BEGUN_BY, results: RESULTS, finished });
    expect(second.runId).to.equal(first.runId);
    expect(names()).to.deep.equal(["task.json"]);
  });

  it("says that it was paused, and why, until its database may change", async () => {
    const directory = await claim();
    const paused = { reason: "lunch", done: 2, failed: 1 };
    await directory.keep({ paused });
    expect(await recordOf(directory)).to.deep.include({ paused });
    await forgetFinished(directory.file("rollout.db"));
    expect((await recordOf(directory)).paused).to.equal(undefined);
  });

  it("counts as present, as do its workers, when the system cannot tell whether it is there", async () => {
    const directory = await claim();
    await rm(directory.file("task.json"));
    await symlink("task.json", directory.file("task.json"));
    expect(await failureOf(isOfLocalRun(directory.file("rollout.db")))).to.include({
      code: "run_directory_unusable",
    });
    await mkdir(directory.file("state"));
    expect(await workersIn(directory.path)).to.deep.equal([]);
    await writeFile(directory.file("state/workers"), "");
    expect((await failureOf(workersIn(directory.path))).message).to.contain("state/workers cannot be read: ");
  });

  it("says that it was cancelled, until its database may change", async () => {
    const directory = await claim();
    await directory.keep({ cancelled: { done: 2, failed: 1 } });
    expect(await recordOf(directory)).to.deep.include({ cancelled: { done: 2, failed: 1 } });
    await forgetFinished(directory.file("rollout.db"));
    expect((await recordOf(directory)).cancelled).to.equal(undefined);
  });

  it("of 0.1 is read from its files, and taken over with the first change and not before", async () => {
    await leaveEarlier();
    const before = names();
    const first = await claim();
    expect(first.runId).to.equal(RUN_ID);
    expect(await first.cursorPlace.read()).to.deep.equal(RESULTS);
    expect(await finishedAs(first.path, await recordOf(first), asked)).to.include({ done: 1, failed: 0 });
    expect(names()).to.deep.equal(before);
    await first.keep({ finished: undefined });
    expect(names()).to.deep.equal(["task.json"]);
    const { version, runId, begunBy, results, finished } = await json("task.json");
    expect([version, runId, finished]).to.deep.equal([2, RUN_ID, undefined]);
    expect([begunBy, results]).to.deep.equal([BEGUN_BY, RESULTS]);
  });

  it("is on the disk after a loss of power from its first change on: its name is synced once, with that change", async () => {
    await leaveEarlier();
    const directory = await claim();
    const handle = await open(directory.path);
    const files = Object.getPrototypeOf(handle) as FileHandle;
    await handle.close();
    const sync = Object.getOwnPropertyDescriptor(files, "sync") ?? assert.fail();
    let syncs = 0;
    files.sync = async function (this: FileHandle) {
      if ((await this.stat()).isDirectory()) syncs++;
      await (sync.value as FileHandle["sync"]).call(this);
    };
    closeLater(async () => void Object.defineProperty(files, "sync", sync));
    await directory.keep({ finished: undefined });
    expect(syncs).to.equal(1);
    await directory.keep({ begunBy: undefined });
    expect(syncs).to.equal(1);
  });

  it("does not answer with an outcome whose files have changed, nor for another request", async () => {
    await leaveEarlier();
    const directory = await claim();
    const record = await recordOf(directory);
    expect(await finishedAs(directory.path, record, { ...asked, input: "1" })).to.equal(undefined);
    await writeFile(asked.output, LINE.toUpperCase());
    const refused = await failureOf(finishedAs(directory.path, record, asked));
    expect([refused.code, refused.params["file"]]).to.deep.equal(["output_not_continued", asked.output]);
    await writeFile(asked.output, "another line\n");
    expect(await finishedAs(directory.path, record, asked)).to.equal(undefined);
  });

  it("drops its outcome, and nothing else, before a coordinator may change the database", async () => {
    await leaveEarlier();
    await forgetFinished(temporary.file("run/rollout.db"));
    const record = await recordOf(await claim());
    expect(record).to.deep.include({ runId: RUN_ID, results: RESULTS, finished: undefined });
    expect(existsSync(temporary.file("run/finished.json"))).to.equal(false);
  });

  it("is in the way of a coordinator when it cannot be read, and not when it is damaged", async () => {
    await leaveEarlier();
    await writeFile(temporary.file("run/task.json"), "{");
    await forgetFinished(temporary.file("run/rollout.db"));
    await rm(temporary.file("run/task.json"));
    await mkdir(temporary.file("run/task.json"));
    const refused = await failureOf(forgetFinished(temporary.file("run/rollout.db")));
    expect(refused).to.include({ code: "run_directory_unusable" });
    expect(refused.message).to.contain("task.json cannot be read: it is a directory");
    // The system does not even tell whether it is there.
    await rm(temporary.file("run/task.json"), { recursive: true });
    await symlink("task.json", temporary.file("run/task.json"));
    const untold = await failureOf(forgetFinished(temporary.file("run/rollout.db")));
    expect(untold).to.include({ code: "run_directory_unusable" });
  });

  for (const [how, text] of [
    ["truncated", `{"version":2,"runId"`],
    ["empty", ""],
  ] as const)
    it(`that is ${how} is reported with what is in danger, and what to put back or to remove`, async () => {
      await leaveEarlier();
      await writeFile(temporary.file("run/task.json"), text);
      const refused = await failureOf(claim());
      expect(refused).to.include({ code: "store_lost" });
      expect(refused.message).to.contain(
        "has a task.json beside it that is damaged, and results were written",
      );
      expect(refused.hint).to.match(/^put back what is missing.* remove \S+out.jsonl \S+run$/);
      await rm(temporary.file("run/rollout.db"), { recursive: true });
      expect((await failureOf(claim())).message).to.contain("rollout.db is gone, and results were written");
    });

  it("of a newer version is for the newer rollout alone, be it a run or a coordinator that finds it", async () => {
    await leaveEarlier();
    await writeFile(temporary.file("run/task.json"), `{"version":3}`);
    for (const refused of [
      await failureOf(claim()),
      await failureOf(forgetFinished(temporary.file("run/rollout.db"))),
    ]) {
      expect(refused).to.include({ code: "store_newer", hint: "use the newer rollout" });
      expect(refused.message).to.match(
        /written by a newer rollout: task.json has version 3, this one knows 2$/,
      );
    }
  });

  it("of 0.1 does not count as damaged where a part of it cannot be read", async () => {
    await leaveEarlier();
    await rm(temporary.file("run/results.cursor"));
    await mkdir(temporary.file("run/results.cursor"));
    const refused = await failureOf(claim());
    expect(refused).to.include({ code: "run_directory_unusable" });
    expect(refused.message).to.contain("results.cursor cannot be read: it is a directory");
  });

  it("says that results of 0.1 are damaged, not that there are none", async () => {
    await leaveEarlier();
    await writeFile(temporary.file("run/results.cursor"), "{");
    const files = { output: asked.output, errors: undefined, format: "jsonl", order: "completion" } as const;
    const refused = await failureOf(ResultsWriter.check({ files, directory: await claim() }));
    expect(refused).to.include({ code: "output_not_continued" });
    expect(refused.message).to.contain("task.json is damaged");
  });
});
