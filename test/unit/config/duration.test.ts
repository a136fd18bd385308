import { expect } from "chai";
import { formatDuration, parseDurationMs } from "../../../src/config/duration.ts";

describe("durations", () => {
  const table: [string, number | undefined][] = [
    ["500ms", 500],
    ["4s", 4_000],
    ["1.5s", 1_500],
    ["2m", 120_000],
    ["1h", 3_600_000],
    ["30d", 2_592_000_000],
    ["0ms", 0],
    ["", undefined],
    ["4", undefined],
    ["s", undefined],
    ["4 s", undefined],
    ["-4s", undefined],
    ["4S", undefined],
    ["1e3s", undefined],
    ["4s5ms", undefined],
    ["0.5ms", undefined],
    ["999999999999d", undefined],
    ["1toString", undefined],
  ];
  for (const [text, expected] of table) {
    it(`reads "${text}" as ${expected === undefined ? "nothing" : `${expected} ms`}`, () => {
      expect(parseDurationMs(text)).to.equal(expected);
    });
  }

  it("formats a duration as a text that parses to the same duration", () => {
    for (const text of ["0ms", "1ms", "500ms", "4s", "90s", "2m", "1h", "36h", "30d"]) {
      const durationMs = parseDurationMs(text);
      expect(durationMs).to.be.a("number");
      expect(formatDuration(durationMs ?? -1)).to.equal(text);
    }
  });
});
