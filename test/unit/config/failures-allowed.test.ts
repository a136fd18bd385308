import { expect } from "chai";
import { formatFailuresAllowed, parseFailuresAllowed } from "../../../src/config/failures-allowed.ts";

describe("how many items may fail", () => {
  it("is a number or a percentage, read and written alike", () => {
    expect(parseFailuresAllowed("1")).to.deep.equal({ kind: "count", count: 1 });
    expect(parseFailuresAllowed("5%")).to.deep.equal({ kind: "share", percent: 5 });
    for (const text of ["1", "250", "1%", "100%", "none"]) {
      const read = parseFailuresAllowed(text);
      expect(read && formatFailuresAllowed(read)).to.equal(text);
    }
  });

  it("refuses texts that are no number, share or none", () => {
    for (const text of [
      "",
      "0",
      "0%",
      "-1",
      "101%",
      "1.5",
      "5 %",
      "%",
      "many",
      "01",
      "None",
      "none%",
      "9999999999",
    ])
      expect(parseFailuresAllowed(text), text).to.equal(undefined);
  });
});
