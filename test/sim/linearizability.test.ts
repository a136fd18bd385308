// The checker of histories is checked itself: by histories of which one can see whether they are linearizable, and by random ones
// against every order that there is.
import { expect } from "chai";
import fc from "fast-check";
import type { Call, SequentialModel } from "./linearizability.ts";
import { linearize } from "./linearizability.ts";

/** A number that is read, written, and replaced by who knows it. */
type Register =
  | { readonly kind: "read" }
  | { readonly kind: "write"; readonly value: number }
  | { readonly kind: "swap"; readonly from: number; readonly to: number };

const register: SequentialModel<number, Register, number> = {
  initial: 0,
  step: (state, input, output) => {
    switch (input.kind) {
      case "read":
        return output === state ? [state] : [];
      case "write":
        return [input.value];
      case "swap":
        if (output === 0) return state === input.from ? [] : [state];
        return state === input.from ? [input.to] : [];
    }
  },
  nameOf: String,
};

const read = (calledAt: number, at: number, output: number): Call<Register, number> => {
  return { input: { kind: "read" }, calledAt, answer: { output, at } };
};
const write = (calledAt: number, at: number | undefined, value: number): Call<Register, number> => {
  return { input: { kind: "write", value }, calledAt, answer: at === undefined ? at : { output: 1, at } };
};
const isLinearizable = (...calls: Call<Register, number>[]): boolean =>
  linearize(calls, register).kind === "linearizable";

describe("a history of a register is linearizable when", () => {
  it("nothing happened", () => {
    expect(isLinearizable()).to.equal(true);
  });

  it("each reads what was written before", () => {
    expect(isLinearizable(write(1, 2, 7), read(3, 4, 7), write(5, 6, 8), read(7, 8, 8))).to.equal(true);
  });

  it("a reading beside a writing finds either value", () => {
    expect(isLinearizable(write(1, 4, 7), read(2, 3, 0))).to.equal(true);
    expect(isLinearizable(write(1, 4, 7), read(2, 3, 7))).to.equal(true);
  });

  it("a write of unknown outcome comes late, or never", () => {
    expect(isLinearizable(write(1, undefined, 7), read(2, 3, 0), read(4, 5, 7))).to.equal(true);
    expect(isLinearizable(write(1, undefined, 7), write(2, 3, 8), read(4, 5, 8))).to.equal(true);
    expect(isLinearizable(write(1, undefined, 7), write(2, 3, 8), read(4, 5, 8), read(6, 7, 7))).to.equal(
      true,
    );
  });
});

describe("a history of a register is not linearizable when", () => {
  it("an old value is read after the answer to the write", () => {
    expect(isLinearizable(write(1, 2, 7), read(3, 4, 0))).to.equal(false);
  });

  it("a value comes back that was gone", () => {
    expect(isLinearizable(write(1, 6, 7), read(2, 3, 7), read(4, 5, 0))).to.equal(false);
  });

  it("a write is seen that was not made yet", () => {
    expect(isLinearizable(read(1, 2, 7), write(3, undefined, 7))).to.equal(false);
  });

  it("one write of unknown outcome is seen to come twice", () => {
    const calls = [write(1, undefined, 7), read(2, 3, 7), write(4, 5, 8), read(6, 7, 7)];
    expect(isLinearizable(...calls)).to.equal(false);
  });

  it("two have swapped the same value", () => {
    const swap = (calledAt: number, at: number, to: number): Call<Register, number> => {
      return { input: { kind: "swap", from: 0, to }, calledAt, answer: { output: 1, at } };
    };
    expect(isLinearizable(swap(1, 3, 7), swap(2, 4, 8))).to.equal(false);
  });

  it("and the report names the operation that nothing explains", () => {
    const finding = linearize([write(1, 2, 7), read(3, 4, 7), read(5, 6, 0)], register);
    expect(finding).to.deep.equal({ kind: "stuck", explained: 2, next: [2], state: "7" });
  });
});

describe("the search for an order", () => {
  const calls = fc
    .array(
      fc.record({
        input: fc.oneof(
          fc.record({ kind: fc.constant("read" as const) }),
          fc.record({ kind: fc.constant("write" as const), value: fc.nat(2) }),
          fc.record({ kind: fc.constant("swap" as const), from: fc.nat(2), to: fc.nat(2) }),
        ),
        output: fc.option(fc.nat(2), { nil: undefined, freq: 5 }),
        calledAt: fc.nat(10),
        tookMs: fc.nat(6),
      }),
      { maxLength: 6 },
    )
    .map((drawn) =>
      drawn.map(({ input, output, calledAt, tookMs }, at): Call<Register, number> => {
        const answer =
          output === undefined ? undefined : { output, at: calledAt + tookMs + (at + 0.5) / 100 };
        return { input, calledAt: calledAt + at / 100, answer };
      }),
    );

  it("finds one where there is one, as trying all of them does", () => {
    fc.assert(
      fc.property(calls, (history) => {
        expect(isLinearizable(...history)).to.equal(someOrderExplains(history));
      }),
      { numRuns: 2_000 },
    );
  });

  it("takes a moment for a long history of many at once", () => {
    const history = Array.from({ length: 4_000 }, (_, at) => write(at, at + 6, at));
    expect(isLinearizable(...history, read(5_000, 5_001, 3_999))).to.equal(true);
    expect(isLinearizable(...history, read(5_000, 5_001, 3_000))).to.equal(false);
  });
});

/** Tries each order of each choice of the calls of unknown outcome, with no thought at all. */
function someOrderExplains(history: readonly Call<Register, number>[], state = 0): boolean {
  if (history.every(({ answer }) => answer === undefined)) return true;
  return history.some((call, at) => {
    const rest = history.filter((_, index) => index !== at);
    const isFirst = rest.every(({ answer }) => answer === undefined || answer.at > call.calledAt);
    const left = isFirst ? register.step(state, call.input, call.answer?.output) : [];
    return left.some((next) => someOrderExplains(rest, next));
  });
}
