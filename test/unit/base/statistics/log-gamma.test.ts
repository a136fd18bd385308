import { expect } from "chai";
import { logGamma } from "../../../../src/base/statistics/log-gamma.ts";

describe("the logarithm of the gamma function", () => {
  it("is that of factorials, and of their like between whole numbers", () => {
    let [factorial, half] = [1, Math.sqrt(Math.PI)];
    for (let at = 1; at < 100; at++) {
      expect(logGamma(at), `at ${at}`).to.be.closeTo(Math.log(factorial), 1e-10);
      expect(logGamma(at - 0.5), `at ${at - 0.5}`).to.be.closeTo(Math.log(half), 1e-10);
      factorial *= at;
      half *= at - 0.5;
    }
  });
});
