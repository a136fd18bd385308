import { expect } from "chai";
import fc from "fast-check";
import { LineCounter } from "../../../src/client/submit.ts";

describe("counting lines", () => {
  it("says how often a line has come before, as a table of whole lines does", () => {
    fc.assert(
      fc.property(fc.array(fc.constantFrom("a", "b", "", "aa", "\u0000")), (lines) => {
        const counter = new LineCounter();
        const before = new Map<string, number>();
        for (const line of lines) {
          const count = before.get(line) ?? 0;
          expect(counter.count(Buffer.from(line))).to.equal(count);
          before.set(line, count + 1);
        }
      }),
    );
  });

  it("keeps its counts when it grows", () => {
    const counter = new LineCounter();
    const count = 20_000;
    for (let round = 0; round < 3; round++) {
      for (let line = 0; line < count; line++) {
        const before = counter.count(Buffer.from(`line ${line}`));
        if (before !== round) expect.fail(`line ${line} has come ${before} times, and not ${round}`);
      }
    }
  });
});
