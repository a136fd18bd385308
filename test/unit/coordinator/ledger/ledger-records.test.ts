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
} from "../../../../src/coordinator/ledger/ledger-records.ts";
import { placeOf } from "../../../../src/coordinator/ledger/place.ts";
import { runRecord } from "../../../../src/coordinator/run-view.ts";
import { submissionRecord } from "../../../../src/coordinator/submission-record.ts";
import { decodeRecord, encodeRecord } from "../../../../src/storage/codec.ts";
import type { RecordType } from "../../../../src/storage/codec.ts";
import { incarnationId, workerId } from "../../../support/reactor-harness.ts";

const id = Buffer.alloc(32, 5);
const budgets = { attempt: 7, charged: 2, lost: 1 };
const place = placeOf(3, 99);

/** Each record with values that are all different, so that two fields that are swapped show. */
const ROWS: Readonly<Record<string, [RecordType<never>, unknown]>> = {
  item: [itemRecord, { id, payload: Buffer.from("{}"), key: "" }],
  "item with a key": [itemRecord, { id, payload: Buffer.from(""), key: "k" }],
  "item index": [itemIndexRecord, { place, counts: [{ submission: "01A", count: 3 }] }],
  "returned item": [returnedRecord, budgets],
  "delayed item": [delayedRecord, budgets],
  "running item": [
    runningRecord,
    { ...budgets, id, worker: workerId(1), incarnation: incarnationId(2), epoch: 8, number: 9 },
  ],
  "done item": [
    doneRecord,
    {
      id,
      attempt: 3,
      worker: workerId(4),
      digest: Buffer.alloc(32, 1),
      output: Buffer.from("out"),
      finishedAtWallMs: 5.5,
    },
  ],
  "failed item": [
    failedRecord,
    { id, attempt: 3, class: "poison", message: "why", finishedAtWallMs: 1_700_000_000_000 },
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
  run: [runRecord, { state: "Open+Paused", pauseReason: "too many fail" }],
  "active run": [runRecord, { state: "Open+Active", pauseReason: null }],
  submission: [submissionRecord, { added: 4, known: 6 }],
} as unknown as Record<string, [RecordType<never>, unknown]>;

describe("the records of the ledger", () => {
  for (const [name, [type, value]] of Object.entries(ROWS)) {
    it(`read a row back as it was written: ${name}`, () => {
      const bytes = encodeRecord(type, "key", value as never);
      expect(decodeRecord(type, "key", bytes)).to.deep.equal({ kind: "ok", value });
    });
  }

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
    expect(reasonOf(failedRecord as never, [id, 1, "lost", "", 0])).to.equal(
      "not a failed item record: field 2 is no class of failure",
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
