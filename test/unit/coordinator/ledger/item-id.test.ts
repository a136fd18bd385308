import { createHash } from "node:crypto";
import { expect } from "chai";
import type { ItemContent } from "../../../../src/coordinator/ledger/place.ts";
import {
  eventItemIdOf,
  insideItemIdOf,
  ITEM_ID_BYTES,
  itemIdOf,
  itemIdText,
  itemKeyOf,
} from "../../../../src/coordinator/ledger/place.ts";
import fc from "fast-check";

const TASK = new Uint8Array(32).fill(1);

function contentOf(parts: Partial<ItemContent> = {}): ItemContent {
  return { taskDigest: TASK, payload: Buffer.from("{}"), key: "", sampleIndex: 0, ...parts };
}

const content: fc.Arbitrary<ItemContent> = fc.record({
  // Short, so that contents that only differ in where one field ends and the next begins are met often.
  taskDigest: fc.uint8Array({ maxLength: 2, max: 98, min: 97 }),
  payload: fc.uint8Array({ maxLength: 3, max: 98, min: 97 }),
  key: fc.string({ maxLength: 2, unit: fc.constantFrom("a", "b") }),
  sampleIndex: fc.integer({ min: 0, max: 2 }),
});

describe("the id of an item", () => {
  it("is the same for ever: resubmitted years later, a line is the same item", () => {
    const golden: [Partial<ItemContent>, string][] = [
      [{}, "mrhOZo0SazXliGJzBF15qY1godwsKp_tewg9gQhICUE"],
      [{ sampleIndex: 1 }, "Swuomi9S2l8joxTHIYbnokA303u4D8TigXPO_FmxYo4"],
      [{ key: "é" }, "QEbuVTvMdp42zO3MftSf0evgUk8W00PwRtXzwVrvMTM"],
      [{ payload: Buffer.from("12345678901234567890") }, "SCbYVa2fWwUMNeGAg3gqAfa7weFp15wMpu3wwgLFaH4"],
    ];
    for (const [parts, text] of golden) expect(itemIdText(itemIdOf(contentOf(parts)))).to.equal(text);
  });

  it("is made in one way, however large the payload", () => {
    for (const bytes of [0, 1, 16_384, 16_385, 100_000]) {
      const lengths = Buffer.alloc(16);
      for (const [at, length] of [TASK.length, bytes, 3, 7].entries()) lengths.writeUInt32BE(length, 4 * at);
      const payload = Buffer.alloc(bytes, "x");
      const recipe = createHash("sha256")
        .update("rollout item 1\0")
        .update(lengths)
        .update(TASK)
        .update(payload);
      const id = itemIdOf(contentOf({ payload, key: "é!", sampleIndex: 7 }));
      expect(Buffer.from(id).equals(recipe.update("é!").digest()), String(bytes)).to.equal(true);
    }
  });

  it("is made of the key and the event id where its input names one, whatever the payload", () => {
    const lengths = Buffer.alloc(12);
    for (const [at, length] of [TASK.length, 3, 2].entries()) lengths.writeUInt32BE(length, 4 * at);
    const recipe = createHash("sha256")
      .update("rollout event 1\0")
      .update(lengths)
      .update(TASK)
      .update("é!e7");
    const id = eventItemIdOf({ taskDigest: TASK, key: "é!", eventId: "e7" });
    expect(Buffer.from(id).equals(recipe.digest())).to.equal(true);
  });

  it("is made of the asker and the number of what it asks for where a result has asked for it", () => {
    const asker = itemIdOf(contentOf());
    for (const index of [0, 1, 256]) {
      const counted = Buffer.alloc(4);
      counted.writeUInt32BE(index, 0);
      const recipe = createHash("sha256").update("rollout mail 1\0").update(asker).update(counted);
      expect(itemIdText(insideItemIdOf(asker, index))).to.equal(itemIdText(recipe.digest()));
    }
  });

  it("is the same for the same content and another for any other", () => {
    fc.assert(
      fc.property(content, content, (one, other) => {
        const isSame =
          Buffer.compare(one.taskDigest, other.taskDigest) === 0 &&
          Buffer.compare(one.payload, other.payload) === 0 &&
          one.key === other.key &&
          one.sampleIndex === other.sampleIndex;
        expect(itemIdText(itemIdOf(one)) === itemIdText(itemIdOf(other))).to.equal(isSame);
      }),
      { numRuns: 2_000 },
    );
  });

  it("does not let one field run into the next", () => {
    const texts = [
      contentOf({ taskDigest: Buffer.from("ab"), payload: Buffer.from("c"), key: "" }),
      contentOf({ taskDigest: Buffer.from("a"), payload: Buffer.from("bc"), key: "" }),
      contentOf({ taskDigest: Buffer.from("a"), payload: Buffer.from("b"), key: "c" }),
    ].map((each) => itemIdText(itemIdOf(each)));
    expect(new Set(texts).size).to.equal(3);
  });

  it("differs for numbers that a parser would make equal", () => {
    const [one, other] = ["12345678901234567890", "12345678901234567891"].map((text) =>
      itemIdText(itemIdOf(contentOf({ payload: Buffer.from(text) }))),
    );
    expect(one).to.not.equal(other);
  });

  it("has 32 bytes, and two texts that name it alone", () => {
    const bytes = Uint8Array.from({ length: ITEM_ID_BYTES + 2 }, (_, at) => (at * 37) % 256).subarray(1, -1);
    expect(itemIdOf(contentOf())).to.have.length(ITEM_ID_BYTES);
    expect(Buffer.from(itemKeyOf(bytes), "latin1").equals(bytes)).to.equal(true);
    expect(Buffer.from(itemIdText(bytes), "base64url").equals(bytes)).to.equal(true);
    expect(itemIdText(bytes)).to.match(/^[\w-]{43}$/);
  });
});
