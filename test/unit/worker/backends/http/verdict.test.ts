import { expect } from "chai";
import { retryAfterMs } from "../../../../../src/worker/backends/http/verdict.ts";

const NOW = Date.UTC(2026, 10, 18, 12, 0, 0);

describe("a Retry-After", () => {
  it("is seconds, or a date compared with this machine's clock", () => {
    const read = (text: string): number | undefined => retryAfterMs(text, NOW);
    expect([read("7"), read(" 0.5 "), read("0")]).to.deep.equal([7_000, 500, 0]);
    expect([read("Wed, 18 Nov 2026 12:00:09 GMT"), read("Wed, 18 Nov 2026 11:59:00 GMT")]).to.deep.equal([
      9_000, 0,
    ]);
  });

  it("of more than an hour counts as an hour", () => {
    expect([retryAfterMs("86400", NOW), retryAfterMs("Thu, 19 Nov 2026 12:00:00 GMT", NOW)]).to.deep.equal([
      3_600_000, 3_600_000,
    ]);
  });

  it("is ignored when it is neither seconds nor a date", () => {
    const senseless = [
      undefined,
      "",
      "soon",
      "-1",
      "1e3",
      "NaN",
      "Infinity",
      "2026-11-18",
      "Wed, nonsense GMT",
    ];
    expect(senseless.map((text) => retryAfterMs(text, NOW))).to.deep.equal(senseless.map(() => undefined));
  });
});
