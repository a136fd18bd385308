import { expect } from "chai";
import { assert, AssertionFailed, unreachable } from "../../../src/base/assert.ts";

describe("an assertion", () => {
  it("lets what is true pass", () => {
    for (const value of [true, 1, "x", {}, []]) expect(() => assert(value, "C3: holds")).not.to.throw();
  });

  it("ends what is not, naming the invariant", () => {
    for (const value of [false, 0, "", null, undefined])
      expect(() => assert(value, "C3: one attempt")).to.throw(AssertionFailed, "C3: one attempt");
  });

  it("names the variant that nobody thought of", () => {
    expect(() => unreachable({ kind: "new" } as never, "outcome")).to.throw(
      AssertionFailed,
      'unexpected outcome: {"kind":"new"}',
    );
  });
});
