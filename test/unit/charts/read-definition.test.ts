import { expect } from "chai";
import type { AnyStateMachine } from "xstate";
import { createInspector } from "@statelyai/inspect";
import type { StatelyInspectionEvent } from "@statelyai/inspect";
import { createActor, createMachine } from "xstate";
import { charts } from "../../../machines/index.ts";
import type { ChartModel } from "../../../src/charts/model.ts";
import { isMachineDefinition, readDefinition } from "../../../src/charts/read-definition.ts";
import { MAX_DEPTH, MAX_STATES, readMachine, UnreadableMachine } from "../../../src/charts/read-machine.ts";
import { nestedChart } from "../../support/nested-chart.ts";
import { everyKind } from "./every-kind-chart.ts";

const MACHINES: Readonly<Record<string, AnyStateMachine>> = {
  ...Object.fromEntries(Object.entries(charts).map(([name, { machine }]) => [name, machine])),
  nested: nestedChart,
  "every kind": everyKind,
};

/** As the package tells a program's definition. */
function told(machine: AnyStateMachine, serializationDepthLimit = 50): string {
  const sent: StatelyInspectionEvent[] = [];
  const inspector = createInspector({ send: (event) => void sent.push(event) }, { serializationDepthLimit });
  inspector.actor(createActor(machine, { input: {} }));
  const [event] = sent;
  return event?.type === "@xstate.actor" ? (event.definition ?? "") : "";
}

/** Without the order, which the package does not keep, and the parts of guards of guards, which it does not tell. */
function sorted({ states, transitions, ...more }: ChartModel): object {
  const byId = <One extends { readonly id: string }>(all: readonly One[]): One[] =>
    all.toSorted((one, other) => (one.id < other.id ? -1 : 1));
  const told = transitions.map(({ guard, ...one }) => ({ ...one, guard: guard?.replace(/\(.*/, "") }));
  return { ...more, states: byId(states), transitions: byId(told) };
}

function refusal(definition: unknown): string {
  const text = typeof definition === "string" ? definition : JSON.stringify(definition);
  try {
    readDefinition(text);
  } catch (error) {
    if (error instanceof UnreadableMachine) return error.message;
    throw error;
  }
  return "";
}

describe("a definition of a machine as JSON", () => {
  for (const [name, machine] of Object.entries(MACHINES))
    it(`${name}: is read as its machine is, from what @statelyai/inspect tells of it`, () => {
      const { model, isCut } = readDefinition(told(machine));
      expect(sorted(model)).to.deep.equal(sorted(readMachine(machine)));
      expect(isCut).to.equal(false);
    });

  it("is said to be cut where the program has left out what is deep", () => {
    const machine = createMachine({
      initial: "a",
      states: {
        a: { initial: "b", states: { b: { initial: "c", states: { c: { on: { GO: "d" } }, d: {} } } } },
      },
    });
    const { model, isCut } = readDefinition(told(machine, 4));
    expect(isCut).to.equal(true);
    expect(model.states.map(({ path }) => path))
      .to.include("a")
      .and.not.include("a.b.c");
  });

  it("of an actor that is no machine is recognised", () => {
    expect(isMachineDefinition('{"id":"0.order.Paying"}')).to.equal(false);
    expect(isMachineDefinition('{"id":"light","on":{"X":{}}}')).to.equal(true);
    expect(isMachineDefinition("{}")).to.equal(true);
  });

  it("that is broken is refused with the reason", () => {
    expect(refusal("{")).to.equal("it is no JSON");
    expect(refusal([])).to.equal("it is no object");
    expect(refusal({ initial: "a", states: { a: 7 } })).to.equal("its state a is no object");
    expect(refusal({ states: { a: {} } })).to.include("No initial state specified");
    expect(refusal({ initial: "b", states: { a: {} } })).to.include('"b" not found');
    expect(refusal({ initial: "a", states: { a: { on: { X: "#no" } } } })).to.include("'#no' does not exist");
  });

  it("that is hostile is refused, or read as what it says, and changes no object", () => {
    expect(refusal('{"initial":"a","states":{"a":{},"__proto__":{"x":1}}}')).to.include("__proto__");
    expect(refusal('{"on":{"__proto__":{}}}')).to.include("__proto__");
    const { model } = readDefinition(
      '{"initial":"constructor","states":{"constructor":{"on":{"toString":"<b>"}},"<b>":{"entry":["</svg>"]}}}',
    );
    expect(model.states.map(({ path }) => path)).to.deep.equal(["", "constructor", "<b>"]);
    expect(model.transitions.map(({ event, targets }) => [event, targets])).to.deep.equal([
      ["toString", ["(machine).<b>"]],
    ]);
    expect(({} as Record<string, unknown>)["x"]).to.equal(undefined);
  });

  it("that is too large or deep is refused before it costs much", () => {
    const many = Object.fromEntries(Array.from({ length: 100_000 }, (_, at) => [`s${at}`, {}]));
    expect(refusal({ initial: "s0", states: many })).to.equal(`it has more than ${MAX_STATES} states`);
    const deep = `${'{"initial":"s","states":{"s":'.repeat(MAX_DEPTH + 1)}{}${"}}".repeat(MAX_DEPTH + 1)}`;
    expect(refusal(deep)).to.equal(`its states are nested more than ${MAX_DEPTH} deep`);
    const nested = `${'{"states":'.repeat(200_000)}{}${"}".repeat(200_000)}`;
    expect(refusal(nested)).to.equal(`its states are nested more than ${MAX_DEPTH} deep`);
    expect(refusal({ on: { ["e".repeat(201)]: "x" } })).to.include("longer than 200 characters");
    const crowd = Array.from({ length: 20_001 }, () => ({}));
    expect(refusal({ on: { X: crowd } })).to.equal("it has more than 20000 transitions");
    const name = "n".repeat(190);
    const bush = Object.fromEntries(Array.from({ length: 900 }, (_, at) => [`l${at}`, {}]));
    const chain = `{"initial":"${name}","states":{"${name}":`;
    const long = `${chain.repeat(20)}${JSON.stringify({ initial: "l0", states: bush })}${"}}".repeat(20)}`;
    expect(refusal(long)).to.equal("the paths of its states are too long");
  });
});
