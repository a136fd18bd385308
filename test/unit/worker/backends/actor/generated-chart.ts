// Charts for comparisons with XState's own actors, made by chance: nested and parallel states, history, guards, eventless transitions,
// raised events, timers, promises, machines within machines, assigns that throw, final states and outputs. Anything that could go on
// for ever costs fuel, of which there is some at the start.
import { assign, cancel, enqueueActions, fromPromise, raise, sendTo, setup } from "xstate";
import type { AnyActorRef, AnyStateMachine } from "xstate";
import type { Random } from "../../../../../src/base/random.ts";

export const EVENTS = ["a", "b", "c", "d"] as const;

export interface ChartContext {
  readonly id: string;
  readonly n: number;
  readonly fuel: number;
  readonly seen: readonly string[];
  readonly kids: number;
  readonly kid?: AnyActorRef;
}

/** The world outside a chart, for an actor that lives in memory. */
export interface ChartWorld {
  /** A promise was begun by the actor that is given. */
  readonly begun: (promise: AnyActorRef) => Promise<unknown>;
  /** A named action is carried out. */
  readonly notified: (actor: AnyActorRef, params: unknown) => void;
}

type Config = Record<string, unknown>;

const FUEL = 8;
const FUEL_OF_CHILD = 4;
const DEPTH_MAX = 3;
const DEPTH_OF_CHILD = 2;
const SEEN_MAX = 12;
const DELAY_MAX_MS = 10_000;

function setUp(world: ChartWorld) {
  return setup({
    types: {
      context: {} as ChartContext,
      input: {} as { readonly id: string; readonly fuel?: number },
      tags: {} as string,
    },
    guards: {
      isEven: ({ context }) => context.n % 2 === 0,
      isThird: ({ context }) => context.n % 3 === 0,
      hasFuel: ({ context }) => context.fuel > 0,
    },
    actors: {
      work: fromPromise<unknown, unknown>(({ self }) => world.begun(self)),
      // Replaced by a chart that is made by chance too.
      kid: fromPromise<unknown, unknown>(() => Promise.resolve()),
    },
    actions: {
      count: assign({ n: ({ context }) => context.n + 1 }),
      note: assign({
        seen: ({ context, event }) => [...context.seen.slice(1 - SEEN_MAX), noteOf(event)],
      }),
      burn: assign({ fuel: ({ context }) => Math.max(0, context.fuel - 1) }),
      raiseB: enqueueActions(({ context, enqueue }) => {
        if (context.fuel === 0) return;
        enqueue.assign({ fuel: context.fuel - 1 });
        enqueue.raise({ type: "b" });
      }),
      breakSometimes: assign({
        n: ({ context }) => {
          if (context.n % 11 === 10) throw new RangeError("it breaks");
          return context.n + 2;
        },
      }),
      notify: ({ self }, params: unknown) => world.notified(self, params),
      raiseLater: enqueueActions(({ context, enqueue }) => {
        enqueue(cancel("late"));
        enqueue(raise({ type: "c" }, { id: "late", delay: delayOf(context) }));
      }),
      cancelLate: cancel("late"),
      spawnKid: enqueueActions(({ context, enqueue }) => {
        if (context.fuel === 0) return;
        enqueue.assign({
          fuel: context.fuel - 1,
          kids: context.kids + 1,
          kid: ({ spawn }) => spawn("kid", { id: `kid${context.kids}`, input: inputOf(context) }),
        });
      }),
      spawnOther: enqueueActions(({ context, enqueue }) => {
        if (context.fuel === 0) return;
        enqueue.assign({ fuel: context.fuel - 1, kids: context.kids + 1 });
        enqueue.spawnChild("kid", { id: `other${context.kids}`, input: inputOf(context) });
      }),
      dropKid: enqueueActions(({ context, enqueue }) => {
        if (context.kid !== undefined) enqueue.stopChild(context.kid);
      }),
      tellKid: enqueueActions(({ context, enqueue }) => {
        if (context.kid === undefined || context.fuel === 0) return;
        enqueue.assign({ fuel: context.fuel - 1 });
        enqueue.sendTo(context.kid, { type: "a" });
      }),
      tellKidLater: enqueueActions(({ context, enqueue }) => {
        if (context.kid === undefined) return;
        enqueue(cancel("tell"));
        enqueue(sendTo(context.kid, { type: "b" }, { id: "tell", delay: delayOf(context) }));
      }),
      tellParent: enqueueActions(({ context, enqueue }) => {
        if (context.fuel === 0) return;
        enqueue.assign({ fuel: context.fuel - 1 });
        enqueue.sendParent({ type: "d" });
      }),
    },
  });
}

function inputOf({ n, fuel }: ChartContext): object {
  return { id: `of ${n}`, fuel: Math.min(FUEL_OF_CHILD, fuel) };
}

/** The note of an event, with the end of an invocation or a child in it. */
function noteOf(event: { readonly type: string }): string {
  const { output = null, error } = event as End;
  return `${event.type} ${JSON.stringify(output)} ${error?.message ?? ""}`;
}

interface End {
  readonly type: string;
  readonly output?: unknown;
  readonly error?: { readonly message: string };
}

/** Others than those of `after`, so that no two of them are due at once. */
function delayOf({ n, fuel }: ChartContext): number {
  return DELAY_MAX_MS + 100 * n + fuel;
}

const ACTIONS = ["count", "note", "note", "raiseB", "breakSometimes", "raiseLater", "cancelLate"];
const OF_PARENTS = ["spawnKid", "spawnKid", "spawnOther", "dropKid", "tellKid", "tellKid", "tellKidLater"];
const GUARDS = ["isEven", "isThird", undefined, undefined];
const NOTIFY = { type: "notify", params: ({ context }: { context: ChartContext }) => ({ n: context.n }) };

/** The same for the same numbers drawn. */
export function generatedChart(random: Random, world: ChartWorld): AnyStateMachine {
  // Some charts have nothing but themselves.
  const isPlain = random.unit() < 0.3;
  const grandchild = new Generator(random, world, { isPlain: true, isChild: true }).machine();
  const child = new Generator(random, world, { isPlain, isChild: true }).machine(grandchild);
  return new Generator(random, world, { isPlain, isChild: false }).machine(child);
}

interface Traits {
  /** Nothing is invoked or spawned, and there are no timers. */
  readonly isPlain: boolean;
  readonly isChild: boolean;
}

class Generator {
  readonly #random: Random;
  readonly #world: ChartWorld;
  readonly #traits: Traits;
  /** Ids of all states that a transition may go to. */
  readonly #ids: string[] = [];
  /** Transitions to be given their targets when all states are known. */
  readonly #open: Config[] = [];

  constructor(random: Random, world: ChartWorld, traits: Traits) {
    this.#random = random;
    this.#world = world;
    this.#traits = traits;
  }

  machine(kid?: AnyStateMachine): AnyStateMachine {
    const { isChild } = this.#traits;
    const root = this.#compound(0, "r", false);
    for (const transition of this.#open) {
      if (this.#happens(0.7)) transition["target"] = `#${this.#pick(this.#ids)}`;
      if (this.#happens(0.2)) transition["reenter"] = true;
    }
    const machine: unknown = setUp(this.#world).createMachine({
      ...root,
      id: isChild ? "kid" : "root",
      options: { maxIterations: 500 },
      context: ({ input }: { input: { id: string; fuel?: number } }) => {
        return { id: input.id, n: 0, fuel: input.fuel ?? FUEL, seen: [], kids: 0 };
      },
      output: ({ context }: { context: ChartContext }) => ({ n: context.n }),
    } as never);
    const made = machine as AnyStateMachine;
    return kid === undefined ? made : made.provide({ actors: { kid } as never });
  }

  #compound(depth: number, name: string, mayEnd: boolean): Config {
    const count = 2 + this.#below(3);
    const names = Array.from({ length: count }, (_, at) => `${name}${at}`);
    const states: Record<string, Config> = Object.fromEntries(
      names.map((key) => [key, this.#state(depth + 1, key)]),
    );
    if (depth === 0 ? this.#happens(this.#traits.isChild ? 0.7 : 0.4) : mayEnd)
      states[`${name}end`] = this.#final(`${name}end`);
    if (depth > 0 && this.#happens(0.4)) {
      const id = `${name}hist`;
      states[id] = { id, type: "history", history: this.#pick(["shallow", "deep"]) };
      this.#ids.push(id, id);
    }
    return { initial: this.#pick(names), states };
  }

  #final(id: string): Config {
    this.#ids.push(id);
    return { id, type: "final" };
  }

  #state(depth: number, id: string): Config {
    this.#ids.push(id);
    const drawn = this.#random.unit();
    const inner =
      depth >= (this.#traits.isChild ? DEPTH_OF_CHILD : DEPTH_MAX) || drawn < 0.5
        ? {}
        : drawn < 0.75
          ? this.#compound(depth, id, this.#happens(0.5))
          : this.#parallel(depth, id);
    const config: Config = { id, ...inner, on: this.#handlers() };
    if (!this.#traits.isPlain) Object.assign(config, this.#living(id));
    if ("states" in inner && this.#happens(0.5)) config["onDone"] = this.#fuelled();
    if (this.#happens(0.3)) config["tags"] = [this.#pick(["busy", "late"])];
    // A child has no more fuel than its parent: they could start each other for ever.
    const first = "invoke" in config ? ["burn"] : [];
    if (this.#happens(0.4) || first.length > 0) config["entry"] = [...first, ...this.#actions()];
    if (this.#happens(0.3)) config["exit"] = this.#actions();
    if (this.#happens(0.15)) config["always"] = this.#fuelled();
    return config;
  }

  /** Timers, promises and machines of a state. */
  #living(id: string): Config {
    const delay = String(1 + this.#below(DELAY_MAX_MS));
    return {
      ...(this.#happens(0.25) && { after: { [delay]: this.#transition() } }),
      ...(this.#happens(0.25) && { invoke: this.#invocation(`${id}.0`) }),
    };
  }

  #invocation(id: string): Config {
    const src = this.#happens(0.5) ? "work" : "kid";
    const input = ({ context }: { context: ChartContext }): object => inputOf(context);
    // A machine may end as soon as it begins.
    const fuelled = { guard: "hasFuel", actions: ["burn", "note"] };
    const onDone = Object.assign(this.#transition(), fuelled);
    const onError = [Object.assign(this.#transition(), fuelled), { actions: ["note"] }];
    return { id, src, input, onDone, ...(this.#happens(0.8) && { onError }) };
  }

  #parallel(depth: number, name: string): Config {
    const regions = [`${name}p`, `${name}q`].map((id): [string, Config] => {
      this.#ids.push(id);
      return [id, { id, ...this.#compound(depth + 1, id, true) }];
    });
    return { type: "parallel", states: Object.fromEntries(regions) };
  }

  #handlers(): Config {
    const handled = EVENTS.filter(() => this.#happens(0.45));
    return Object.fromEntries(handled.map((event) => [event, [this.#transition(), this.#transition()]]));
  }

  #transition(): Config {
    const guard = this.#pick(GUARDS);
    const transition: Config = { actions: this.#actions(), ...(guard !== undefined && { guard }) };
    this.#open.push(transition);
    return transition;
  }

  /** One that nothing from outside takes, so that it could be taken for ever. */
  #fuelled(): Config {
    return Object.assign(this.#transition(), { guard: "hasFuel", actions: ["burn", "count"] });
  }

  #actions(): unknown[] {
    const { isPlain, isChild } = this.#traits;
    const own: readonly unknown[] = isChild ? ["tellParent", "tellParent"] : OF_PARENTS;
    const all: readonly unknown[] = [...ACTIONS, NOTIFY, ...(isPlain && !isChild ? [] : own)];
    return Array.from({ length: this.#below(3) }, () => this.#pick(all));
  }

  #below(bound: number): number {
    return Math.floor(this.#random.unit() * bound);
  }

  #happens(share: number): boolean {
    return this.#random.unit() < share;
  }

  #pick<T>(list: readonly T[]): T {
    return list[this.#below(list.length)] as T;
  }
}
