// Work that an actor's machine has given away: promises that it has invoked, and named actions. Both are items of their own, executed after
// the step that asked for them is committed, and perhaps more than once.
import type { EventObject } from "xstate";
import { exactCopy } from "../../../runtime/exact-copy.ts";
import { logicOf } from "./actor-logic.ts";
import { splitSource } from "./actor-machine.ts";
import type { ActorMachine } from "./actor-machine.ts";
import { withReferences } from "./actor-reference.ts";
import type { GivenAction } from "./step-record.ts";

/** XState's own `createActor`, for the logic of a promise. */
export type CreatePromise = (
  logic: unknown,
  options: { readonly input: unknown; readonly id: string },
) => RunningPromise;

interface RunningPromise {
  subscribe(observer: { readonly error: (error: unknown) => void; readonly complete: () => void }): unknown;
  getSnapshot(): { readonly output?: unknown };
  start(): unknown;
  stop(): unknown;
}

/** One attempt of it. */
export interface ActorWork {
  /** The actor's. */
  readonly key: string;
  /** 64 hexadecimal digits, the same for every attempt. */
  readonly itemId: string;
  /** Aborts when the attempt is not wanted any more, or its time is over. */
  readonly signal: AbortSignal;
}

/** The first argument of a named action. */
export interface ActionContext {
  /** The same however often this action is executed: an idempotency key. */
  readonly id: string;
  /** The actor's. */
  readonly key: string;
  /** As they were when the machine asked for the action; undefined for a function that takes no arguments. */
  readonly context: unknown;
  readonly event: EventObject | undefined;
  readonly signal: AbortSignal;
}

type Action = (context: ActionContext, params: unknown) => unknown;

/** The machine of the actor has not got it any more: the state and the code do not fit. */
export class MissingWork extends Error {}

/**
 * Resolves with the output of the promise, which JSON holds. Rejects as the promise does. `source`: the names of logic that lead to it
 * from `root`.
 */
export async function invoke(
  root: ActorMachine,
  source: string,
  input: unknown,
  { itemId, signal }: ActorWork,
  create: CreatePromise,
): Promise<unknown> {
  const { machine, src } = splitSource(source);
  const holder = root.at(machine);
  const logic = holder && logicOf(holder.machine, src);
  if (logic === undefined) throw new MissingWork(`there is no ${source} in this code`);
  const promise = create(logic, { input: withReferences(input), id: itemId });
  const ended = Promise.withResolvers<undefined>();
  promise.subscribe({ error: ended.reject, complete: () => ended.resolve(undefined) });
  // It has stopped listening to its promise then, whose own signal aborts.
  const onAbort = (): void => void promise.stop();
  signal.addEventListener("abort", onAbort, { once: true });
  try {
    promise.start();
    await ended.promise;
  } finally {
    signal.removeEventListener("abort", onAbort);
  }
  signal.throwIfAborted();
  const { output } = promise.getSnapshot();
  return output === undefined ? undefined : exactCopy(output, "its output");
}

/** `given`: what the step has put by for it. */
export async function act(
  root: ActorMachine,
  type: string,
  given: GivenAction,
  { key, itemId, signal }: ActorWork,
): Promise<void> {
  const machine = root.at(given.source ?? "")?.machine;
  const actions = (machine?.implementations.actions ?? {}) as unknown as Readonly<Record<string, Action>>;
  const action = Object.hasOwn(actions, type) ? actions[type] : undefined;
  if (action === undefined) throw new MissingWork(`there is no action ${type} in this code`);
  const { params, context, event } = withReferences(given) as GivenAction;
  await action({ id: itemId, key, context, event, signal }, params);
}
