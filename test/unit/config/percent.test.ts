import { expect } from "chai";
import { formatPercent, parsePercent } from "../../../src/config/percent.ts";

describe("a percentage", () => {
  it("formats a percentage as a text that parses to the same percentage", () => {
    for (const text of ["0%", "0.1%", "0.7%", "1%", "12.5%", "33.3333%", "57%", "100%"]) {
      const share = parsePercent(text);
      expect(share, text).to.be.closeTo(Number(text.slice(0, -1)) / 100, 1e-9);
      expect(formatPercent(share ?? NaN)).to.equal(text);
    }
  });

  it("refuses texts that are no percentage", () => {
    for (const text of ["", "%", "1", "1 %", "-1%", "100.1%", "101%", "1e1%", "1%%", "0.00001%", "٣%"])
      expect(parsePercent(text), text).to.equal(undefined);
  });
});
