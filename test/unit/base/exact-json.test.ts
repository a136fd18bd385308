import { expect } from "chai";
import fc from "fast-check";
import { formatJson, parseJson } from "../../../src/base/exact-json.ts";

/** Numbers as somebody may write them, of which many would come out otherwise. */
const NUMBERS = [
  ...[
    "0",
    "-0",
    "7",
    "-12",
    "999999999999999",
    "9007199254740993",
    "12345678901234567890",
    "-1234567890123456",
  ],
  ...["1.5", "1.50", "0.1", "-0.0", "1e5", "1E+2", "3e-7", "1e400", "10e0"],
];

describe("exact JSON", () => {
  it("is written as it was read, whatever its numbers look like", () => {
    const member = fc.oneof(
      { weight: 3, arbitrary: fc.constantFrom(...NUMBERS) },
      fc.integer().map(String),
      fc.double({ noNaN: true, noDefaultInfinity: true }).map(String),
      fc.string().map((text) => JSON.stringify(text)),
      fc.constantFrom("true", "null", "[]"),
    );
    fc.assert(
      fc.property(fc.array(member, { maxLength: 4 }), fc.array(member, { maxLength: 4 }), (list, more) => {
        const text = `{"list":[${list.join(",")}],"more":{${more.map((one, at) => `"k${at}":${one}`).join(",")}}}`;
        expect(formatJson(parseJson(text))).to.equal(text);
      }),
    );
  });

  it("is undefined where the text is no JSON", () => {
    for (const text of ["", "{", "nothing", '{"n":1.}', '{"n":01}', "1 2"])
      expect(parseJson(text)).to.equal(undefined);
  });
});
