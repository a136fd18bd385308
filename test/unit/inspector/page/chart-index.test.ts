// States and transitions of a chart, found by the names that the runtime gives them.
import { expect } from "chai";
import { ownMachines } from "../../../../src/charts/named-machine.ts";
import type { ChartModel } from "../../../../src/charts/model.ts";
import { readMachine } from "../../../../src/charts/read-machine.ts";
import { ChartIndex } from "../../../../src/inspector/page/known/chart-index.ts";
import { run } from "../../../../machines/run.ts";
import { workItem } from "../../../../machines/work-item.ts";
import { workerLifecycle } from "../../../../machines/worker-lifecycle.ts";
import { compile } from "../../../../src/runtime/compile.ts";
import { createMachine } from "xstate";
import type { AnyStateMachine } from "xstate";

function indexOf(model: ChartModel): ChartIndex {
  const { states, transitions } = model;
  return new ChartIndex({ states, transitions: transitions.map((one) => ({ ...one })) });
}

const own = new Map(ownMachines().map(({ name, model }) => [name, model]));

function ownIndex(name: string): ChartIndex {
  const model = own.get(name);
  if (model === undefined) throw new Error(`no chart ${name}`);
  return indexOf(model);
}

describe("states of a chart that are lit", () => {
  it("are found for every name that the runtime has for a state of ours", () => {
    const compiled = Object.entries({ run, "work-item": workItem, "worker-lifecycle": workerLifecycle });
    const named = compiled.map(
      ([name, machine]) => [name, compile<AnyStateMachine>(machine).states] as const,
    );
    // Without regions a name is a path.
    const paths = ["coordinator-role", "spot-drain", "worker-trust", "execution"].map(
      (name) =>
        [name, own.get(name)?.states.flatMap(({ path }) => (path === "" ? [] : [path])) ?? []] as const,
    );
    for (const [name, states] of [...named, ...paths]) {
      expect(states, name).not.to.be.empty;
      for (const state of states) {
        const lit = [...ownIndex(name).lit(state)].map((id) => id.slice(id.lastIndexOf(".") + 1));
        for (const part of state.split(/[.+]/)) expect(lit, `${name} ${state}`).to.include(part);
      }
    }
  });

  it("are those of all regions, with the states around them, and of whole paths too", () => {
    const index = ownIndex("worker-lifecycle");
    const ids = (...paths: string[]): string[] => paths.map((path) => `worker-lifecycle.${path}`);
    const expected = ids("lifecycle", "lifecycle.Ready", "liveness", "liveness.Failed");
    expect([...index.lit("Ready+Failed")]).to.deep.equal(expected);
    expect([...index.lit("lifecycle.Ready+liveness.Failed")]).to.have.members(expected);
    for (const name of ["", "Ready", "Ready+", "Ready+Nowhere", "Failed+Ready"])
      expect(index.lit(name)).to.be.empty;
  });

  it("are found where keys have dots and regions stand within a state", () => {
    const machine = createMachine({
      id: "odd",
      initial: "a.b",
      states: {
        "a.b": {},
        a: { initial: "b", states: { b: { initial: "c", states: { c: {} } } } },
        work: {
          type: "parallel",
          states: {
            left: { initial: "on", states: { on: {}, "on+off": {} } },
            right: { initial: "on", states: { on: {}, off: {} } },
          },
        },
      },
    });
    const index = indexOf(readMachine(machine));
    expect([...index.lit("a.b")]).to.have.length(1);
    expect([...index.lit("a.b.c")]).to.have.length(3);
    expect([...index.lit("work.on+off+on")]).to.deep.equal(
      ["work", "work.left", "work.left.on+off", "work.right", "work.right.on"].map((path) => `odd.${path}`),
    );
  });

  it("cost little, however the chart was made", () => {
    // Each name can be read in many ways, and none of them fits.
    const deep = (levels: number): object =>
      levels === 0
        ? { type: "atomic" }
        : { initial: "a", states: { a: deep(levels - 1), "a.a": deep(levels - 1) } };
    const index = indexOf(readMachine(createMachine({ id: "many", ...deep(10) } as never)));
    expect(index.lit(`${"a.".repeat(12)}b`)).to.be.empty;
  });
});

describe("transitions that were taken", () => {
  it("are those of the event from what was lit to what is lit, the deepest of them", () => {
    const taken = (chart: string, ...step: [from: string, to: string, event: string]): readonly string[] =>
      ownIndex(chart)
        .taken(...step)
        .map((id) => id.slice(chart.length + 1));
    expect(taken("run", "Open.Active", "Sealed.Active", "run.sealed")).to.deep.equal([
      "Open.Active:run.sealed:0",
    ]);
    expect(taken("worker-lifecycle", "Ready+Suspected", "Ready+Alive", "beat.arrived")).to.deep.equal([
      "liveness.Suspected:beat.arrived:0",
    ]);
    // Both regions move at once.
    expect(taken("worker-lifecycle", "Ready+Alive", "Gone+Removed", "worker.left")).to.have.members([
      "lifecycle.Ready:worker.left:0",
      "liveness.Alive:worker.left:0",
    ]);
    // A state that stays, and an event of the state around it.
    expect(taken("spot-drain", "Draining.Saving", "Draining.Flushing", "time.isUp")[0]).to.match(
      /time\.isUp/,
    );
    expect(taken("run", "Open.Paused", "Cancelled", "run.cancelled")).to.deep.equal(["Open:run.cancelled:0"]);
    expect(taken("run", "Open.Active", "Sealed.Active", "no.event")).to.be.empty;
  });
});
