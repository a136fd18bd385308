// Attempts on actors, in a process of their own: the key of an item says to which actor it is, and its origin what it is.
import { actorPlace, addressFault, EVENT_FAULT } from "../../../base/actor-address.ts";
import type { JsonObject } from "../../../base/exact-json.ts";
import { readActorState, writeActorState } from "../../../runtime/actor-state.ts";
import type { CodeOutcome } from "../code/code-messages.ts";
import type { CodeAttempt, Executing } from "../code/serve-code.ts";
import { isWork } from "../key-asks.ts";
import type { ComingOrigin, KeyEnd, WorkOrigin } from "../key-asks.ts";
import { RefusedEvent } from "./actor-step.ts";
import type { Step } from "./actor-step.ts";
import { act, invoke, MissingWork } from "./actor-work.ts";
import type { GivenAction } from "./step-record.ts";
import { readIncoming, readValue } from "./incoming.ts";
import { loadActorTypes } from "./load-actors.ts";
import type { ActorTypes } from "./load-actors.ts";

/** `exported` has the exports of the types. Throws when one of them cannot be actors. */
export async function loadActors(
  exported: unknown,
  options: JsonObject,
  fileUrl: string,
): Promise<Executing> {
  const types = await loadActorTypes(exported as JsonObject, Number(options["stateVersion"]), fileUrl);
  return async (attempt) => {
    const origin = attempt.message.keyed?.origin;
    try {
      return isWork(origin) ? await work(types, attempt, origin) : step(types, attempt, origin);
    } catch (error) {
      if (error instanceof MissingWork) return refused(`state_refused: ${error.message}`);
      if (!(error instanceof RefusedEvent)) throw error;
      const { why, message } = error;
      return { ...refused(message), ...(why === "actor_done" && { sparesKey: true }) };
    }
  };
}

function step(
  { types }: ActorTypes,
  { message: { keyed, payload } }: CodeAttempt,
  origin: ComingOrigin | undefined,
): CodeOutcome {
  if (keyed === undefined)
    return refused("an event is sent to an actor by its key: submit it with --key-field");
  const { key, state } = keyed;
  const place = actorPlace(key);
  const type = place && types.get(place.type);
  // An actor within another one is sent to by actors alone.
  if (place === undefined || type === undefined || (origin === undefined && place.parent !== undefined))
    return refused(addressFault(key, [...types.keys()]));
  const incoming = readIncoming(origin, payload);
  if (incoming === undefined) return refused(EVENT_FAULT);
  const before = state && readActorState(state);
  if (state !== undefined && before === undefined)
    return refused(`state_refused: the state of ${key} is none that an actor has left`);
  const after = type.steps.step(before, incoming, place);
  const { asks } = after;
  const end = endOf(after, type.idleTtlMs);
  const kept = { state: writeActorState(after.state), ...(end && { end }) };
  return { kind: "success", output: resultOf(after), ...(asks.length > 0 && { asks }), ...kept };
}

async function work(
  { types, createPromise }: ActorTypes,
  { message: { itemId, payload }, signal }: CodeAttempt,
  origin: WorkOrigin,
): Promise<CodeOutcome> {
  const { key } = origin;
  const type = types.get(actorPlace(key)?.type ?? "");
  if (type === undefined) return refused(addressFault(key, [...types.keys()]));
  const given = readValue(Buffer.from(payload).toString());
  const attempt = { key, itemId: Buffer.from(itemId).toString("hex"), signal };
  if (origin.kind === "action") {
    await act(type.steps.machine, origin.type, given as GivenAction, attempt);
    return { kind: "success", output: new Uint8Array() };
  }
  const output = await invoke(type.steps.machine, origin.source, given, attempt, createPromise);
  return { kind: "success", output: Buffer.from(output === undefined ? "" : JSON.stringify(output)) };
}

/** Undefined for one that goes on. */
function endOf({ state: { snapshot }, error }: Step, idleTtlMs: number | undefined): KeyEnd | undefined {
  const { status, output } = snapshot;
  if (status === "active") return undefined;
  return { output: output === undefined ? "" : JSON.stringify(output), error, idleTtlMs };
}

/** Another attempt would come to the same. */
function refused(message: string): Extract<CodeOutcome, { readonly kind: "error" }> {
  return { kind: "error", message, isPermanent: true };
}

/** As `results` shows it. */
function resultOf({ state: { tags, snapshot }, error }: Step): Uint8Array {
  const { value, status, output = null } = snapshot;
  return Buffer.from(JSON.stringify({ value, status, tags, output, ...(error !== undefined && { error }) }));
}
