import { expect } from "chai";
import fc from "fast-check";
import { AssertionFailed } from "../../../src/base/assert.ts";
import {
  epoch,
  isUlid,
  newUlid,
  parseUlid,
  parseUlidBytes,
  ulidFromBytes,
  ulidToBytes,
} from "../../../src/base/ids.ts";
import type { WorkerId } from "../../../src/base/ids.ts";
import { seededRandom } from "../../../src/base/random.ts";
import { VirtualClock } from "../../support/virtual-clock.ts";

const ulidBytes = fc.uint8Array({ minLength: 16, maxLength: 16 });
const newWorkerId = (clock: VirtualClock, seed = 1): WorkerId => newUlid<WorkerId>(clock, seededRandom(seed));

describe("a ULID", () => {
  it("is the same after it was converted to text or bytes and back", () => {
    fc.assert(
      fc.property(ulidBytes, (bytes) => {
        const text = ulidFromBytes<WorkerId>(bytes);
        expect(isUlid(text)).to.equal(true);
        expect(ulidToBytes(text)).to.deep.equal(bytes);
        expect(parseUlidBytes<WorkerId>(bytes)).to.equal(text);
        expect(parseUlid<WorkerId>(text)).to.equal(text);
      }),
    );
  });

  it("is told from others that end with the same byte, however often they alternate", () => {
    const [one, other] = [new Uint8Array(16).fill(1), Uint8Array.from([2, ...new Uint8Array(15).fill(1)])];
    const texts = [one, other].map((bytes) => ulidFromBytes<WorkerId>(bytes));
    expect(texts[0]).to.not.equal(texts[1]);
    for (let time = 0; time < 3; time++)
      expect([one, other].map((bytes) => ulidFromBytes<WorkerId>(bytes))).to.deep.equal(texts);
    // The bytes that it was read from are somebody else's, and are written over.
    one.fill(3);
    expect(ulidFromBytes<WorkerId>(one)).to.not.equal(texts[0]);
    expect(ulidFromBytes<WorkerId>(new Uint8Array(16).fill(1))).to.equal(texts[0]);
  });

  it("is written as the specification says", () => {
    const bytes = (hex: string): Uint8Array => Uint8Array.from(Buffer.from(hex, "hex"));
    expect(ulidFromBytes(bytes("00".repeat(16)))).to.equal("0".repeat(26));
    expect(ulidFromBytes(bytes("ff".repeat(16)))).to.equal(`7${"Z".repeat(25)}`);
    expect(ulidFromBytes(bytes("01563e3ab5d3d6764c61efb99302bd5b"))).to.equal("01ARZ3NDEKTSV4RRFFQ69G5FAV");
  });

  it("keeps the same order as text and as bytes", () => {
    fc.assert(
      fc.property(ulidBytes, ulidBytes, (left, right) => {
        const texts = [ulidFromBytes<WorkerId>(left), ulidFromBytes<WorkerId>(right)].sort();
        expect(texts[0]).to.equal(ulidFromBytes(Buffer.compare(left, right) <= 0 ? left : right));
      }),
    );
  });

  it("of a later millisecond sorts after one of an earlier", () => {
    const max = 2 ** 48 - 1;
    fc.assert(
      fc.property(fc.integer({ min: 0, max }), fc.integer({ min: 0, max }), fc.nat(), (a, b, seed) => {
        fc.pre(a !== b);
        const [early, late] = [
          new VirtualClock({ wallMs: Math.min(a, b) }),
          new VirtualClock({ wallMs: Math.max(a, b) }),
        ];
        expect(newWorkerId(early, seed) < newWorkerId(late, seed + 1)).to.equal(true);
      }),
    );
  });

  it("carries its time in its first 48 bits, whole milliseconds", () => {
    const bytes = ulidToBytes(newWorkerId(new VirtualClock({ wallMs: 0x0102_0304_0506 + 0.7 })));
    expect([...bytes.subarray(0, 6)]).to.deep.equal([1, 2, 3, 4, 5, 6]);
  });

  it("is a new one each time, also within one millisecond", () => {
    const clock = new VirtualClock();
    const random = seededRandom(1);
    const made = Array.from({ length: 1_000 }, () => newUlid<WorkerId>(clock, random));
    expect(new Set(made).size).to.equal(made.length);
  });

  const refused: Record<string, string> = {
    "in lower case": "01arz3ndektsv4rrffq69g5fav",
    "with a letter that is not in the alphabet (I)": "01ARZ3NDEKTSV4RRFFQ69G5FAI",
    "with a letter that is not in the alphabet (L)": "01ARZ3NDEKTSV4RRFFQ69G5FAL",
    "with a letter that is not in the alphabet (O)": "01ARZ3NDEKTSV4RRFFQ69G5FAO",
    "with a letter that is not in the alphabet (U)": "01ARZ3NDEKTSV4RRFFQ69G5FAU",
    "of more than 128 bits": "81ARZ3NDEKTSV4RRFFQ69G5FAV",
    "too short": "01ARZ3NDEKTSV4RRFFQ69G5FA",
    "too long": "01ARZ3NDEKTSV4RRFFQ69G5FAVV",
    "with a line end behind it": "01ARZ3NDEKTSV4RRFFQ69G5FAV\n",
    "with a space before it": " 01ARZ3NDEKTSV4RRFFQ69G5FAV",
    "that is empty": "",
  };
  for (const [what, text] of Object.entries(refused))
    it(`is not read from a text ${what}`, () => {
      expect([isUlid(text), parseUlid(text)]).to.deep.equal([false, undefined]);
      expect(() => ulidToBytes(text as WorkerId)).to.throw(AssertionFailed);
    });

  it("is read from exactly 16 bytes", () => {
    for (const length of [0, 15, 17, 26]) {
      expect(parseUlidBytes(new Uint8Array(length))).to.equal(undefined);
      expect(() => ulidFromBytes(new Uint8Array(length))).to.throw(AssertionFailed);
    }
  });
});

describe("an epoch", () => {
  it("is a whole number from 0", () => {
    for (const value of [0, 1, Number.MAX_SAFE_INTEGER]) expect(epoch(value)).to.equal(value);
    for (const value of [-1, 0.5, NaN, Infinity, 2 ** 53])
      expect(() => epoch(value)).to.throw(AssertionFailed);
  });
});
