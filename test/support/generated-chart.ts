// Charts for comparisons with XState's own actors, made by chance: nested and parallel states, history, guards, eventless transitions,
// raised events, assigns that throw, final states and outputs. Anything that could go on for ever costs fuel, of which there is some at the start.
import { assign, enqueueActions, setup } from "xstate";
import type { AnyStateMachine } from "xstate";
import type { Random } from "../../src/base/random.ts";

export const EVENTS = ["a", "b", "c", "d"] as const;

interface Context {
  readonly id: string;
  readonly n: number;
  readonly fuel: number;
  readonly seen: readonly string[];
}

type Config = Record<string, unknown>;

const FUEL = 8;
const DEPTH_MAX = 3;
const SEEN_MAX = 12;

const machineSetup = setup({
  types: { context: {} as Context, input: {} as { readonly id: string }, tags: {} as string },
  guards: {
    isEven: ({ context }) => context.n % 2 === 0,
    isThird: ({ context }) => context.n % 3 === 0,
    hasFuel: ({ context }) => context.fuel > 0,
  },
  actions: {
    count: assign({ n: ({ context }) => context.n + 1 }),
    note: assign({
      seen: ({ context, event }) => [...context.seen.slice(1 - SEEN_MAX), event.type],
    }),
    burn: assign({ fuel: ({ context }) => context.fuel - 1 }),
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
  },
});

const ACTIONS = ["count", "note", "note", "raiseB", "breakSometimes"];
const GUARDS = ["isEven", "isThird", undefined, undefined];

/** The same for the same numbers drawn. */
export function generatedChart(random: Random): AnyStateMachine {
  return new Generator(random).machine();
}

class Generator {
  readonly #random: Random;
  /** Ids of all states that a transition may go to. */
  readonly #ids: string[] = [];
  /** Transitions to be given their targets when all states are known. */
  readonly #open: Config[] = [];

  constructor(random: Random) {
    this.#random = random;
  }

  machine(): AnyStateMachine {
    const root = this.#compound(0, "r", false);
    for (const transition of this.#open) {
      if (this.#happens(0.7)) transition["target"] = `#${this.#pick(this.#ids)}`;
      if (this.#happens(0.2)) transition["reenter"] = true;
    }
    const machine: unknown = machineSetup.createMachine({
      ...root,
      id: "root",
      options: { maxIterations: 500 },
      context: ({ input }: { input: { id: string } }) => ({ id: input.id, n: 0, fuel: FUEL, seen: [] }),
      output: ({ context }: { context: Context }) => ({ n: context.n }),
    } as never);
    return machine as AnyStateMachine;
  }

  #compound(depth: number, name: string, mayEnd: boolean): Config {
    const count = 2 + this.#below(3);
    const names = Array.from({ length: count }, (_, at) => `${name}${at}`);
    const states: Record<string, Config> = Object.fromEntries(
      names.map((key) => [key, this.#state(depth + 1, key)]),
    );
    if (depth === 0 ? this.#happens(0.4) : mayEnd) states[`${name}end`] = this.#final(`${name}end`);
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
      depth >= DEPTH_MAX || drawn < 0.5
        ? {}
        : drawn < 0.75
          ? this.#compound(depth, id, this.#happens(0.5))
          : this.#parallel(depth, id);
    const config: Config = { id, ...inner, on: this.#handlers() };
    if ("states" in inner && this.#happens(0.5)) config["onDone"] = this.#fuelled();
    if (this.#happens(0.3)) config["tags"] = [this.#pick(["busy", "late"])];
    if (this.#happens(0.4)) config["entry"] = this.#actions();
    if (this.#happens(0.3)) config["exit"] = this.#actions();
    if (this.#happens(0.15)) config["always"] = this.#fuelled();
    return config;
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

  #actions(): string[] {
    return Array.from({ length: this.#below(3) }, () => this.#pick(ACTIONS));
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
