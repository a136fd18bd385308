import { expect } from "chai";
import { RolloutError } from "../../../src/base/errors.ts";
import { inputLines } from "../../../src/client/input-lines.ts";
import { isField, namesIn } from "../../../src/client/item-fields.ts";
import type { ItemFields } from "../../../src/client/item-fields.ts";
import { jsonItems } from "../../../src/client/submit.ts";
import type { NamesOf } from "../../../src/client/submit.ts";

const key = (line: string, field = "k"): string => {
  const named = namesIn(line, { key: field });
  return "fault" in named ? named.fault : named.key;
};

describe("the key that a line names", () => {
  for (const [line, field, expected] of [
    [`{"k":"order 17"}`, "k", "order 17"],
    [`{"k":17}`, "k", "17"],
    [`{"k":-3}`, "k", "-3"],
    [`{"k":12345678901234567890}`, "k", "12345678901234567890"],
    [`{"a/b":"slash"}`, "a/b", "slash"],
    [`{"order":{"id":[7,8]}}`, "/order/id/1", "8"],
    [`{"a/b":{"~":"escaped"}}`, "/a~1b/~0", "escaped"],
    [`{"k":"${"é".repeat(128)}"}`, "k", "é".repeat(128)],
  ] as const)
    it(`is ${expected.slice(0, 24)} in ${line.slice(0, 40)} by ${field}`, () => {
      expect(key(line, field)).to.equal(expected);
    });

  for (const [line, field, fault] of [
    [`{"x":1}`, "k", "it has no k, which is its key"],
    [`{"order":{}}`, "/order/id", "it has no /order/id, which is its key"],
    [`"k"`, "k", "it has no k, which is its key"],
    [`{"k":1.5}`, "k", "is a number that is no integer"],
    [`{"k":1e400}`, "k", "is a number that is no integer"],
    [`{"k":true}`, "k", "is a boolean: it has to be a text or an integer"],
    [`{"k":null}`, "k", "k, its key, is null"],
    [`{"k":["a"]}`, "k", "is a list"],
    [`{"k":{}}`, "k", "is an object"],
    [`{"k":""}`, "k", "has 0 bytes: its key has 1 to 256"],
    [`{"k":"${"é".repeat(129)}"}`, "k", "has 258 bytes"],
    [`{"k":"a\\u0000b"}`, "k", "has characters that cannot be shown: a\\u0000b"],
    [`{"k":"a\\ud800"}`, "k", "has characters that cannot be shown"],
    [`{"__proto__":{"k":"inherited"}}`, "k", "it has no k"],
  ] as const)
    it(`is refused in ${line.slice(0, 40)} by ${field}`, () => {
      expect(key(line, field)).to.contain(fault);
    });

  it("comes with its event id, which has the same rules", () => {
    const names = (line: string): unknown => namesIn(line, { key: "k", eventId: "e" });
    expect(names(`{"k":1,"e":"first"}`)).to.deep.equal({ key: "1", eventId: "first" });
    expect(names(`{"k":1}`)).to.deep.equal({ fault: "it has no e, which is its event id" });
  });

  it("is found by a member's name or a JSON pointer", () => {
    expect(["k", "a b", "/a", "/a/0/b~1c~0", "/"].map(isField)).to.deep.equal([true, true, true, true, true]);
    expect(["", "/a~", "/a~2"].map(isField)).to.deep.equal([false, false, false]);
  });
});

async function codeOf(items: AsyncIterable<unknown>): Promise<readonly [number, unknown]> {
  let count = 0;
  try {
    for await (const item of items) count += item === undefined ? 0 : 1;
  } catch (error) {
    if (error instanceof RolloutError) return [count, { code: error.code, ...error.params }];
    throw error;
  }
  return [count, undefined];
}

describe("items of keys", () => {
  async function* chunks(text: string): AsyncGenerator<Uint8Array> {
    yield Buffer.from(text);
  }
  const lines = (text: string, fields: ItemFields): AsyncGenerator =>
    inputLines(chunks(text), { name: "in", kind: "json", lineBytesMax: 100, fields });

  it("of a file are refused by the number of the line, empty ones counted", async () => {
    expect(await codeOf(lines(`{"k":1}\n\n{"x":1}\n`, { key: "k" }))).to.deep.equal([
      1,
      { code: "key_invalid", file: "in", line: "3", reason: "it has no k, which is its key" },
    ]);
  });

  async function named(values: readonly unknown[], names: NamesOf): Promise<unknown[]> {
    const found: unknown[] = [];
    for await (const line of jsonItems(values, 100, names))
      if (!(line instanceof Uint8Array)) found.push([String(line.payload), line.key, line.eventId]);
    return found;
  }

  it("of a program have them by field or by function", async () => {
    expect(
      await named([{ k: 1, e: "x" }, Buffer.from(`{"k":"a","e":2}`)], { key: "k", id: "e" }),
    ).to.deep.equal([
      [`{"k":1,"e":"x"}`, "1", "x"],
      [`{"k":"a","e":2}`, "a", "2"],
    ]);
    const byFunction = { key: (item: unknown) => (item as { n: number }).n % 2, id: "n" };
    expect(await named([{ n: 3 }, { n: 4 }], byFunction)).to.deep.equal([
      [`{"n":3}`, "1", "3"],
      [`{"n":4}`, "0", "4"],
    ]);
  });

  it("of a program are refused by their number, whatever its function gives", async () => {
    const refused = async (names: NamesOf): Promise<unknown> =>
      (await codeOf(jsonItems([{ k: 1 }], 100, names)))[1];
    expect(await refused({ key: "x" })).to.include({ code: "key_invalid", file: "the items", line: "1" });
    expect(await refused({ key: () => undefined as unknown as string })).to.include({ code: "key_invalid" });
    expect(await refused({ key: () => "\n" })).to.include({ code: "key_invalid" });
    expect(await refused({ key: () => "a", id: "x" })).to.include({ code: "key_invalid" });
  });
});
