import { expect } from "chai";
import { seededRandom } from "../../../src/base/random.ts";
import { jsonFaultAt } from "../../../src/client/json-fault.ts";

const WHOLE = '{"a": [1, -2.5e+3, {"b": null}, []], "\\u00e9\\n": {}, "c": "x y" , "d":[true,[false]]}';
const MARKS = '{}[],:"\\ \t0-.e1tn\u0001é'.split(/(?:)/u);

function isJson(text: string): boolean {
  try {
    JSON.parse(text);
    return true;
  } catch {
    return false;
  }
}

describe("where a text stops being JSON", () => {
  it("is the position of the first character that JSON does not allow there", () => {
    for (const [text, at] of [
      ["tru", 0],
      ["{'a':1}", 1],
      ['{"a" 1}', 5],
      ['{"a":1,}', 7],
      ["[1,]", 3],
      ["[1 2]", 3],
      ["1 2", 2],
      ["01", 1],
      ["1.", 1],
      ['"a\\x"', 2],
      ['"a\tb"', 2],
      ['{"a":[1,2}', 9],
      ["NaN", 0],
    ] as const)
      expect(jsonFaultAt(text), text).to.equal(at);
  });

  it("is the end of the text when more should follow", () => {
    for (const text of ["", '{"a":', '{"a":1', "[", '"abc', "[1,"])
      expect(jsonFaultAt(text), text).to.equal(text.length);
  });

  it("is undefined for JSON, and a position for any other text", () => {
    const random = seededRandom(7);
    const below = (count: number): number => Math.floor(random.unit() * count);
    let refused = 0;
    for (let each = 0; each < 5_000; each++) {
      const at = below(WHOLE.length);
      const text = WHOLE.slice(0, at) + (MARKS[below(MARKS.length + 1)] ?? "") + WHOLE.slice(at + below(3));
      const fault = jsonFaultAt(text);
      expect(fault === undefined, text).to.equal(isJson(text));
      if (fault === undefined) continue;
      refused++;
      expect(fault, text).to.be.at.most(text.length);
      expect(
        jsonFaultAt(text.slice(0, fault)) ?? fault,
        "what stands before it is only not finished",
      ).to.equal(fault);
    }
    expect(refused).to.be.greaterThan(1_000);
  });

  it("is found in long and in deep texts", () => {
    expect(jsonFaultAt(`["${"x".repeat(2_000_000)}" 1`)).to.equal(2_000_004);
    expect(jsonFaultAt("[".repeat(500_000))).to.equal(500_000);
  });
});
