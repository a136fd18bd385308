import { expect } from "chai";
import { assign, setup } from "xstate";
import { coordinatorRole } from "../../../machines/coordinator-role.ts";
import { TransitionPlanner } from "../../../src/runtime/transition.ts";
import { bell } from "./bell-chart.ts";
import { nestedChart } from "../../support/nested-chart.ts";

const quiet = { value: "Quiet", context: { notes: 0, rings: 0 } };

describe("planning a step", () => {
  it("begins in the initial state with what entering it asks for", () => {
    const { snapshot, actions } = new TransitionPlanner(bell).begin(undefined);
    expect(snapshot).to.deep.equal(quiet);
    expect(actions).to.deep.equal([{ type: "greet", params: undefined }]);
  });

  it("throws what the chart throws at its beginning", () => {
    const broken = setup({ actions: { fail: assign(() => JSON.parse("{") as object) } }).createMachine({
      context: {},
      entry: "fail",
    });
    expect(() => new TransitionPlanner(broken).begin(undefined)).to.throw(SyntaxError);
  });

  it("gives the actions in order, with their parameters, and changes nothing that it was given", () => {
    const from = Object.freeze({ value: "Quiet", context: Object.freeze({ notes: 4, rings: 0 }) });
    expect(
      new TransitionPlanner(bell).plan(from, { type: "bell.note", at: 4 } as { type: string }),
    ).to.deep.equal({
      kind: "moved",
      snapshot: { value: "Quiet", context: { notes: 5, rings: 0 } },
      actions: [
        { type: "play", params: { at: 4 } },
        { type: "record", params: undefined },
      ],
    });
  });

  it("says that an event is ignored when no transition hears it or no guard lets it through", () => {
    const planner = new TransitionPlanner(bell);
    for (const event of [{ type: "unheard of" }, { type: "bell.note", at: 7 }])
      expect(planner.plan(quiet, event)).to.deep.equal({ kind: "ignored" });
  });

  it("ignores everything in a final state, also what the whole chart would hear", () => {
    const planner = new TransitionPlanner(coordinatorRole);
    expect(
      planner.plan({ value: "Fenced", context: { epoch: 1 } }, { type: "lease.resigned" }),
    ).to.deep.equal({
      kind: "ignored",
    });
    const deaf = setup({ actions: { act: () => {} } }).createMachine({
      initial: "end",
      on: { go: { actions: "act" } },
      states: { end: { type: "final" } },
    });
    expect(new TransitionPlanner(deaf).plan({ value: "end", context: {} }, { type: "go" }).kind).to.equal(
      "ignored",
    );
  });

  it("moves by an event that is forbidden on purpose, without consequence", () => {
    const from = { value: "idle", context: { n: 1 } };
    expect(new TransitionPlanner(nestedChart).plan(from, { type: "NEVER" })).to.deep.equal({
      kind: "moved",
      snapshot: from,
      actions: [],
    });
  });

  it("throws what a guard or an assign throws, and plans the next step as if nothing had been", () => {
    const planner = new TransitionPlanner(bell);
    for (const type of ["bell.guardThrows", "bell.assignThrows"]) {
      expect(() => planner.plan(quiet, { type })).to.throw("the bell is cracked");
      const next = planner.plan(quiet, { type: "bell.due" });
      expect(next).to.deep.equal({
        kind: "moved",
        snapshot: { value: "Ringing", context: { notes: 0, rings: 1 } },
        actions: [{ type: "announceRing", params: undefined }],
      });
    }
  });
});
