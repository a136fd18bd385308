import { expect } from "chai";
import fc from "fast-check";
import { and, assign, createMachine, raise, setup } from "xstate";
import type { AnyStateMachine, EventObject } from "xstate";
import { execution } from "../../../machines/execution.ts";
import { run } from "../../../machines/run.ts";
import { key } from "../../../machines/key.ts";
import { workItem } from "../../../machines/work-item.ts";
import { workerLifecycle } from "../../../machines/worker-lifecycle.ts";
import { workerTrust } from "../../../machines/worker-trust.ts";
import { AssertionFailed } from "../../../src/base/assert.ts";
import { compile } from "../../../src/runtime/compile.ts";
import type { Effect } from "../../../src/runtime/compile.ts";
import { chartEvents, LiveActor, reachableStates } from "../../machines/live-chart.ts";
import { nestedChart } from "../../support/nested-chart.ts";

interface Proof {
  /** The machine that the compiled chart is held against. */
  readonly machine: AnyStateMachine;
  readonly context: fc.Arbitrary<object>;
  readonly event: fc.Arbitrary<EventObject>;
}

/** Random walks from random places, by the compiled chart and by XState's own actor, side by side. */
function differential({ machine, context, event }: Proof, compiled = compile(machine)) {
  const values = reachableStates(machine);
  const hit = new Set<string>();
  const property = fc.property(
    fc.constantFrom(...values.keys()),
    context,
    fc.array(event, { minLength: 1, maxLength: 30 }),
    (start, startContext, events) => {
      const value = values.get(start) ?? "";
      // A chart at rest is where events find it: nothing eventless is due.
      const atRest = LiveActor.at(machine, { value, context: startContext });
      fc.pre(atRest.send({ type: "unheard of" }) === undefined);
      const live = LiveActor.at(machine, { value, context: startContext });
      let row = { state: compiled.indexOf(start) ?? -1, context: startContext };
      for (const one of events) {
        hit.add(`${compiled.states[row.state] ?? ""} × ${one.type}`);
        const expected = live.send(one);
        const effects: Effect[] = [];
        const next = compiled.step(row, one, effects);
        const state = compiled.states[next.state] ?? "";
        const found = next === row ? undefined : { state, effects, context: next.context as unknown };
        expect(found).to.deep.equal(expected);
        row = next as typeof row;
      }
    },
  );
  const result = fc.check(property, { numRuns: 1_500, seed: 20_261_118 });
  const pairs = compiled.states.flatMap((state) => chartEvents(machine).map((type) => `${state} × ${type}`));
  const divergence = result.failed ? fc.defaultReportMessage(result) : "none";
  return { divergence, missed: pairs.filter((pair) => !hit.has(pair)) };
}

const attempt = {
  worker: fc.constantFrom("w1", "w2"),
  incarnation: fc.constantFrom("i1", "i2"),
  epoch: fc.constantFrom(1, 2),
};
const report = { ...attempt, attempt: fc.constantFrom(1, 2) };
/** Most reports are of one attempt, so that guards say yes often enough. */
const likely = { worker: "w1", incarnation: "i1", attempt: 1, epoch: 1 };
const typed = (...types: readonly string[]) => ({ type: fc.constantFrom(...types) });
const small = fc.integer({ min: 0, max: 3 });
const moment = fc.constantFrom(0, 30_000, 90_000);
const REPORTS = [
  "item.succeeded",
  "item.succeededLate",
  "item.erred",
  "item.tooLarge",
  "item.crashedTogether",
  "item.erredOnTrial",
];
const trial = { trial: fc.constantFrom("", "r1") };

const PROOFS: readonly Proof[] = [
  {
    machine: workItem,
    context: fc
      .record({
        charged: small,
        lost: small,
        failedBy: fc.constantFrom("", "w1"),
        blamed: fc.constantFrom("", "w1"),
        isApart: fc.boolean(),
        tried: fc.constantFrom("", "r1"),
        ...trial,
        returnedAtMs: fc.array(moment, { maxLength: 3 }),
        maxAttempts: small,
        maxLost: small,
        maxReturns: small,
      })
      .map((budgets) => ({ ...likely, ...budgets })),
    event: fc.oneof(
      fc.record({ ...typed("item.assigned"), ...attempt, ...trial }),
      fc.record({ ...typed("item.adopted"), ...report, ...trial, attempt: fc.constantFrom(1, 2, 3) }),
      fc.record({ ...typed("item.returned"), atMs: moment }).map((event) => ({ ...event, ...likely })),
      fc.record({ ...typed(...REPORTS), ...report }),
      fc.record({ ...typed(...REPORTS) }).map((event) => ({ ...event, ...likely })),
      fc.record({ ...typed("item.lost"), ...report, counted: fc.boolean() }),
      fc.record({ ...typed("item.lost"), counted: fc.boolean() }).map((event) => ({ ...event, ...likely })),
      fc.record(typed("item.cancelled", "item.retried", "item.unheardOf")),
    ),
  },
  {
    machine: execution,
    context: fc.constant({}),
    event: fc.record(
      typed(
        ...["execution.waits", "execution.begins", "execution.withheld", "time.over"],
        ...["worker.fenced", "worker.leaves", "result.unwanted"],
      ),
    ),
  },
  {
    machine: key,
    context: fc.record({
      mail: small,
      isPaused: fc.boolean(),
      hasFailed: fc.boolean(),
      isDelayed: fc.boolean(),
    }),
    event: fc.record(
      typed(
        ...["mail.arrived", "key.assigned", "item.settled", "item.failed", "item.returned", "item.delayed"],
        ...["item.due", "item.retried", "key.paused", "key.resumed", "key.skipped", "key.retired"],
      ),
    ),
  },
  {
    machine: run,
    context: fc.record({ pauseReason: fc.constantFrom(null, "over budget") }),
    event: fc.oneof(
      fc.record({ ...typed("run.paused"), reason: fc.string() }),
      fc.record(
        typed("run.sealed", "run.completed", "run.cancelled", "run.resumed", "run.reopened", "run.extended"),
      ),
    ),
  },
  {
    machine: workerLifecycle,
    context: fc.record({ incarnation: fc.constantFrom("01A", "01B") }),
    event: fc.oneof(
      fc.record({
        ...typed("worker.welcomed", "worker.drainAsked", "worker.drain", "worker.left"),
        incarnation: fc.constantFrom("01A", "01B", "01C"),
      }),
      fc.record({
        ...typed("worker.started", "beat.arrived"),
        incarnation: fc.constantFrom("01A", "01B", "01C"),
      }),
      fc.record(typed("beat.overdue", "beat.timedOut", "worker.expired")),
    ),
  },
  {
    machine: workerTrust,
    context: fc.record({
      incarnation: fc.constantFrom("01A", "01B"),
      failuresInRow: small,
      failingSinceMs: small,
      maxFailuresInRow: small,
      triedAtMs: small,
    }),
    event: fc.oneof(
      fc.record({
        ...typed("item.succeeded", "worker.started"),
        incarnation: fc.constantFrom("01A", "01B", "01C"),
      }),
      fc.record({
        ...typed("item.failed"),
        incarnation: fc.constantFrom("01A", "01B"),
        atMs: small,
        othersSucceededAtMs: small,
      }),
      fc.record(typed("item.failedElsewhere")),
      fc.record({ ...typed("worker.tried"), incarnation: fc.constantFrom("01A", "01B"), atMs: small }),
    ),
  },
  {
    machine: nestedChart,
    context: fc.record({ n: fc.integer({ min: 0, max: 50 }) }),
    event: fc.record({ ...typed("X", "Y", "OUT", "NEVER", "ELSE"), k: fc.integer({ min: 0, max: 6 }) }),
  },
];

/** The chart with another configuration and its own functions. */
function mutated(machine: AnyStateMachine, change: (config: Record<string, never>) => void): AnyStateMachine {
  const config: unknown = structuredClone({ ...machine.config, context: {} });
  change(config as Record<string, never>);
  const context: unknown = machine.config.context;
  const changed: unknown = createMachine(
    Object.assign({}, config, { context }) as never,
    machine.implementations as never,
  );
  return changed as AnyStateMachine;
}

describe("a compiled chart", () => {
  for (const proof of PROOFS)
    it(`${proof.machine.id} is the interpreter's equal on every (state, event) pair`, () => {
      expect(differential(proof)).to.deep.equal({ divergence: "none", missed: [] });
    });

  it("is found out when two branches of a guard are swapped", () => {
    const [proof] = PROOFS;
    if (proof === undefined) return expect.fail("there are charts");
    expect(proof.machine).to.equal(workItem);
    const same = mutated(workItem, () => {});
    expect(differential(proof, compile(same)).divergence).to.equal("none");
    const swapped = mutated(
      workItem,
      (config: { states?: { Running?: { on?: { "item.erred"?: { guard: string }[] } } } }) => {
        const branches = config.states?.Running?.on?.["item.erred"] ?? [];
        expect(branches.map(({ guard }) => guard)).to.deep.equal(["isSpent", "isCurrent"]);
        branches.reverse();
      },
    );
    expect(differential(proof, compile(swapped)).divergence).not.to.equal("none");
  });

  it("begins with the context that the chart makes of its input", () => {
    const compiled = compile(workItem);
    const row = compiled.initial({ maxAttempts: 2, maxLost: 4 });
    expect(compiled.states[row.state]).to.equal("Pending");
    expect(row.context).to.include({ attempt: 0, maxAttempts: 2, maxLost: 4 });
    expect(compile(run).initial({})).to.deep.equal({ state: 0, context: { pauseReason: null } });
  });

  it("gives the very same row back for an event that it ignores, and does nothing", () => {
    const compiled = compile(workItem);
    const row = compiled.initial({ maxAttempts: 2, maxLost: 4 });
    const effects: Effect[] = [];
    expect(compiled.step(row, { type: "item.retried" }, effects)).to.equal(row);
    expect(compiled.step(row, { type: "unheard of" } as never, effects)).to.equal(row);
    expect(effects).to.deep.equal([]);
  });

  it("does not change the row that it is given", () => {
    const compiled = compile(workItem);
    const row = Object.freeze({
      state: 0,
      context: Object.freeze(compiled.initial({ maxAttempts: 2, maxLost: 4 }).context),
    });
    const next = compiled.step(row, { type: "item.assigned", worker: "w", incarnation: "i", epoch: 1 }, []);
    expect([row.context.attempt, next.context.attempt]).to.deep.equal([0, 1]);
  });

  it("knows its states by name", () => {
    const compiled = compile(nestedChart);
    for (const [index, name] of compiled.states.entries()) expect(compiled.indexOf(name)).to.equal(index);
    expect(compiled.states).to.include("both.a+y.two");
    expect(compiled.indexOf("nowhere")).to.equal(undefined);
    expect([compiled.id, compiled.version]).to.deep.equal(["nested", "1"]);
  });

  it("asks a guard once for all regions, and again after an assign", () => {
    let asked = 0;
    const counting = workerLifecycle.provide({
      guards: {
        isCurrent: () => {
          asked++;
          return true;
        },
      },
    });
    const compiled = compile(counting);
    compiled.step(compiled.initial({ incarnation: "01B" }), { type: "worker.left", incarnation: "01B" }, []);
    expect(asked).to.equal(1);

    const again = setup({
      types: { context: {} as { n: number } },
      guards: { isZero: ({ context }) => context.n === 0 },
      actions: { increase: assign({ n: ({ context }) => context.n + 1 }) },
    }).createMachine({
      id: "again",
      context: { n: 0 },
      initial: "a",
      states: {
        a: { on: { go: { guard: "isZero", target: "b", actions: "increase" } } },
        b: { always: { guard: "isZero", target: "c" } },
        c: {},
      },
    });
    const asking = compile(again);
    const after = asking.step(asking.initial(undefined), { type: "go" }, []);
    expect(asking.states[after.state]).to.equal("b");
  });
});

describe("compiling", () => {
  const kit = setup({
    guards: { yes: () => true, no: () => false, both: and(["yes", "no"]) },
    actions: { act: () => {}, again: raise({ type: "go" }), note: assign({ n: 1 }) },
    actors: {},
  });
  const refusals: Record<string, [config: object, why: string]> = {
    "an invoked actor": [{ states: { a: { invoke: { src: "x" } } } }, "refused.a cannot be compiled: invoke"],
    "a delayed transition": [
      { states: { a: { after: { 10: "a" } } } },
      "refused.a cannot be compiled: after",
    ],
    "a wildcard": [{ on: { "*": ".a" }, states: { a: {} } }, "refused cannot be compiled: a wildcard event"],
    "a partial wildcard": [{ on: { "go.*": ".a" }, states: { a: {} } }, "a wildcard event"],
    "an inline action": [
      { on: { go: { actions: () => {} } }, states: { a: {} } },
      "an inline guard or action",
    ],
    "an inline guard": [
      { on: { go: { guard: () => true } }, states: { a: {} } },
      "an inline guard or action",
    ],
    "an inline assign": [
      { on: { go: { actions: assign({}) } }, states: { a: {} } },
      "an inline guard or action",
    ],
    "an inline entry action": [
      { states: { a: { on: { go: "b" } }, b: { entry: () => {} } } },
      "refused.b cannot be compiled: an inline guard or action",
    ],
    "an inline action of an eventless transition": [
      { states: { a: {}, b: { always: { guard: "no", target: "a", actions: () => {} } } } },
      "an inline guard or action",
    ],
    "computed parameters of an action": [
      { on: { go: { actions: { type: "act", params: () => ({}) } } }, states: { a: {} } },
      "computed parameters",
    ],
    "computed parameters of a guard": [
      { on: { go: { guard: { type: "yes", params: () => ({}) } } }, states: { a: {} } },
      "computed parameters",
    ],
    "a history state": [
      { states: { a: {}, h: { type: "history" } } },
      "refused.h cannot be compiled: history state",
    ],
    "a guard made of guards": [
      { on: { go: { guard: "both" } }, states: { a: {} } },
      "a guard made of other guards",
    ],
    "a built-in action": [
      { on: { go: { actions: "again" } }, states: { a: {} } },
      "a built-in action other than assign",
    ],
    "a transition on the end of a child": [
      { states: { a: { initial: "b", onDone: "c", states: { b: { type: "final" } } }, c: {} } },
      "the event xstate.done.state.refused.a",
    ],
    "an entry action of the initial state": [
      { states: { a: { entry: "act" } } },
      "entry actions in the initial state",
    ],
    "an entry action of the chart": [
      { entry: "act", states: { a: {} } },
      "entry actions in the initial state",
    ],
    "an entry action of an initial region": [
      { states: { a: { type: "parallel", states: { b: {}, c: { entry: "note" } } } } },
      "refused.a.c cannot be compiled: entry actions in the initial state",
    ],
    "an eventless transition in the initial state": [
      { states: { a: { always: { guard: "yes", target: "b" } }, b: {} } },
      "an eventless transition in the initial state",
    ],
    "an action on the way into the initial state": [
      { initial: { target: "a", actions: "act" }, states: { a: {} } },
      "actions on the way into the initial state",
    ],
    "an inline action on the way into a later state": [
      { states: { a: {}, b: { initial: { target: "c", actions: () => {} }, states: { c: {} } } } },
      "an inline guard or action",
    ],
    "more guards for one event than a tree should have": [
      {
        on: { go: Array.from({ length: 9 }, (_, n) => ({ guard: { type: "no", params: { n } } })) },
        states: { a: {} },
      },
      "go asks too many guards",
    ],
  };
  for (const [what, [config, why]] of Object.entries(refusals))
    it(`refuses ${what}`, () => {
      const machine: unknown = kit.createMachine({ id: "refused", initial: "a", ...config } as never);
      expect(() => compile(machine as AnyStateMachine)).to.throw(AssertionFailed, why);
    });

  it("refuses states whose names cannot be told apart", () => {
    const machine = createMachine({
      id: "refused",
      type: "parallel",
      states: {
        left: { initial: "a+b", states: { "a+b": { on: { go: "a" } }, a: {} } },
        right: { initial: "c", states: { c: { on: { go: "b+c" } }, "b+c": {} } },
      },
    });
    expect(() => compile(machine)).to.throw(AssertionFailed, "two states share a name");
  });
});
