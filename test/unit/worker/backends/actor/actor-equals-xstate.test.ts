// The same events, timers and ends of promises to a durable actor with all that it starts, whose states go through their bytes at each step, and
// to an actor of XState's that lives in memory. `ACTOR_CHARTS=10000 npx mocha test/unit/worker/backends/actor/actor-equals-xstate.test.ts`
// is the campaign.
import { expect } from "chai";
import { createActor } from "xstate";
import type { AnyActorRef, AnyMachineSnapshot, AnyStateMachine, AnyStateNode, StateValue } from "xstate";
import { seededRandom } from "../../../../../src/base/random.ts";
import type { Random } from "../../../../../src/base/random.ts";
import type { ActorSnapshot, ActorState } from "../../../../../src/runtime/actor-state.ts";
import { ActorSteps } from "../../../../../src/worker/backends/actor/actor-step.ts";
import { defineActor } from "../../../../../src/worker/backends/actor/define-actor.ts";
import { EVENTS, generatedChart } from "./generated-chart.ts";
import { LiveActors } from "./live-actors.ts";
import { BrokenActor, ToyLedger } from "./toy-ledger.ts";

const CHARTS = Number(process.env["ACTOR_CHARTS"] ?? 150);
const FIRST = Number(process.env["ACTOR_CHART"] ?? 1);
const STEPS_EACH = 25;
const KEY = "chart/1";
/** No chart takes it: the first states of an actor, and all that they start, come before anything else. */
const FIRST_EVENT = { type: "begin" };

/** How the comparison of one chart ended, and what it has met. */
interface Course {
  readonly end: "active" | "done" | "broken" | "unsound" | "raced";
  readonly values: number;
  readonly timers: number;
  readonly promises: number;
  readonly children: number;
  readonly actions: number;
}

describe("actor_equals_xstate", () => {
  it(`a durable actor is what XState's own is, step by step, for ${CHARTS} charts`, async () => {
    const ends = { active: 0, done: 0, broken: 0, unsound: 0, raced: 0 };
    const met = { values: 0, timers: 0, promises: 0, children: 0, actions: 0 };
    for (let seed = FIRST; seed < FIRST + CHARTS; seed++) {
      const course = await compare(seed);
      ends[course.end]++;
      for (const what of Object.keys(met) as (keyof typeof met)[]) met[what] += course[what];
    }
    if (process.env["ACTOR_CHARTS"] !== undefined) process.stderr.write(`${JSON.stringify({ ends, met })}\n`);
    // Charts that end at once, or never move, would agree about nothing.
    const { unsound, raced, ...sound } = ends;
    for (const count of Object.values(sound)) expect(count).to.be.greaterThan(CHARTS / 50);
    expect(unsound + raced).to.be.lessThan(CHARTS / 4);
    for (const count of Object.values(met)) expect(count).to.be.greaterThan(CHARTS / 4);
  });
});

async function compare(seed: number): Promise<Course> {
  const pair = new Pair(seed);
  const values = new Set<string>();
  const courseOf = (end: Course["end"]): Course => ({ end, values: values.size, ...pair.met });
  try {
    for (let taken = 0; taken < STEPS_EACH; taken++) {
      const isWhole = await pair.take(taken === 0);
      if (pair.isRaced) return courseOf("raced");
      if (!pair.isSound) return courseOf("unsound");
      const at = `seed ${seed}, step ${taken}`;
      if (!isWhole) {
        expect(pair.liveStatus, at).to.equal("error");
        return courseOf("broken");
      }
      pair.expectEqual(at);
      values.add(JSON.stringify(pair.state?.snapshot.value));
      if (pair.state?.snapshot.status === "done") return courseOf("done");
    }
    return courseOf("active");
  } finally {
    pair.live.stop();
  }
}

class Pair {
  readonly live = new LiveActors();
  readonly #random: Random;
  readonly #machine: AnyStateMachine;
  readonly #durable: ToyLedger;
  readonly met = { timers: 0, promises: 0, children: 0, actions: 0 };

  constructor(seed: number) {
    this.#random = seededRandom(seed);
    this.#machine = generatedChart(this.#random, this.live);
    const type = defineActor({ machine: this.#machine });
    this.#durable = new ToyLedger(new ActorSteps("chart", type, 1, createActor as never));
  }

  get state(): ActorState | undefined {
    return this.#durable.stateOf(KEY);
  }

  get liveStatus(): string {
    return (this.live.root.getSnapshot() as AnyMachineSnapshot).status;
  }

  /** Whether something came to pass at once of which nobody promises an order. */
  get isRaced(): boolean {
    return this.live.isRaced || this.#durable.races > 0;
  }

  get isSound(): boolean {
    return this.live.machines().every(([, snapshot]) => isSound(snapshot));
  }

  /** Does the same to both. False when the durable one has broken. */
  async take(isFirst: boolean): Promise<boolean> {
    const { live } = this;
    const durable = this.#durable;
    const unit = this.#random.unit();
    try {
      if (isFirst) {
        live.start(this.#machine, KEY, FIRST_EVENT);
        durable.send(KEY, FIRST_EVENT);
      } else if (unit < 0.3 && durable.nextMs !== undefined) {
        this.met.timers++;
        live.advance();
        durable.advance();
      } else if (unit > 0.7 && durable.invocations.length > 0) {
        this.met.promises++;
        const name = this.#pick(durable.invocations);
        const isKept = this.#random.unit() < 0.6;
        const [kind, payload] = isKept
          ? ["outcome" as const, `{"of":"${name}"}`]
          : ["failure" as const, `no ${name}`];
        await live.settle(name, kind, payload);
        durable.settle(name, kind, payload);
      } else {
        const event = { type: this.#pick(EVENTS) };
        live.send(event);
        durable.send(KEY, event);
      }
      return true;
    } catch (error) {
      if (error instanceof BrokenActor) return false;
      throw error;
    }
  }

  expectEqual(at: string): void {
    const { live } = this;
    const durable = this.#durable;
    const machines = live.machines();
    for (const [key, snapshot] of machines) {
      const state = durable.stateOf(key);
      expect(state && shownState(state), `${at}, ${key}`).to.deep.equal(shownLive(snapshot));
      if (durable.thrown.has(key)) continue;
      expect(durable.acted.get(key) ?? [], `${at}, actions of ${key}`).to.deep.equal(
        live.acted.get(key) ?? [],
      );
    }
    expect(durable.keys, at).to.deep.equal(machines.map(([key]) => key).sort());
    expect(durable.invocations, at).to.deep.equal(live.invocations);
    expect(durable.nextMs, at).to.equal(live.nextMs);
    this.met.children += machines.length - 1;
    this.met.actions = [...durable.acted.values()].flat().length;
  }

  #pick<T>(list: readonly T[]): T {
    return list[Math.floor(this.#random.unit() * list.length)] as T;
  }
}

/**
 * Whether an actor in memory is in the states that its value names. By transitions across the regions of a parallel state XState's own
 * may be in two states of one region, which no snapshot says: it goes on differently from its own snapshot too.
 */
function isSound(snapshot: AnyMachineSnapshot): boolean {
  const value = snapshot.value as StateValue;
  const machine = snapshot.machine as AnyStateMachine;
  const named: unknown = machine.resolveState({ value, context: {} })._nodes;
  const ids = (nodes: readonly AnyStateNode[]): string => JSON.stringify(nodes.map(({ id }) => id).sort());
  return ids(named as readonly AnyStateNode[]) === ids(snapshot._nodes as readonly AnyStateNode[]);
}

/** The parts of a snapshot that an actor keeps. */
function shownLive(snapshot: AnyMachineSnapshot): unknown {
  const { children, tags, ...kept } = snapshot as unknown as ActorSnapshot & LiveParts;
  const { status, value, context, output, historyValue = {} } = kept;
  const there = Object.entries(children).map(([name, child]) => {
    const { status: childStatus } = child.getSnapshot() as { readonly status: string };
    return [name, childStatus === "active" ? "live" : "ended"] as const;
  });
  const shown = inOrder({ status, value, context: withIds(context), output, historyValue });
  return { ...shown, tags: [...tags].sort(), children: status === "active" ? Object.fromEntries(there) : {} };
}

interface LiveParts {
  readonly children: Readonly<Record<string, AnyActorRef>>;
  readonly tags: ReadonlySet<string>;
}

function shownState({ snapshot, tags, children = {} }: ActorState): unknown {
  const there = Object.entries(children).map(
    ([id, { hasEnded }]) => [id, hasEnded === true ? "ended" : "live"] as const,
  );
  const shown = inOrder({ ...snapshot, context: withIds(snapshot.context) });
  return { ...shown, tags, children: Object.fromEntries(there) };
}

/** A context with the id of its child in place of a reference. */
function withIds(context: unknown): unknown {
  const { kid, ...rest } = context as { readonly kid?: { readonly id?: string; readonly key?: string } };
  const id = kid?.id ?? kid?.key?.split("/").at(-1);
  return { ...rest, ...(kid !== undefined && { kid: id }) };
}

/** The states that a history goes back to are a set. */
function inOrder({ historyValue = {}, output = null, ...snapshot }: ActorSnapshot): object {
  const entries = Object.entries(historyValue).map(([id, states]) => [
    id,
    states.map((state) => state.id).sort(),
  ]);
  return { ...snapshot, output, historyValue: Object.fromEntries(entries) as unknown };
}
