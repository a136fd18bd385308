import { expect } from "chai";
import fc from "fast-check";
import msgpack from "msgpack-lite";
import { readTuple } from "../../../src/storage/tuple-reader.ts";

const RUNS = 500;
const AT = 6;

/** As rows are: a record at the beginning of memory of its own. */
function record(tuple: unknown): Buffer {
  const body = msgpack.encode(tuple);
  const bytes = Buffer.from(new ArrayBuffer(AT + body.length));
  bytes.set(body, AT);
  return bytes;
}

const text = fc.oneof(
  fc.string({ unit: "binary", maxLength: 40 }),
  fc.constantFrom(255, 256, 65_535, 65_536).map((length) => "x".repeat(length)),
);
const binary = fc.oneof(
  fc.uint8Array({ maxLength: 300 }),
  fc.constantFrom(255, 256, 65_535, 65_536).map((length) => new Uint8Array(length).fill(7)),
);
const number = fc.oneof(
  fc.integer(),
  fc.maxSafeInteger(),
  fc.double({ noNaN: true, noDefaultInfinity: true }),
  fc.constantFrom(-129, -128, -33, -32, -1, 0, 127, 128, 255, 256, 32_768, 65_535, 65_536, 2 ** 31, 2 ** 32),
);
const field = fc.letrec<{ field: unknown }>((tie) => ({
  field: fc.oneof(
    { maxDepth: 3 },
    fc.constantFrom(null, false, true),
    text,
    binary.map((bytes) => Buffer.from(bytes)),
    number,
    fc.array(tie("field"), { maxLength: 20 }),
  ),
})).field;

describe("the reader of tuples", () => {
  it("reads what the library reads, wherever the record lies", () => {
    fc.assert(
      fc.property(fc.array(field, { maxLength: 20 }), (tuple) => {
        const alone = record(tuple);
        const among = Buffer.alloc(4 * alone.length).subarray(3, 3 + alone.length);
        among.set(alone);
        const read: unknown = msgpack.decode(alone.subarray(AT));
        expect(readTuple(alone, AT)).to.deep.equal(read);
        expect(readTuple(among, AT)).to.deep.equal(read);
      }),
      { numRuns: RUNS },
    );
  });

  it("leaves what is cut off, and other forms, to the library", () => {
    const whole = record(["text", Buffer.from([1, 2, 3]), 70_000, 1.5, [300, -5]]);
    for (let length = AT; length < whole.length; length++) {
      const cut = Buffer.from(new ArrayBuffer(length));
      whole.copy(cut);
      expect(readTuple(cut, AT), `${length} bytes`).to.equal(undefined);
    }
    for (const other of [{ a: 1 }, [{ a: 1 }], 5, "text", null])
      expect(readTuple(record(other), AT)).to.equal(undefined);
  });

  it("keeps no memory alive but the record's own", () => {
    const alone = record([Buffer.from([1, 2, 3])]);
    const large = Buffer.alloc(100_000);
    const among = large.subarray(500, 500 + alone.length);
    among.set(alone);
    const [[own], [copied]] = [readTuple(alone, AT) as [Buffer], readTuple(among, AT) as [Buffer]];
    expect([own.buffer === alone.buffer, copied.buffer === large.buffer]).to.deep.equal([true, false]);
  });
});
