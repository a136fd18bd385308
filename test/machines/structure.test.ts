import { expect } from "chai";
import { existsSync, readFileSync } from "node:fs";
import { assign, setup } from "xstate";
import type { AnyStateMachine, AnyStateNode } from "xstate";
import { charts } from "../../machines/index.ts";
import type { Chart } from "../../machines/migration.ts";
import { structureHash } from "../../src/runtime/chart-structure.ts";
import { GOLDEN_FOLDER, LOCK_FILE, lockProblems, withNewVersions } from "../../scripts/structure-lock.ts";
import type { StructureLock } from "../../scripts/structure-lock.ts";

const lock = JSON.parse(readFileSync(LOCK_FILE, "utf8")) as StructureLock;

interface Plan {
  readonly version?: string;
  readonly states?: object;
  readonly on?: object;
  readonly guard?: string | object;
  readonly target?: string;
  readonly actions?: string | object | readonly (string | object)[];
  readonly entry?: string;
  readonly exit?: string;
  readonly initial?: string | object;
  readonly always?: object;
  readonly reenter?: boolean;
  /** Another body for the functions. */
  readonly bodies?: "other";
}

/** A small chart that differs from the plain one in what the plan says. */
function door(plan: Plan = {}): AnyStateMachine {
  const isOther = plan.bodies === "other";
  const machine: unknown = setup({
    guards: {
      isUnlocked: isOther ? () => false : () => true,
      isNight: () => true,
    },
    actions: {
      count: assign(isOther ? { opened: 5 } : { opened: 1 }),
      ring: isOther ? () => {} : () => undefined,
      knock: () => {},
    },
  }).createMachine({
    id: "door",
    version: plan.version ?? "1",
    context: { opened: 0 },
    initial: (plan.initial ?? "Shut") as "Shut",
    states: {
      Shut: {
        ...(plan.always && { always: plan.always }),
        on: {
          open: {
            guard: plan.guard ?? "isUnlocked",
            target: plan.target ?? "Open",
            actions: plan.actions ?? [{ type: "ring", params: { times: 1 } }, "count"],
          },
          ...plan.on,
        },
      },
      Open: {
        ...(plan.entry && { entry: plan.entry }),
        ...(plan.exit && { exit: plan.exit }),
        on: { shut: { target: "Shut", reenter: plan.reenter ?? false } },
      },
      ...plan.states,
    },
  } as never);
  return machine as AnyStateMachine;
}

const only = (machine: AnyStateMachine, migrations: Chart["migrations"] = []) => ({
  door: { machine, migrations },
});
const lockOf = (machine: AnyStateMachine) => withNewVersions({ released: [], structures: {} }, only(machine));

describe("the structure of charts", () => {
  it("is equal to the structure in the lock file", () => {
    expect(lockProblems(lock, charts)).to.deep.equal([]);
  });

  it("has golden snapshots for every locked version", () => {
    for (const [id, versions] of Object.entries(lock.structures))
      for (const version of Object.keys(versions))
        expect(existsSync(`${GOLDEN_FOLDER}/${id}@${version}.json`), `${id}@${version}`).to.equal(true);
  });

  it("changes with everything that a snapshot may depend on", () => {
    const plans: Record<string, Plan> = {
      nothing: {},
      "a state": { states: { Ajar: {} } },
      "an event": { on: { slam: "Open" } },
      "an event without consequence": { on: { slam: {} } },
      "a guard": { guard: "isNight" },
      "the parameters of a guard": { guard: { type: "isUnlocked", params: { key: 1 } } },
      "other parameters of a guard": { guard: { type: "isUnlocked", params: { key: 2 } } },
      "a target": { target: "Shut" },
      "an action": { actions: ["knock", "count"] },
      "an action less": { actions: "count" },
      "the order of actions": { actions: ["count", { type: "ring", params: { times: 1 } }] },
      "static parameters": { actions: [{ type: "ring", params: { times: 2 } }, "count"] },
      "computed parameters": { actions: [{ type: "ring", params: () => ({ times: 1 }) }, "count"] },
      "an entry action": { entry: "ring" },
      "an exit action": { exit: "ring" },
      "the initial state": { initial: "Open" },
      "an action on the way into the initial state": { initial: { target: "Shut", actions: "knock" } },
      "an eventless transition": { always: { guard: "isNight", target: "Open" } },
      reentering: { reenter: true },
      "a type": { states: { Ajar: { type: "final" } } },
      "a leaf that has become compound": { states: { Ajar: { initial: "A", states: { A: {} } } } },
      "a leaf that has become parallel": { states: { Ajar: { type: "parallel", states: { A: {} } } } },
    };
    const byHash = new Map<string, string>();
    for (const [name, plan] of Object.entries(plans)) {
      const hash = structureHash(door(plan));
      expect(byHash.get(hash), `${name} has the hash of`).to.equal(undefined);
      byHash.set(hash, name);
    }
  });

  it("does not change with the bodies of functions, nor with the order in which events are written", () => {
    expect(structureHash(door({ bodies: "other" }))).to.equal(structureHash(door()));
    const [ab, ba] = [
      { a: "Open", b: "Open" },
      { b: "Open", a: "Open" },
    ];
    expect(structureHash(door({ on: ab }))).to.equal(structureHash(door({ on: ba })));
  });
});

describe("the lock on charts", () => {
  it("finds a structure that changed without its version, and says what to do", () => {
    const [problem, ...others] = lockProblems(lockOf(door()), only(door({ target: "Shut" })));
    expect(others).to.deep.equal([]);
    expect(problem)
      .to.include("door 1 has changed its structure")
      .and.include("give it a new version and a migration from 1")
      .and.include("npm run machines:lock")
      .and.include(`delete its line in ${LOCK_FILE}`);
  });

  it("does not offer to delete the line of a released version", () => {
    const released = { ...lockOf(door()), released: ["door@1"] };
    const [problem] = lockProblems(released, only(door({ target: "Shut" })));
    expect(problem).to.include("it is released").and.not.include("delete");
    expect(lockProblems({ ...released, structures: {} }, only(door()))).to.include(
      "door@1 is released: put its line back",
    );
  });

  it("takes in a new version and leaves the old line as it is", () => {
    const first = lockOf(door());
    const changed = withNewVersions(first, only(door({ target: "Shut" })));
    expect(changed).to.deep.equal(first);
    const second = withNewVersions(first, only(door({ version: "2", target: "Shut" })));
    expect(second.structures).to.deep.equal({
      door: { "1": structureHash(door()), "2": structureHash(door({ target: "Shut" })) },
    });
  });

  it("requires a migration from every locked version to the current one", () => {
    const next = door({ version: "3" });
    const whole = withNewVersions(withNewVersions(lockOf(door()), only(door({ version: "2" }))), only(next));
    const step = (from: string, to: string) => ({ from, to, migrate: <T>(snapshot: T) => snapshot });
    expect(lockProblems(whole, only(next, [step("1", "2"), step("2", "3")]))).to.deep.equal([]);
    expect(lockProblems(whole, only(next, [step("1", "2")]))).to.have.length(2);
    expect(lockProblems(whole, only(next, [step("1", "2"), step("2", "1")]))).to.have.length(2);
    expect(lockProblems(whole, {})).to.have.length(3);
  });

  it("reports a chart that it has never seen", () => {
    expect(lockProblems({ released: [], structures: {} }, only(door()))).to.deep.equal([
      `door 1 is not in ${LOCK_FILE}: run \`npm run machines:lock\``,
    ]);
  });
});

describe("the registry of charts", () => {
  for (const [id, { machine }] of Object.entries<Chart>(charts)) {
    it(`${id} is registered under its own id and has a version`, () => {
      expect(machine.id).to.equal(id);
      expect(machine.version).to.match(/^[1-9][0-9]*$/);
    });

    it(`${id} names all that it does, and has nothing that a snapshot does not hold`, () => {
      const problems: string[] = [];
      const walk = (node: AnyStateNode): void => {
        if (node.invoke.length > 0) problems.push(`${node.id}: invoke`);
        if (node.after.length > 0) problems.push(`${node.id}: after`);
        if (node.type === "history") problems.push(`${node.id}: history`);
        const transitions = [...[...node.transitions.values()].flat(), ...(node.always ?? [])];
        const references: unknown[] = [...node.entry, ...node.exit];
        for (const { guard, actions } of transitions) references.push(guard ?? "none", ...actions);
        if (references.some((reference) => typeof reference === "function"))
          problems.push(`${node.id}: inline`);
        Object.values(node.states).forEach(walk);
      };
      walk(machine.root);
      for (const [name, action] of Object.entries<unknown>(machine.implementations.actions))
        if (typeof action === "function" && "resolve" in action && !("assignment" in action))
          problems.push(`${name}: a built-in action`);
      expect(problems).to.deep.equal([]);
    });
  }
});
