import { expect } from "chai";
import { parseSizeBytes } from "../../../src/config/value.ts";

describe("sizes", () => {
  const table: [string, number | undefined][] = [
    ["512B", 512],
    ["64KiB", 65_536],
    ["16MiB", 16_777_216],
    ["1.5MiB", 1_572_864],
    ["2GiB", 2_147_483_648],
    ["16MB", undefined],
    ["16", undefined],
    ["MiB", undefined],
    ["-1B", undefined],
    ["0.3B", undefined],
    ["999999999999GiB", undefined],
  ];
  for (const [text, expected] of table) {
    it(`reads "${text}" as ${expected === undefined ? "nothing" : `${expected} bytes`}`, () => {
      expect(parseSizeBytes(text)).to.equal(expected);
    });
  }
});
