// A chart as a table that a person can read: for every state and every event what comes of it, said in one line, ignored events
// included. The table is held against XState's own actor and the two forms of the product, planned steps and, where the chart can
// be compiled, rows; and against the chart itself: no state, no event and no outcome of a guard may be missing.
//
// A cell reads `Next / effect, effect(param = value); key = value`: the next state, the effects in order, and what changed
// in the context.
import { expect } from "chai";
import { isDeepStrictEqual } from "node:util";
import type { AnyStateMachine, EventFrom, StateValue } from "xstate";
import { assert, AssertionFailed } from "../../src/base/assert.ts";
import { compile } from "../../src/runtime/compile.ts";
import type { Effect } from "../../src/runtime/compile.ts";
import { stateName } from "../../src/runtime/chart-structure.ts";
import { TransitionPlanner } from "../../src/runtime/transition.ts";
import { chartEvents, LiveActor, reachableStates, ScriptedGuards } from "./live-chart.ts";
import type { GuardOutcome, Outcome } from "./live-chart.ts";

const IGNORED = "ignored";

/** The cells of events that the chart has nothing to do with in a state. */
export function ignored<const Name extends string>(...names: readonly Name[]): Record<Name, string> {
  return Object.fromEntries(names.map((name) => [name, IGNORED])) as Record<Name, string>;
}

interface RowOf<Case extends string> {
  /** The state, where the row's own name is not the name of one. */
  readonly state?: string;
  readonly context: object;
  readonly cells: Readonly<Record<Case, string>>;
}

interface ChartTable<Machine extends AnyStateMachine, Case extends string> {
  readonly machine: Machine;
  readonly input?: unknown;
  /** The expectation of a new actor, in the form of a cell. */
  readonly begins: string;
  /** Whether the chart has a compiled form. */
  readonly compiles: boolean;
  /** By a name for people. Two cases of one event differ in what a guard says to them. */
  readonly events: Readonly<Record<Case, EventFrom<Machine>>>;
  /** By the name of the state, or of a state and a situation in it. */
  readonly rows: Readonly<Record<string, RowOf<Case>>>;
}

type Step = (from: { state: string; context: object }, event: { type: string }) => Outcome | undefined;

/** Defines the tests of one table. */
export function testChartTable<Machine extends AnyStateMachine, Case extends string>(
  table: ChartTable<Machine, Case>,
): void {
  const { machine } = table;
  const values = reachableStates(machine);
  const rows = Object.entries(table.rows);
  const valueOf = (state: string): StateValue => {
    const value = values.get(state);
    assert(value !== undefined, `the chart has no state ${state} that can be reached`);
    return value;
  };
  const steppers: [string, Step][] = [
    [
      "an actor of XState",
      ({ state, context }, event) => LiveActor.at(machine, { value: valueOf(state), context }).send(event),
    ],
    ["a planned step", plannedStep(machine, valueOf)],
  ];
  if (table.compiles) steppers.push(["the compiled chart", compiledStep(machine)]);

  it("begins as the table says", () => {
    expect(describeOutcome({}, LiveActor.begin(machine, table.input).outcome)).to.equal(table.begins);
    const { snapshot, actions } = new TransitionPlanner(machine).begin(table.input);
    const planned = {
      state: stateName(snapshot.value),
      effects: actions,
      context: snapshot.context as object,
    };
    expect(describeOutcome({}, planned)).to.equal(table.begins);
  });

  it(table.compiles ? "is compiled to the same beginning" : "is refused by the compiler", () => {
    if (!table.compiles) {
      expect(() => compile(machine)).to.throw(AssertionFailed, "cannot be compiled");
      return;
    }
    const { state, context } = LiveActor.begin(machine, table.input).outcome;
    const compiled = compile(machine);
    const row = compiled.initial(table.input as Parameters<typeof compiled.initial>[0]);
    expect(compiled.states[row.state]).to.equal(state);
    expect(row.context).to.deep.equal(context);
    expect([...compiled.states].sort()).to.deep.equal([...values.keys()].sort());
  });

  for (const [form, step] of steppers)
    for (const [name, row] of rows)
      it(`${form}: ${name}`, () => {
        const from = { state: row.state ?? name, context: row.context };
        expect(cellsOf(table.events, from, step)).to.deep.equal(row.cells);
      });

  it("has a row for every state that can be reached, and for no other", () => {
    const states = new Set(rows.map(([name, row]) => row.state ?? name));
    expect([...states].sort()).to.deep.equal([...values.keys()].sort());
  });

  it("has a column for every event, and a cell for every case in every row", () => {
    const cases: [string, { type: string }][] = Object.entries(table.events);
    expect([...new Set(cases.map(([, { type }]) => type))].sort()).to.deep.equal(chartEvents(machine));
    for (const [name, { cells }] of rows)
      expect(Object.keys(cells).sort(), name).to.deep.equal(cases.map(([label]) => label).sort());
  });

  it("shows every outcome that the guards can have", () => {
    const guards = new ScriptedGuards(machine);
    const missing = [...values].flatMap(([state, value]) => {
      const contexts = rows
        .filter(([name, row]) => (row.state ?? name) === state)
        .map(([, row]) => row.context);
      return chartEvents(machine).flatMap((type) => {
        const events = Object.values<{ type: string }>(table.events).filter((event) => event.type === type);
        const isShown = (outcome: GuardOutcome): boolean =>
          contexts.some((context) => events.some((event) => outcome.holds(context, event)));
        const unseen = guards.outcomesOf(value, type).filter((outcome) => !isShown(outcome));
        return unseen.map((outcome) => `${state} × ${type} [${outcome.guards}]`);
      });
    });
    expect(missing).to.deep.equal([]);
  });
}

function cellsOf(
  events: Readonly<Record<string, { type: string }>>,
  from: { state: string; context: object },
  step: Step,
): Record<string, string> {
  return Object.fromEntries(
    Object.entries(events).map(([label, event]) => {
      const outcome = step(from, event);
      return [label, outcome === undefined ? IGNORED : describeOutcome(from.context, outcome)];
    }),
  );
}

function describeOutcome(before: object, { state, effects, context }: Outcome): string {
  const old = new Map<string, unknown>(Object.entries(before));
  const changed = Object.entries(context).filter(([key, value]) => !isDeepStrictEqual(old.get(key), value));
  const done = effects.map(({ type, params }) =>
    params === undefined || params === null ? type : `${type}(${assignments(params)})`,
  );
  return [
    state,
    ...(done.length > 0 ? [` / ${done.join(", ")}`] : []),
    ...(changed.length > 0 ? [`; ${assignments(Object.fromEntries(changed))}`] : []),
  ].join("");
}

function assignments(values: object): string {
  return Object.entries(values)
    .map(
      ([key, value]) =>
        `${key} = ${typeof value === "string" && value !== "" ? value : JSON.stringify(value)}`,
    )
    .join(", ");
}

function plannedStep(machine: AnyStateMachine, valueOf: (state: string) => StateValue): Step {
  const planner = new TransitionPlanner(machine);
  return ({ state, context }, event) => {
    const planned = planner.plan({ value: valueOf(state), context }, event);
    if (planned.kind === "ignored") return undefined;
    const { snapshot, actions } = planned;
    return { state: stateName(snapshot.value), effects: actions, context: snapshot.context as object };
  };
}

function compiledStep(machine: AnyStateMachine): Step {
  const compiled = compile(machine);
  return ({ state, context }, event) => {
    const index = compiled.indexOf(state);
    assert(index !== undefined, `the compiled chart has no state ${state}`);
    const row = { state: index, context };
    const effects: Effect[] = [];
    const next = compiled.step(row, event, effects);
    if (next === row) {
      assert(effects.length === 0, "an ignored event has no effects");
      return undefined;
    }
    return { state: compiled.states[next.state] ?? "", effects, context: next.context as object };
  };
}
