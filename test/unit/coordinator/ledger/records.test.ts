import { expect } from "chai";
import { completionsEntry, completionsRecord } from "../../../../src/coordinator/ledger/completions.ts";
import {
  conflictRecord,
  delayedRecord,
  doneRecord,
  failedRecord,
  itemIndexRecord,
  itemRecord,
  returnedRecord,
  runningRecord,
} from "../../../../src/coordinator/ledger/records.ts";
import { placeOf } from "../../../../src/coordinator/ledger/place.ts";
import {
  attemptLogRecord,
  attemptRecord,
  checkpointRecord,
} from "../../../../src/coordinator/ledger/attempt-records.ts";
import { runRecord } from "../../../../src/coordinator/run/run.ts";
import { NEVER_STARTED } from "../../../../src/coordinator/turn/run-terms.ts";
import { submissionRecord } from "../../../../src/coordinator/run/submission.ts";
import { decodeRecord, encodeRecord } from "../../../../src/storage/codec.ts";
import type { RecordType } from "../../../../src/storage/codec.ts";
import { incarnationId, workerId } from "../../../support/world-worker.ts";

const id = Buffer.alloc(32, 5);
const budgets = {
  ...{ attempt: 7, charged: 2, lost: 1 },
  ...{ failedBy: workerId(3), blamed: workerId(2), isApart: true, returnedAtMs: [11, 12] },
  tried: "",
};
const place = placeOf(3, 99);
/** Nothing has happened to it. */
const untouched = {
  ...{ attempt: 1, charged: 0, lost: 0 },
  ...{ failedBy: "", blamed: "", isApart: false, returnedAtMs: [], tried: "" },
};
const held = { id, worker: workerId(1), incarnation: incarnationId(2), epoch: 8, number: 9 };

const final = {
  ...{ attempt: 3, worker: workerId(4), finishedAtWallMs: 5.5, completion: 10 },
  ...{ pluginVersion: "v2", startedAtWallMs: 8, durationMs: 9 },
};
const spent = { charged: 2, lost: 6, isApart: true };
const task = { digest: Buffer.alloc(32, 6), plugin: "infer", summary: "infer in words" };
const countedFrom = { wallMs: 7.5, done: 8, failures: 9 };

/** Each record with values that are all different, so that two fields that are swapped show. */
const ROWS: Readonly<Record<string, [RecordType<never>, unknown]>> = {
  item: [itemRecord, { id, payload: Buffer.from("{}"), key: "", label: "" }],
  "item with a key": [itemRecord, { id, payload: Buffer.from(""), key: "k", label: "" }],
  "item with a label": [itemRecord, { id, payload: Buffer.from(""), key: "", label: "l" }],
  "item index": [itemIndexRecord, { place, counts: [{ submission: "01A", count: 3 }] }],
  "returned item": [returnedRecord, budgets],
  "delayed item": [delayedRecord, budgets],
  "running item": [runningRecord, { ...budgets, ...held, version: "", trial: "" }],
  "running item of a version": [runningRecord, { ...budgets, ...held, version: "v2", trial: "" }],
  "running item on trial": [runningRecord, { ...untouched, ...held, version: "v2", trial: "01R" }],
  "returned item that was tried": [returnedRecord, { ...untouched, tried: "01R" }],
  "done item": [doneRecord, { id, ...final, digest: Buffer.alloc(32, 1), output: Buffer.from("out") }],
  "failed item": [
    failedRecord,
    { id, ...final, class: "poison", message: "why", ...spent, response: new Uint8Array() },
  ],
  "failed item that a server refused": [
    failedRecord,
    { id, ...final, class: "error", message: "why", ...spent, response: Buffer.from("{}") },
  ],
  conflict: [
    conflictRecord,
    {
      id,
      attempt: 3,
      worker: workerId(4),
      digest: Buffer.alloc(32, 1),
      output: Buffer.from("out"),
      arrivedAtWallMs: 5,
    },
  ],
  completions: [completionsRecord, [place, placeOf(0, 1)]],
  run: [runRecord, { state: "Open.Paused", pauseReason: "too many fail", task, countedFrom }],
  "run without a task": [
    runRecord,
    { state: "Open.Active", pauseReason: null, task: null, countedFrom: NEVER_STARTED },
  ],
  submission: [submissionRecord, { added: 4, known: 6, duplicates: 5 }],
  attempt: [
    attemptRecord,
    {
      ...{ attempt: 17, worker: workerId(4), class: "lost", message: "why", endedAtWallMs: 12.5 },
      ...{ logBytes: 11, pluginVersion: "v2", startedAtWallMs: 8, durationMs: 9.25 },
    },
  ],
  "attempt log": [attemptLogRecord, { attempt: 17, log: Buffer.from("said") }],
  checkpoint: [checkpointRecord, { content: Buffer.from("half way"), version: "" }],
  "checkpoint of a version": [checkpointRecord, { content: Buffer.from("half way"), version: "v2" }],
} as unknown as Record<string, [RecordType<never>, unknown]>;

describe("the records of the ledger", () => {
  for (const [name, [type, value]] of Object.entries(ROWS)) {
    it(`read a row back as it was written: ${name}`, () => {
      const bytes = encodeRecord(type, "key", value as never);
      expect(decodeRecord(type, "key", bytes)).to.deep.equal({ kind: "ok", value });
    });
  }

  it("are as long as before there were releases, for items that none concerns", () => {
    const fields = (type: RecordType<never>, value: object): number => type.encode(value as never).length;
    const running = runningRecord as unknown as RecordType<never>;
    const returned = returnedRecord as unknown as RecordType<never>;
    const unstamped = { ...held, version: "", trial: "" };
    expect(fields(running, { ...untouched, ...unstamped })).to.equal(8);
    expect(fields(running, { ...untouched, isApart: true, ...unstamped })).to.equal(12);
    expect(fields(returned, untouched)).to.equal(3);
    expect(fields(returned, { ...untouched, failedBy: "w" })).to.equal(7);
    const left = checkpointRecord.encode({ content: Buffer.from("c"), version: "" });
    expect(left).to.have.length(1);
  });

  it("are of different kinds, so that none is taken for another", () => {
    const types = new Set(Object.values(ROWS).map(([type]) => type));
    expect(new Set([...types].map(({ kind }) => kind)).size).to.equal(types.size);
  });

  it("refuse what is no place, no ULID, no class of failure", () => {
    const reasonOf = (type: RecordType<never>, tuple: readonly unknown[]): unknown => {
      const bytes = encodeRecord({ ...type, encode: () => tuple as never }, "key", undefined as never);
      const decoded = decodeRecord(type, "key", bytes);
      return decoded.kind === "corrupt" ? decoded.reason : decoded;
    };
    expect(reasonOf(itemIndexRecord as never, ["x", []])).to.equal(
      "not a item index record: field 0 is no place",
    );
    expect(reasonOf(runningRecord as never, [id, id, id, 0, 0, 0, 0, 0])).to.equal(
      "not a running item record: field 1 is no ULID",
    );
    const ulid = Buffer.alloc(16);
    const failed = [id, 1, ulid, 0, "", 0, 0, 0, "lost", "", 0, 0, false];
    expect(reasonOf(failedRecord as never, failed)).to.equal(
      "not a failed item record: field 8 is no class of failure",
    );
    expect(reasonOf(attemptRecord as never, [1, ulid, "success", "", "", 0, 0, 0, 0])).to.equal(
      "not a attempt record: field 2 is no class of an attempt",
    );
    expect(reasonOf(completionsRecord as never, [["x"]])).to.equal(
      "not a completions record: field 0 is no place",
    );
  });

  it("keep completions in the order of their numbers", () => {
    const keys = [0, 9, 15, 16, 4_096].map((number) => completionsEntry(number, [place]).key);
    expect([...keys].sort()).to.deep.equal(keys);
  });
});
