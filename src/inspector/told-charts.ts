// Charts of the product as an inspector is told them, by the protocol of `@statelyai/inspect` (docs/adr/0044): messages as that package
// makes them for an actor of XState.
//
// Keeps true: of a context only the facts listed here leave, as numbers, truths and short words; of an event its type alone. Payloads,
// outputs, messages of failures, addresses of clouds and keys are in none of them.
import type { AnyStateMachine } from "xstate";
import { charts } from "../../machines/index.ts";
import { stateValueOf } from "../runtime/chart-structure.ts";

export type ChartName = keyof typeof charts;
export type Facts = Readonly<Record<string, unknown>>;

/** The version of the package whose protocol is spoken. */
const PROTOCOL = "0.7.2";
const WORD_CHARACTERS_MAX = 100;
/** The form of an identifier, a name of a state or a cause. */
const WORD = /^[\w.:/-]*$/;

/** By chart: the facts that leave. */
const FACTS: Readonly<Record<ChartName, readonly string[]>> = {
  allocation: ["allocation"],
  fleet: ["fleet"],
  key: [],
  "coordinator-role": ["incarnation", "epoch"],
  release: ["release"],
  "release-stage": ["release"],
  run: ["run_id", "pending", "delayed", "running", "done", "failed", "workers"],
  "worker-lifecycle": ["worker_id", "incarnation"],
  "worker-stay": ["worker_id", "cause"],
  "worker-trust": ["worker_id"],
  "work-item": ["item", "worker", "attempt"],
  execution: ["item", "attempt"],
  "spot-drain": ["worker_id", "incarnation", "cause"],
};

export interface ToldActor {
  readonly sessionId: string;
  readonly chart: ChartName;
  /** For a person. */
  readonly name: string;
  readonly rootId: string;
  /** Undefined for the outermost. */
  readonly parentId: string | undefined;
}

/** Where an actor is in its chart. */
export interface ToldState {
  /** As `stateName` has it. */
  readonly state: string;
  readonly facts: Facts;
  /** It is not there any more, whatever its state is. */
  readonly isStopped: boolean;
}

export function isChartName(name: string): name is ChartName {
  return Object.hasOwn(charts, name);
}

export function actorMessage(actor: ToldActor, state: ToldState, atMs: number): string {
  const { sessionId, chart, name, rootId, parentId } = actor;
  return JSON.stringify({
    ...{ type: "@xstate.actor", name, definition: definitionOf(chart), ...common(atMs) },
    ...{ rootId, parentId, sessionId, snapshot: snapshotOf(chart, state) },
  });
}

export function eventMessage({ sessionId, rootId }: ToldActor, event: string, atMs: number): string {
  return JSON.stringify({
    ...{ type: "@xstate.event", event: { type: event }, sessionId, ...common(atMs), rootId },
  });
}

export function snapshotMessage(
  { sessionId, rootId, chart }: ToldActor,
  state: ToldState,
  event: string,
  atMs: number,
): string {
  return JSON.stringify({
    ...{ type: "@xstate.snapshot", event: { type: event }, snapshot: snapshotOf(chart, state), sessionId },
    ...{ ...common(atMs), rootId },
  });
}

function common(atMs: number): object {
  return { _version: PROTOCOL, createdAt: String(Math.round(atMs)), id: null };
}

const definitions = new Map<ChartName, string>();

/** The machine's own, with functions by their names. */
function definitionOf(chart: ChartName): string {
  const known = definitions.get(chart);
  if (known !== undefined) return known;
  const { config }: AnyStateMachine = charts[chart].machine;
  const text = JSON.stringify(config, (_, value: unknown) =>
    typeof value === "function" ? { type: value.name } : value,
  );
  definitions.set(chart, text);
  return text;
}

function snapshotOf(chart: ChartName, { state, facts, isStopped }: ToldState): object {
  const machine: AnyStateMachine = charts[chart].machine;
  const value = stateValueOf(machine, state);
  // Nobody who is looked at ends for it.
  const status = value === undefined ? "active" : machine.resolveState({ value, context: {} }).status;
  return {
    status: isStopped && status === "active" ? "stopped" : status,
    ...{ context: shownFacts(chart, facts), value: value ?? state, children: {}, historyValue: {}, tags: [] },
  };
}

function shownFacts(chart: ChartName, facts: Facts): Facts {
  return Object.fromEntries(
    FACTS[chart].flatMap((name) => {
      const value = facts[name];
      return isShown(value) ? [[name, value]] : [];
    }),
  );
}

function isShown(value: unknown): boolean {
  if (typeof value === "string") return value.length <= WORD_CHARACTERS_MAX && WORD.test(value);
  return value === null || typeof value === "number" || typeof value === "boolean";
}
