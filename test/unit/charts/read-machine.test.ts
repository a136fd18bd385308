import { expect } from "chai";
import type { AnyStateMachine, AnyStateNode } from "xstate";
import { createMachine } from "xstate";
import { charts } from "../../../machines/index.ts";
import { transitionLabel } from "../../../src/charts/model.ts";
import {
  isMachine,
  isRecentMachine,
  MAX_DEPTH,
  MAX_STATES,
  readMachine,
} from "../../../src/charts/read-machine.ts";
import { nestedChart } from "../../support/nested-chart.ts";
import { everyKind } from "./every-kind-chart.ts";

const MACHINES: Readonly<Record<string, AnyStateMachine>> = {
  ...Object.fromEntries(Object.entries(charts).map(([name, { machine }]) => [name, machine])),
  nested: nestedChart,
  "every kind": everyKind,
};

/** By XState's own definition of a machine, which the model is not read from. */
function nodesOf(node: AnyStateNode): AnyStateNode["definition"][] {
  const below = (definition: AnyStateNode["definition"]): AnyStateNode["definition"][] => [
    definition,
    ...Object.values(definition.states).flatMap(below),
  ];
  return below(node.definition);
}

function alwaysOf(node: AnyStateNode): unknown[] {
  return [...(node.always ?? []), ...Object.values<AnyStateNode>(node.states).flatMap(alwaysOf)];
}

describe("a machine that is read", () => {
  for (const [name, machine] of Object.entries(MACHINES)) {
    it(`${name}: has each state and each transition that XState knows, and no other`, () => {
      const { states, transitions } = readMachine(machine);
      const nodes = nodesOf(machine.root);
      expect(states.map(({ key, kind }) => [key, kind])).to.deep.equal(
        nodes.map(({ key, type }): [string, string] => [key, type]),
      );
      const known = nodes.flatMap(({ transitions: own }) => own.map(({ eventType }) => String(eventType)));
      const eventless = transitions.filter(({ event }) => event === "");
      expect(transitions.filter(({ event }) => event !== "").map(({ event }) => event)).to.deep.equal(known);
      const always = alwaysOf(machine.root);
      expect(eventless).to.have.lengthOf(always.length);
    });

    it(`${name}: names each of them once, and nothing that it does not have`, () => {
      const { states, transitions } = readMachine(machine);
      const ids = states.map(({ id }) => id);
      expect(new Set(ids).size).to.equal(ids.length);
      expect(new Set(transitions.map(({ id }) => id)).size).to.equal(transitions.length);
      const named = [
        ...transitions.flatMap(({ source, targets }) => [source, ...targets]),
        ...states.flatMap(({ parent, initial }) => [parent ?? [], initial ?? []].flat()),
      ];
      expect(ids).to.include.members(named);
    });

    it(`${name}: holds plain data only`, () => {
      const model = readMachine(machine);
      expect(JSON.parse(JSON.stringify(model))).to.deep.equal(model);
    });
  }

  it("says of each transition what sets it off, its guard, its actions and whether it leaves its source", () => {
    const { transitions } = readMachine(everyKind);
    const said = transitions.map((transition) => {
      const { id, actions, targets, isInternal } = transition;
      const ways = [
        ...actions,
        ...targets.map((target) => `> ${target}`),
        ...(isInternal ? ["internal"] : []),
      ];
      return `${id} = ${transitionLabel(transition)}: ${ways.join(" ")}`;
    });
    expect(said).to.deep.equal([
      "every:reset:0 = reset: > every.idle internal",
      "every:forbidden:0 = forbidden: internal",
      "every.idle:go:0 = go [and(isReady, not(isLate), or(isFine, stateIn))]: > every.busy",
      "every.idle:go:1 = go: shrug internal",
      "every.idle:again:0 = again: > every.idle",
      "every.idle:look:0 = look: > every.idle internal",
      "every.idle:ab:0 = ab: > every.a\\.b",
      "every.idle:back:0 = back: > every.busy.left.before",
      "every.idle:xstate.after.1000.every.idle:0 = after 1000: > every.a\\.b",
      "every.idle:xstate.after.aWhile.every.idle:0 = after aWhile [isReady]: wake internal",
      "every.busy:xstate.done.state.every.busy:0 = done: > every.end",
      "every.busy.left.one:next:0 = next: > every.busy.left.two",
      "every.busy.right:xstate.done.actor.0.every.busy.right:0 = done: fetch: > every.busy.right.got internal",
      "every.busy.right:xstate.error.actor.0.every.busy.right:0 = error: fetch: > every.end",
      "every.busy.right:xstate.snapshot.ear:0 = snapshot: ear: hear internal",
      "every.busy.right.waiting::0 = always [isReady]: > every.busy.right.got",
    ]);
  });

  it("says of each state what is in it, without what XState adds for delays", () => {
    const { states, version, description } = readMachine(everyKind);
    expect([version, description]).to.deep.equal(["7", "All there is."]);
    const [, idle] = states;
    expect(idle).to.deep.include({ entry: ["greet", "note"], exit: ["leave"], tags: ["calm"], path: "idle" });
    expect(states.find(({ key }) => key === "right")?.invokes).to.deep.equal([
      { id: "0.every.busy.right", source: "fetch" },
      { id: "ear", source: "listen" },
    ]);
    const before = states.find(({ kind }) => kind === "history");
    expect(before).to.deep.include({ history: "deep", initial: "every.busy.left.two" });
  });

  it("is refused when it is larger or deeper than anybody draws", () => {
    const many = Object.fromEntries(Array.from({ length: MAX_STATES }, (_, at) => [`s${at}`, {}]));
    const large = createMachine({ id: "large", initial: "s0", states: many });
    expect(() => readMachine(large)).to.throw(`more than ${MAX_STATES} states`);
    let config: object = {};
    for (let depth = 0; depth <= MAX_DEPTH; depth++) config = { initial: "in", states: { in: config } };
    expect(() => readMachine(createMachine({ id: "deep", ...config }))).to.throw(
      `more than ${MAX_DEPTH} deep`,
    );
  });

  it("is known by what it has, and told from other objects", async () => {
    const { createMachine: createOld } = (await import("xstate-4")) as unknown as {
      createMachine: typeof createMachine;
    };
    const { createMachine: createEarly } = (await import("xstate-5.0")) as unknown as {
      createMachine: typeof createMachine;
    };
    const config = {
      id: "m",
      initial: "a",
      predictableActionArguments: true,
      states: { a: { on: { E: "b" } }, b: {} },
    };
    expect([createOld(config), createEarly(config), everyKind].map(isMachine)).to.deep.equal([
      true,
      true,
      true,
    ]);
    expect([createOld(config), createEarly(config), everyKind].map(isRecentMachine)).to.deep.equal([
      false,
      true,
      true,
    ]);
    expect([{}, null, "m", { definition: {} }, () => undefined].map(isMachine)).to.not.include(true);
    expect(readMachine(createEarly(config)).transitions.map(({ id }) => id)).to.deep.equal(["m.a:E:0"]);
  });

  it("that throws when it is looked at is refused with what it throws", () => {
    const broken = createMachine({ id: "m", initial: "a", states: { a: {} } });
    Object.defineProperty(broken.root, "entry", { get: () => expect.fail("no way in") });
    expect(() => readMachine(broken)).to.throw("it cannot be read: no way in");
  });
});
