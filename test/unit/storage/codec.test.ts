import { crc32 } from "node:zlib";
import { expect } from "chai";
import fc from "fast-check";
import { decodeRecord, encodeRecord, findDamage, okOrFailure } from "../../../src/storage/codec.ts";
import type { Decoded, RecordType } from "../../../src/storage/codec.ts";
import type { Field, Fields } from "../../../src/storage/fields.ts";

interface Lamp {
  readonly name: string;
  readonly watts: number;
  readonly colour: Uint8Array | undefined;
}

const lamp: RecordType<Lamp> = {
  kind: 200,
  name: "lamp",
  version: 3,
  encode: ({ name, watts, colour }) => [name, watts, colour ?? null],
  decode: (fields) => ({
    name: fields.text(0),
    watts: fields.integer(1),
    colour: fields.isNull(2) ? undefined : fields.bytes(2),
  }),
  migrations: {
    1: (older) => [older.text(0), 0],
    2: (older) => [older.text(0), older.integer(1), null],
  },
};
const plain = (version: number, body: readonly Field[], kind = lamp.kind): RecordType<undefined> => ({
  kind,
  name: "lamp",
  version,
  encode: () => body,
  decode: () => undefined,
  migrations: {},
});
const red: Lamp = { name: "red", watts: 40, colour: Uint8Array.of(255, 0, 128) };

describe("record codec", () => {
  it("gives back what was written", () => {
    const decoded = decodeRecord(lamp, "lamps/1", encodeRecord(lamp, "lamps/1", red));
    expect(decoded.kind).to.equal("ok");
    expect(okOrFailure("db", decoded)).to.deep.include({ name: "red", watts: 40 });
    const dark = encodeRecord(lamp, "lamps/1", { ...red, colour: undefined });
    expect(okOrFailure("db", decodeRecord(lamp, "lamps/1", dark)).colour).to.equal(undefined);
  });

  it("has the CRC-32 of key, kind, version and body in a row, as stores have had it from the first on", () => {
    const everyKeyByte = String.fromCharCode(...Array.from({ length: 94 }, (_, at) => at + 0x21));
    for (const key of ["a", "lamps/1", everyKeyByte]) {
      const bytes = Buffer.from(encodeRecord(lamp, key, red));
      const sum = crc32(Buffer.concat([Buffer.from(key), bytes.subarray(0, 2), bytes.subarray(6)]));
      expect(bytes.readUInt32BE(2), key).to.equal(sum);
    }
  });

  it("binary comes back as the same bytes, whichever view it was", () => {
    const wide = Uint8Array.from({ length: 256 }, (_, at) => at);
    for (const colour of [wide, Buffer.from(wide), wide.subarray(3, 7), new Uint8Array(0)]) {
      const read = okOrFailure(
        "db",
        decodeRecord(lamp, "lamps/1", encodeRecord(lamp, "lamps/1", { ...red, colour })),
      );
      expect(Buffer.compare(read.colour ?? wide.subarray(1), colour)).to.equal(0);
    }
  });

  it("plain data of any shape comes back equal", () => {
    const scalar = fc.oneof(
      fc.string(),
      fc.boolean(),
      fc.constant(null),
      fc.maxSafeInteger(),
      // A whole number that is not exact is refused.
      fc
        .double({ noNaN: true, noDefaultInfinity: true })
        .filter((value) => !Number.isInteger(value) || Number.isSafeInteger(value))
        .map((value) => value + 0),
    );
    const field: fc.Arbitrary<Field> = fc.oneof(
      scalar,
      fc.array(scalar, { maxLength: 20 }),
      fc.dictionary(fc.stringMatching(/^[a-z]{1,8}$/), fc.array(scalar, { maxLength: 3 })),
    );
    const any: RecordType<Field> = {
      kind: 1,
      name: "any",
      version: 1,
      encode: (value) => [value],
      decode: (fields) => fields.plain(0) as Field,
      migrations: {},
    };
    fc.assert(
      fc.property(field, (value) => {
        const decoded = decodeRecord(any, "k", encodeRecord(any, "k", value));
        expect(decoded).to.deep.equal({ kind: "ok", value });
      }),
      { numRuns: 300, seed: 7 },
    );
  });

  it("a record that could not be written leaves nothing in the next one", () => {
    const written = encodeRecord(lamp, "lamps/1", red);
    const unreadable = Object.defineProperty(Buffer.from("x"), "length", {
      get: () => {
        throw new Error("it has no length");
      },
    });
    const half = plain(1, ["the first half", unreadable]);
    expect(() => encodeRecord(half, "lamps/1", undefined)).to.throw("it has no length");
    expect(encodeRecord(lamp, "lamps/1", red)).to.deep.equal(written);
  });

  it("a record larger than what is written into comes back, and so does the next", () => {
    for (const size of [2_000, 65_000, 70_000, 1_000_000, 10]) {
      const large = { ...red, colour: new Uint8Array(size).fill(size) };
      const read = okOrFailure("db", decodeRecord(lamp, "lamps/1", encodeRecord(lamp, "lamps/1", large)));
      expect(Buffer.compare(read.colour ?? new Uint8Array(), large.colour)).to.equal(0);
    }
  });

  it("a value under another key is corrupt", () => {
    const bytes = encodeRecord(lamp, "lamps/1", red);
    expect(decodeRecord(lamp, "lamps/2", bytes)).to.deep.equal({
      kind: "corrupt",
      key: "lamps/2",
      reason: "the checksum does not match",
    });
  });

  it("every single flipped bit and every shorter length is corrupt", () => {
    const bytes = encodeRecord(lamp, "lamps/1", red);
    for (let bit = 0; bit < bytes.length * 8; bit++) {
      const flipped = Uint8Array.from(bytes);
      flipped[bit >>> 3] = (flipped[bit >>> 3] ?? 0) ^ (1 << (bit & 7));
      expect(decodeRecord(lamp, "lamps/1", flipped).kind, `bit ${bit}`).to.equal("corrupt");
      expect(findDamage(lamp, "lamps/1", flipped)?.kind, `bit ${bit}`).to.equal("corrupt");
    }
    for (let length = 0; length < bytes.length; length++) {
      expect(decodeRecord(lamp, "lamps/1", bytes.subarray(0, length)).kind).to.equal("corrupt");
    }
  });

  it("a whole record of another kind is corrupt", () => {
    const bytes = encodeRecord(plain(3, ["red", 40, null], 201), "lamps/1", undefined);
    expect(reasonOf(decodeRecord(lamp, "lamps/1", bytes))).to.equal(
      "a record of kind 201 where kind 200 (lamp) belongs",
    );
  });

  it("a newer version is told apart from damage", () => {
    const bytes = encodeRecord(plain(4, ["red"]), "lamps/1", undefined);
    const newer = { kind: "newer", key: "lamps/1", found: 4, known: 3 };
    expect(decodeRecord(lamp, "lamps/1", bytes)).to.deep.equal(newer);
    expect(findDamage(lamp, "lamps/1", bytes)).to.deep.equal(newer);
  });

  it("older versions are migrated one step at a time", () => {
    const first = encodeRecord(plain(1, ["old"]), "lamps/1", undefined);
    const second = encodeRecord(plain(2, ["older", 7]), "lamps/1", undefined);
    const [one, two] = [first, second].map((bytes) =>
      okOrFailure("db", decodeRecord(lamp, "lamps/1", bytes)),
    );
    expect(one).to.deep.equal({ name: "old", watts: 0, colour: undefined });
    expect(two).to.deep.equal({ name: "older", watts: 7, colour: undefined });
  });

  const wrongTuples: readonly (readonly [string, readonly Field[], string])[] = [
    ["too short", ["red"], "field 1 is no number"],
    ["another type", ["red", "40", null], "field 1 is no number"],
    ["not exact", ["red", 1.5, null], "field 1 is no whole number"],
    ["no end", ["red", 1], "field 2 is missing"],
  ];
  for (const [name, body, reason] of wrongTuples) {
    it(`a whole record with a wrong tuple is corrupt, by position: ${name}`, () => {
      const bytes = encodeRecord(plain(3, body), "lamps/1", undefined);
      expect(reasonOf(decodeRecord(lamp, "lamps/1", bytes))).to.equal(`not a lamp record: ${reason}`);
    });
  }

  const unwritable: readonly (readonly [string, unknown])[] = [
    ["undefined", undefined],
    ["undefined in a list", [undefined]],
    ["undefined in a map", { a: undefined }],
    ["not a number", Number.NaN],
    ["infinity", Infinity],
    ["a whole number that is not exact", 2 ** 53],
    ["an instance", new Error("x")],
    ["a bigint", 1n],
    ["a function", () => 1],
    ["a map", new Map()],
  ];
  for (const [name, value] of unwritable) {
    it(`what would not come back is refused when it is written: ${name}`, () => {
      // Past the compiler on purpose: snapshots come with types of their own.
      const type = plain(3, [value as Field]);
      expect(() => encodeRecord(type, "lamps/1", undefined))
        .to.throw(Error)
        .with.property("name", "AssertionFailed");
    });
  }

  it("damage becomes an error of the table that names the key", () => {
    const thrown = (decoded: Decoded<unknown>): unknown => {
      try {
        return okOrFailure("/data/db", decoded);
      } catch (error) {
        return error;
      }
    };
    expect(thrown({ kind: "corrupt", key: "lamps/1", reason: "why" })).to.include({
      code: "store_corrupt",
      message: "the database /data/db is damaged at lamps/1: why",
    });
    expect(thrown({ kind: "newer", key: "lamps/1", found: 4, known: 3 })).to.have.property(
      "code",
      "store_newer",
    );
  });

  it("a decoder's own mistake is not taken for damage", () => {
    const broken: RecordType<Lamp> = {
      ...lamp,
      decode: (_fields: Fields) => {
        throw new TypeError("a bug");
      },
    };
    const bytes = encodeRecord(lamp, "lamps/1", red);
    expect(() => decodeRecord(broken, "lamps/1", bytes)).to.throw(TypeError);
  });
});

function reasonOf(decoded: Decoded<unknown>): string | undefined {
  return decoded.kind === "corrupt" ? decoded.reason : undefined;
}
