import { expect } from "chai";
import fc from "fast-check";
import { addToSum, ledgerRecord, SEGMENTS, Tally } from "../../../../src/coordinator/ledger/tally.ts";
import type { LedgerNumbers } from "../../../../src/coordinator/ledger/tally.ts";
import { decodeRecord, encodeRecord, okOrFailure, recordChecksum } from "../../../../src/storage/codec.ts";
import { LEDGER_KEY, RECORD_KIND } from "../../../../src/storage/keys.ts";

/** Some record, so that there is a checksum. */
function recordOf(text: string): Uint8Array {
  const type = { kind: RECORD_KIND.item, name: "item", version: 1, migrations: {}, decode: () => text };
  return encodeRecord({ ...type, encode: () => [text] }, "key", text);
}

function readBack(tally: Tally): LedgerNumbers {
  const { key, value } = tally.entry();
  expect(key).to.equal(LEDGER_KEY);
  return okOrFailure("memory", decodeRecord(ledgerRecord, key, value));
}

describe("the ledger's numbers", () => {
  it("are read back as they were written", () => {
    const tally = new Tally();
    for (const [at, segment] of SEGMENTS.entries())
      for (let row = 0; row <= at; row++) tally.added(segment, recordOf(`${segment} ${row}`));
    tally.openCursor(-3, 17);
    tally.moveCursor(5, 2 ** 40);
    tally.takeSequence();
    tally.takeCompletion();
    expect(readBack(tally)).to.deep.equal(tally.numbers);
    expect(new Tally(readBack(tally)).numbers).to.deep.equal(tally.numbers);
  });

  it("are zero in a new ledger", () => {
    expect(new Tally().numbers).to.deep.equal(readBack(new Tally()));
    expect(new Tally().pending).to.equal(0);
  });

  it("do not change in a copy that a caller holds", () => {
    const tally = new Tally();
    const before = tally.numbers;
    tally.added("items", recordOf("one"));
    tally.openCursor(0, 1);
    expect(before).to.deep.equal(new Tally().numbers);
  });

  it("count what is left, whatever the order of coming and going", () => {
    fc.assert(
      fc.property(fc.array(fc.tuple(fc.string(), fc.boolean())), (rows) => {
        const tally = new Tally();
        const stays = rows.filter(([, leaves]) => !leaves).map(([text]) => recordOf(text));
        for (const [text] of rows) tally.added("running", recordOf(text));
        for (const [text, leaves] of rows)
          if (leaves) tally.removed("running", recordChecksum(recordOf(text)));
        const sum = stays.reduce((so, row) => addToSum(so, recordChecksum(row)), 0);
        expect(tally.matches("running", stays.length, sum)).to.equal(true);
        expect(tally.matches("running", stays.length + 1, sum)).to.equal(false);
        expect(tally.matches("running", stays.length, addToSum(sum, 1))).to.equal(false);
      }),
    );
  });

  it("stay exact for more rows than a number holds checksums of", () => {
    const largest = 2 ** 32 - 1;
    let [sum, exact] = [0, 0n];
    for (let row = 0; row < 5_000_000; row++) sum = addToSum(sum, largest);
    exact = (5_000_000n * BigInt(largest)) % 2n ** 48n;
    expect(BigInt(sum)).to.equal(exact);
  });

  it("leave the cursor of a known priority where it is when more items of it come", () => {
    const tally = new Tally();
    tally.openCursor(0, 4);
    tally.openCursor(0, 9);
    expect(tally.cursors.get(0)).to.equal(4);
  });

  it("are refused when a segment is missing", () => {
    const short = { ...ledgerRecord, encode: () => [[[0, 0]], 0, 0, []] };
    const value = encodeRecord(short, LEDGER_KEY, new Tally().numbers);
    expect(decodeRecord(ledgerRecord, LEDGER_KEY, value)).to.deep.equal({
      kind: "corrupt",
      key: LEDGER_KEY,
      reason: "not a ledger record: field 0 misses a segment",
    });
  });
});
