// Numbers that are read in outputs, by JSON pointer.
import { expect } from "chai";
import { readMeasures } from "../../../../src/worker/work/measures.ts";
import type { Measure } from "../../../../src/worker/work/measures.ts";

const MISSING: Measure = {};
const NO_NUMBER: Measure = { notANumber: true };

function measuresOf(output: string, ...pointers: string[]): Measure[] {
  return readMeasures(
    Buffer.from(output),
    pointers.map((pointer) => ({ name: pointer, pointer })),
  );
}

describe("numbers in an output", () => {
  it("are found by their pointers, in the order of these", () => {
    const output = `{"score": 0.25, "judges": [{"a/b": -1}, {"m~n": 1e3}], "": {"": 7}}`;
    expect(
      measuresOf(output, "/score", "/judges/0/a~1b", "/judges/1/m~0n", "//", "/judges/1/m~0n"),
    ).to.deep.equal([{ value: 0.25 }, { value: -1 }, { value: 1_000 }, { value: 7 }, { value: 1_000 }]);
    expect(measuresOf(" -3 ", "")).to.deep.equal([{ value: -3 }]);
  });

  it("are missing where nothing stands, and in an output that is no JSON", () => {
    const output = `{"score": 1, "list": [5]}`;
    expect(
      measuresOf(
        output,
        "/other",
        "/score/deeper",
        "/list/1",
        "/list/-",
        "/list/00",
        "/list/length",
        "score",
      ),
    ).to.deep.equal(Array<Measure>(7).fill(MISSING));
    expect(measuresOf(output, "/toString", "/list/constructor")).to.deep.equal([MISSING, MISSING]);
    for (const none of ["", "the answer is 4", `{"score": 1`, `{"score": undefined}`, "\u{fffd}"])
      expect(measuresOf(none, "/score", "")).to.deep.equal([MISSING, MISSING]);
  });

  it("are no numbers where something else stands", () => {
    const output = `{"a": "1", "b": null, "c": true, "d": {}, "e": [1], "f": 1e999, "g": 2}`;
    expect(measuresOf(output, "/a", "/b", "/c", "/d", "/e", "/f", "/g")).to.deep.equal([
      ...Array<Measure>(6).fill(NO_NUMBER),
      { value: 2 },
    ]);
  });

  it("are no numbers where NaN or Infinity is printed, and the others beside them count", () => {
    const output = `{"a": NaN, "b": -Infinity, "c": [Infinity], "d": 0.5, "e": "NaN \\" NaN"}`;
    expect(measuresOf(output, "/a", "/b", "/c/0", "/d", "/e", "/NaN")).to.deep.equal([
      ...[NO_NUMBER, NO_NUMBER, NO_NUMBER, { value: 0.5 }, NO_NUMBER, MISSING],
    ]);
    expect(measuresOf("NaN", "")).to.deep.equal([NO_NUMBER]);
  });
});
