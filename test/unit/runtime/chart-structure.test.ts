import { expect } from "chai";
import type { AnyStateMachine } from "xstate";
import { createMachine, initialTransition } from "xstate";
import { charts } from "../../../machines/index.ts";
import { stateName, stateValueOf } from "../../../src/runtime/chart-structure.ts";
import { compile } from "../../../src/runtime/compile.ts";

describe("a state of a chart by its name", () => {
  for (const name of ["run", "work-item", "worker-lifecycle", "worker-trust", "execution", "key"] as const)
    it(`${name}: is each state that its rows can be in`, () => {
      const { machine }: { machine: AnyStateMachine } = charts[name];
      for (const state of compile(machine).states) {
        const value = stateValueOf(machine, state);
        expect(value && stateName(value)).to.equal(state);
        expect(() => machine.resolveState({ value: value ?? "", context: {} })).not.to.throw();
      }
    });

  it("is found below others, and within regions", () => {
    const machine = createMachine({
      initial: "a",
      states: {
        a: {
          type: "parallel",
          states: {
            left: { initial: "one", states: { one: { initial: "deep", states: { deep: {} } } } },
            right: { initial: "two", states: { two: {} } },
          },
        },
      },
    });
    const [{ value }] = initialTransition(machine);
    expect(stateName(value)).to.equal("a.one.deep+two");
    expect(stateValueOf(machine, "a.one.deep+two")).to.deep.equal(value);
  });

  it("is none where the chart has no such state", () => {
    for (const name of ["", "Gone", "Ready", "Ready+", "Ready+Alive+Alive", "Alive+Ready"])
      expect(stateValueOf(charts["worker-lifecycle"].machine, name)).to.equal(undefined);
    expect(stateValueOf(charts["spot-drain"].machine, "Draining")).to.equal(undefined);
    expect(stateValueOf(charts["spot-drain"].machine, "Draining.Saving")).to.deep.equal({
      Draining: "Saving",
    });
  });
});
