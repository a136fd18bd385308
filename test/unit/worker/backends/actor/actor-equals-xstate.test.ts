// The same events to a durable actor, whose state goes through its bytes between any two of them, and to an actor of XState's that
// lives in memory. `ACTOR_CHARTS=10000 npx mocha test/unit/worker/backends/actor/actor-equals-xstate.test.ts` is the campaign.
import { expect } from "chai";
import { createActor } from "xstate";
import type { AnyMachineSnapshot, AnyStateMachine, AnyStateNode, StateValue } from "xstate";
import { seededRandom } from "../../../../../src/base/random.ts";
import { readActorState, writeActorState } from "../../../../../src/runtime/actor-state.ts";
import type { ActorSnapshot, ActorState } from "../../../../../src/runtime/actor-state.ts";
import { ActorSteps } from "../../../../../src/worker/backends/actor/actor-step.ts";
import { defineActor } from "../../../../../src/worker/backends/actor/define-actor.ts";
import { EVENTS, generatedChart } from "../../../../support/generated-chart.ts";

const CHARTS = Number(process.env["ACTOR_CHARTS"] ?? 300);
const EVENTS_EACH = 25;
const INPUT = { key: "chart/1", type: "chart", id: "1" };

/** How the comparison of one chart ended, and what it has met. */
interface Course {
  readonly end: "active" | "done" | "broken" | "unsound";
  readonly values: number;
}

describe("actor_equals_xstate", () => {
  it(`a durable actor is what XState's own is, event by event, for ${CHARTS} charts`, () => {
    const ends = { active: 0, done: 0, broken: 0, unsound: 0 };
    let values = 0;
    for (let seed = 1; seed <= CHARTS; seed++) {
      const course = compare(seed);
      ends[course.end]++;
      values += course.values;
    }
    // Charts that end at once, or never move, would agree about nothing.
    const { unsound, ...sound } = ends;
    for (const count of Object.values(sound)) expect(count).to.be.greaterThan(CHARTS / 50);
    expect(unsound).to.be.lessThan(CHARTS / 10);
    expect(values).to.be.greaterThan(2 * CHARTS);
  });
});

function compare(seed: number): Course {
  const random = seededRandom(seed);
  const machine = generatedChart(random);
  const steps = new ActorSteps("chart", defineActor({ machine }), 1, createActor as never);
  const live = createActor(machine, { input: INPUT });
  live.subscribe({ error: () => undefined });
  live.start();
  let state: ActorState | undefined;
  const values = new Set<string>();
  for (let sent = 0; sent < EVENTS_EACH; sent++) {
    const at = `seed ${seed}, event ${sent}`;
    const event = { type: EVENTS[Math.floor(random.unit() * EVENTS.length)] ?? "a" };
    // Where its first states break it, XState's actor ends, and an actor of ours does not come to be.
    const wasActive = statusOf(live) === "active";
    const after = stepped(steps, state, event);
    if (wasActive) live.send(event);
    if (wasActive && !isSound(machine, live.getSnapshot() as AnyMachineSnapshot))
      return { end: "unsound", values: values.size };
    if (after === undefined) {
      const { status } = live.getSnapshot() as AnyMachineSnapshot;
      expect(status, at).to.equal(wasActive ? "error" : status);
      return { end: "broken", values: values.size };
    }
    const expected = { ...inOrder(after.snapshot), tags: after.tags };
    expect(shown(machine, live.getSnapshot() as AnyMachineSnapshot), at).to.deep.equal(expected);
    values.add(JSON.stringify(after.snapshot.value));
    if (after.snapshot.status === "done") return { end: "done", values: values.size };
    const kept = readActorState(writeActorState(after));
    expect(kept?.snapshot.value, at).to.deep.equal(after.snapshot.value);
    state = kept;
  }
  live.stop();
  return { end: "active", values: values.size };
}

/**
 * Whether the actor in memory is in the states that its value names. By transitions across the regions of a parallel state XState's own
 * may be in two states of one region, which no snapshot says: it goes on differently from its own snapshot too.
 */
function isSound(machine: AnyStateMachine, snapshot: AnyMachineSnapshot): boolean {
  const value = snapshot.value as StateValue;
  const named: unknown = machine.resolveState({ value, context: {} })._nodes;
  const ids = (nodes: readonly AnyStateNode[]): string => JSON.stringify(nodes.map(({ id }) => id).sort());
  return ids(named as readonly AnyStateNode[]) === ids(snapshot._nodes as readonly AnyStateNode[]);
}

/** Undefined when it throws. */
function stepped(
  steps: ActorSteps,
  state: ActorState | undefined,
  event: { readonly type: string },
): ActorState | undefined {
  try {
    return steps.step(state, event, INPUT);
  } catch {
    return undefined;
  }
}

function statusOf(actor: { getSnapshot(): unknown }): string {
  return (actor.getSnapshot() as AnyMachineSnapshot).status;
}

/** The parts of a snapshot that an actor keeps. */
function shown(machine: AnyStateMachine, snapshot: AnyMachineSnapshot): unknown {
  const persisted: unknown = machine.getPersistedSnapshot(snapshot);
  const { status, value, context, output, historyValue } = persisted as Required<ActorSnapshot>;
  const kept = { status, value, context, output, historyValue };
  return { ...inOrder(kept), tags: [...(snapshot.tags as ReadonlySet<string>)].sort() };
}

/** The states that a history goes back to are a set. */
function inOrder({ historyValue = {}, ...snapshot }: ActorSnapshot): ActorSnapshot {
  const entries = Object.entries(historyValue).map(([id, states]) => [
    id,
    states.map((state) => state.id).sort(),
  ]);
  return { ...snapshot, historyValue: Object.fromEntries(entries) as never };
}
