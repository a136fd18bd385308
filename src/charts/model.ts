// A statechart as plain data: what is drawn, exported and walked through. Nothing of XState is left in it, and nothing that can
// run: guards, actions and actors are names.

export type StateKind = "atomic" | "compound" | "parallel" | "final" | "history";

export interface ChartModel {
  /** The machine's own id. */
  readonly id: string;
  readonly version: string | null;
  readonly description: string | null;
  /** The chart as a whole first, then depth first in the order of the chart. */
  readonly states: readonly ChartState[];
  /** In the order of their sources, and of one source in the order in which it tries them. */
  readonly transitions: readonly ChartTransition[];
}

export interface ChartState {
  /** The machine's id and the path, joined by dots: unique, and the same for as long as the state is called so. */
  readonly id: string;
  /** The path alone, joined by dots; empty for the chart as a whole. A dot or backslash in a key has a backslash before it. */
  readonly path: string;
  readonly key: string;
  /** The id of the state around it; null for the chart as a whole. */
  readonly parent: string | null;
  readonly kind: StateKind;
  /** Where a compound state begins, and a history state while there is no history. Null in others. */
  readonly initial: string | null;
  readonly history: "shallow" | "deep" | null;
  readonly entry: readonly string[];
  readonly exit: readonly string[];
  readonly invokes: readonly Invocation[];
  readonly tags: readonly string[];
  readonly description: string | null;
}

export interface Invocation {
  readonly id: string;
  readonly source: string;
}

export type Trigger =
  | { readonly kind: "event"; readonly name: string }
  /** Taken as soon as its guard lets it. */
  | { readonly kind: "always" }
  /** `after` is a number of milliseconds, or the name of a delay. */
  | { readonly kind: "delay"; readonly after: string }
  /** A final state within it was reached. */
  | { readonly kind: "state-done" }
  /** An actor that the state invokes: by its id, or by what it is of where it was given none. */
  | { readonly kind: "actor-done" | "actor-error" | "actor-snapshot"; readonly actor: string };

export interface ChartTransition {
  /** Its source, its trigger and its number among those of both: unique, and the same for as long as these are. */
  readonly id: string;
  readonly source: string;
  readonly trigger: Trigger;
  /** The type of the event as XState knows it; empty when there is none. */
  readonly event: string;
  readonly guard: string | null;
  readonly actions: readonly string[];
  /** Empty when the state stays as it is. */
  readonly targets: readonly string[];
  /** Its source is neither left nor entered. */
  readonly isInternal: boolean;
  readonly description: string | null;
}

/** The trigger in few words: `item.lost`, `after 1000`, `done: fetch`. */
export function triggerLabel(trigger: Trigger): string {
  switch (trigger.kind) {
    case "event":
      return trigger.name;
    case "always":
      return "always";
    case "delay":
      return `after ${trigger.after}`;
    case "state-done":
      return "done";
    case "actor-done":
      return `done: ${trigger.actor}`;
    case "actor-error":
      return `error: ${trigger.actor}`;
    case "actor-snapshot":
      return `snapshot: ${trigger.actor}`;
  }
}

/** The trigger, and the guard in brackets. */
export function transitionLabel({ trigger, guard }: ChartTransition): string {
  return guard === null ? triggerLabel(trigger) : `${triggerLabel(trigger)} [${guard}]`;
}

/** States by the id of the state around them, in the order of the chart. */
export function childrenOf(model: ChartModel): ReadonlyMap<string | null, readonly ChartState[]> {
  return Map.groupBy(model.states, ({ parent }) => parent);
}

/** The chart as a whole. */
export function rootOf(model: ChartModel): ChartState {
  const [root] = model.states;
  if (root === undefined) throw new Error("a chart has a state");
  return root;
}
