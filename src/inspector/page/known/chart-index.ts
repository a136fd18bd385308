// A chart by which states and transitions are found: those that a name of active states means, and those by which it came from one
// to another.
//
// Keeps true: a name that nobody understands lights nothing, and costs a bounded number of steps, whoever wrote the chart.
import type { ChartPicture } from "../../page-messages.ts";

type State = ChartPicture["states"][number];
type Transition = ChartPicture["transitions"][number];

interface Reading {
  readonly at: number;
  readonly lit: readonly string[];
}

const TRIES_MAX = 20_000;

export class ChartIndex {
  readonly #root: State | undefined;
  readonly #children: ReadonlyMap<string | null, readonly State[]>;
  readonly #states: ReadonlyMap<string, State>;
  readonly #byPath: ReadonlyMap<string, State>;
  readonly #transitions: ReadonlyMap<string, readonly Transition[]>;
  #triesLeft = 0;

  constructor({ states, transitions }: Pick<ChartPicture, "states" | "transitions">) {
    this.#root = states.find(({ parent }) => parent === null);
    this.#children = Map.groupBy(states, ({ parent }) => parent);
    this.#states = new Map(states.map((state) => [state.id, state]));
    this.#byPath = new Map(states.map((state) => [state.path, state]));
    this.#transitions = Map.groupBy(transitions, ({ source }) => source);
  }

  /** Ids of the states that are active by this name, the chart as a whole left out; empty when it is not understood. */
  lit(name: string): ReadonlySet<string> {
    if (this.#root === undefined || name === "") return new Set();
    this.#triesLeft = TRIES_MAX;
    for (const { at, lit } of this.#within(this.#root, name, 0)) if (at === name.length) return new Set(lit);
    return this.#byPaths(name);
  }

  /** Ids of the transitions by which it may have come from one to the other: one for each region that moved. */
  taken(from: string, to: string, event: string): readonly string[] {
    const before = this.lit(from);
    const after = this.lit(to);
    const sources = [...before, ...(this.#root === undefined ? [] : [this.#root.id])];
    // The deepest one that fits is the one that was taken; its regions stand side by side.
    const fitting = sources
      .flatMap((source) => this.#transitions.get(source) ?? [])
      .filter((transition) => isMeant(transition.event, event))
      .filter(({ targets }) => (targets.length === 0 ? from === to : targets.every((id) => after.has(id))))
      .filter(
        ({ targets }) =>
          targets.length === 0 || from === to || targets.some((id) => !this.#stays(id, before)),
      )
      .toSorted((one, other) => this.#depth(other.source) - this.#depth(one.source));
    const [first] = fitting;
    if (first === undefined) return [];
    const others = fitting.filter(
      (one) => one !== first && !this.#isAround(one.source, first.source) && one.targets.length > 0,
    );
    return [
      first,
      ...others.filter((one, at) => others.findIndex(({ source }) => source === one.source) === at),
    ].map(({ id }) => id);
  }

  /** Whether a target was there before already, and nothing within it either changed. */
  #stays(id: string, before: ReadonlySet<string>): boolean {
    return before.has(id) && (this.#children.get(id) ?? []).length === 0;
  }

  #isAround(outer: string, inner: string): boolean {
    for (let id: string | null = inner; id !== null; id = this.#states.get(id)?.parent ?? null)
      if (id === outer) return true;
    return false;
  }

  #depth(id: string): number {
    let depth = 0;
    for (let at = this.#states.get(id)?.parent ?? null; at !== null; depth++)
      at = this.#states.get(at)?.parent ?? null;
    return depth;
  }

  /** As the runtime names states: `Ready`, `Draining.Flushing`, `Ready+Alive` for regions in the order of the chart. */
  *#within(state: State, name: string, at: number): Generator<Reading> {
    if (this.#triesLeft-- <= 0) return;
    const children = (this.#children.get(state.id) ?? []).filter(({ kind }) => kind !== "history");
    if (state.kind === "parallel" && children.length > 1) {
      yield* this.#regions(children, name, at);
      return;
    }
    if (children.length === 0) yield { at, lit: [] };
    for (const child of children) {
      const key = this.#key(child, state);
      if (!name.startsWith(key, at)) continue;
      const end = at + key.length;
      if (name[end] === ".")
        for (const inner of this.#within(child, name, end + 1))
          yield { at: inner.at, lit: [child.id, ...inner.lit] };
      yield { at: end, lit: [child.id] };
    }
  }

  *#regions(regions: readonly State[], name: string, at: number): Generator<Reading> {
    const [region, ...others] = regions;
    if (region === undefined) return;
    for (const first of this.#within(region, name, at)) {
      const lit = [region.id, ...first.lit];
      if (others.length === 0) yield { at: first.at, lit };
      else if (name[first.at] === "+")
        for (const rest of this.#regions(others, name, first.at + 1))
          yield { at: rest.at, lit: [...lit, ...rest.lit] };
    }
  }

  /** As a list of whole paths. */
  #byPaths(name: string): ReadonlySet<string> {
    const found = name.split("+").map((path) => this.#byPath.get(path));
    if (found.includes(undefined)) return new Set();
    const lit = new Set<string>();
    for (const state of found)
      for (let one = state; one !== undefined && one.parent !== null; one = this.#states.get(one.parent))
        lit.add(one.id);
    return lit;
  }

  #key(child: State, parent: State): string {
    const key = parent.path === "" ? child.path : child.path.slice(parent.path.length + 1);
    return key.replace(/\\(.)/g, "$1");
  }
}

/** Whether a transition on this event, which may be a pattern, is one on that. */
function isMeant(pattern: string, event: string): boolean {
  if (pattern === event || pattern === "*") return true;
  return pattern.endsWith(".*") && event.startsWith(pattern.slice(0, -1));
}
