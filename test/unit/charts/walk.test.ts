import { expect } from "chai";
import { assign, createActor, createMachine, setup } from "xstate";
import type { AnyStateMachine } from "xstate";
import { charts } from "../../../machines/index.ts";
import { seededRandom } from "../../../src/base/random.ts";
import { readMachine } from "../../../src/charts/read-machine.ts";
import { Walk } from "../../../src/charts/walk.ts";
import { nestedChart } from "../../support/nested-chart.ts";
import { everyKind } from "./every-kind-chart.ts";

function walkThrough(machine: AnyStateMachine, input: unknown = {}): Walk {
  return new Walk({ machine, model: readMachine(machine), input });
}

function pathsOf(walk: Walk): string[] {
  return walk.standing.leaves.map(({ path }) => path);
}

function labelsOf(walk: Walk): string[] {
  return walk.standing.offered.map(({ label }) => label);
}

const lamp = setup({
  types: {
    context: {} as { readonly uses: number },
    events: {} as { readonly type: string; readonly lux?: number },
  },
  guards: { isBright: ({ event }) => (event.lux ?? 0) > 3, isBroken: () => expect.fail("a wire is loose") },
  actions: {
    count: assign({ uses: ({ context }) => context.uses + 1 }),
    click: () => expect.fail("it was executed"),
  },
}).createMachine({
  id: "lamp",
  context: { uses: 0 },
  initial: "off",
  states: {
    off: {
      on: {
        press: { guard: "isBright", target: "on", actions: ["count", "click"] },
        kick: { guard: "isBroken", target: "on" },
        stare: {},
      },
    },
    on: { after: { 1000: "off" }, on: { press: "off" } },
  },
});

describe("a walk through a machine", () => {
  for (const machine of [
    ...Object.values(charts).map((chart) => chart.machine as AnyStateMachine),
    nestedChart,
  ]) {
    it(`${machine.id}: is where XState's own actor is, whatever happens`, () => {
      const random = seededRandom(7);
      const events = [...machine.events].map(String);
      const walk = walkThrough(machine, {});
      const actor = createActor(machine, { input: {} }).start();
      for (let step = 0; step < 200; step++) {
        const type = events[Math.floor(random.unit() * events.length)] ?? "";
        const event = {
          type,
          k: Math.floor(random.unit() * 4),
          incarnation: "i",
          attempt: 1 + Math.floor(random.unit() * 2),
        };
        walk.take(event);
        actor.send(event);
        expect(walk.standing.value).to.deep.equal(actor.getSnapshot().value);
      }
      actor.stop();
    });
  }

  it("says what can happen, innermost first, and leaves out what is forbidden or needs no event", () => {
    const walk = walkThrough(everyKind);
    expect(labelsOf(walk)).to.deep.equal([
      "go",
      "again",
      "look",
      "ab",
      "back",
      "after 1000",
      "after aWhile",
      "reset",
    ]);
  });

  it("names actions and executes none; a guard that says no is named", () => {
    const walk = walkThrough(lamp);
    expect(walk.take({ type: "press" })).to.deep.equal({ kind: "refused", guards: ["isBright"] });
    expect(pathsOf(walk)).to.deep.equal(["off"]);
    expect(walk.take({ type: "press", lux: 5 } as never)).to.deep.equal({
      kind: "taken",
      actions: ["click"],
    });
    expect(pathsOf(walk)).to.deep.equal(["on"]);
  });

  it("takes a delayed transition when it is told to, and the outcome of an actor", () => {
    const walk = walkThrough(lamp);
    walk.take({ type: "press", lux: 5 } as never);
    expect(labelsOf(walk)).to.deep.equal(["press", "after 1000"]);
    expect(walk.take({ type: "xstate.after.1000.lamp.on" }).kind).to.equal("taken");
    expect(pathsOf(walk)).to.deep.equal(["off"]);
    const invoking = createMachine({
      ...{ id: "m", initial: "a" },
      states: { a: { invoke: { src: "fetch", onDone: "b" } }, b: { type: "final" } },
    });
    const other = walkThrough(invoking);
    expect(other.take({ type: other.standing.offered[0]?.event ?? "" }).kind).to.equal("taken");
    expect(other.standing).to.deep.include({ value: "b", status: "done", offered: [] });
    expect(other.take({ type: "x" })).to.deep.equal({ kind: "ignored" });
  });

  it("goes back step by step, and begins anew", () => {
    const walk = walkThrough(charts.run.machine);
    const seen = [walk.standing.value];
    for (const type of ["run.paused", "run.sealed", "run.cancelled"]) {
      walk.take({ type });
      seen.push(walk.standing.value);
    }
    for (const value of seen.slice(0, -1).toReversed()) {
      expect(walk.back()).to.equal(true);
      expect(walk.standing.value).to.deep.equal(value);
    }
    expect(walk.back()).to.equal(false);
    walk.take({ type: "run.sealed" });
    walk.restart();
    expect(walk.standing.value).to.deep.equal(seen[0]);
    expect(walk.back()).to.equal(false);
  });

  it("shows each region of a parallel state", () => {
    const walk = walkThrough(charts["worker-lifecycle"].machine, { incarnation: "i" });
    expect(pathsOf(walk)).to.deep.equal(["lifecycle.Init", "liveness.Alive"]);
  });

  it("stays where it is when the machine throws, and ends no process with a circle of eventless transitions", () => {
    const walk = walkThrough(lamp);
    const step = walk.take({ type: "kick" });
    expect(step.kind === "failed" && step.problem).to.contain("a wire is loose");
    expect(pathsOf(walk)).to.deep.equal(["off"]);
    const circle = createMachine({
      ...{ id: "m", initial: "a" },
      states: { a: { on: { E: "b" } }, b: { always: "c" }, c: { always: "b" } },
    });
    expect(walkThrough(circle).take({ type: "E" }).kind).to.equal("failed");
  });

  it("goes through a machine of an early XState 5 with that copy's interpreter", async () => {
    const early = (await import("xstate-5.0")) as unknown as {
      readonly createMachine: typeof createMachine;
      readonly createActor: typeof createActor;
    };
    const machine = early.createMachine({
      ...{ id: "m", initial: "a" },
      states: { a: { on: { E: { guard: () => false, target: "b" }, F: "b" } }, b: {} },
    });
    const walk = new Walk({
      machine,
      model: readMachine(machine),
      input: {},
      createActor: early.createActor,
    });
    expect(walk.take({ type: "E" }).kind).to.equal("refused");
    expect(walk.take({ type: "F" }).kind).to.equal("taken");
    expect(pathsOf(walk)).to.deep.equal(["b"]);
  });
});
