// The types of actors that a user's file exports, and the attempt that sends one event to one of them: its key says to which.
import { actorAddress, addressFault, EVENT_FAULT, isEvent } from "../../../base/actor-address.ts";
import type { JsonObject } from "../../../base/exact-json.ts";
import { readActorState, writeActorState } from "../../../runtime/actor-state.ts";
import type { ActorState } from "../../../runtime/actor-state.ts";
import type { CreateActor } from "../../../runtime/transition.ts";
import type { CodeOutcome } from "../code/code-messages.ts";
import { importAsSeenFrom, versionSeenFrom } from "../code/lent-packages.ts";
import { parseJsonText } from "../code/serve-code.ts";
import type { CodeAttempt, Executing } from "../code/serve-code.ts";
import { ActorSteps, RefusedEvent } from "./actor-step.ts";
import { isActorType } from "./define-actor.ts";

/** Snapshots, scopes and pure transitions are as this program needs them since then. */
const XSTATE_MIN = [5, 33] as const;

/** A user's types of actors by their names. */
export type ActorTypes = ReadonlyMap<string, ActorSteps>;

/** `exported` has the exports of the types. Throws when one of them cannot be actors. */
export async function loadActors(
  exported: unknown,
  options: JsonObject,
  fileUrl: string,
): Promise<Executing> {
  const types = await loadActorTypes(exported as JsonObject, Number(options["stateVersion"]), fileUrl);
  return (attempt) => Promise.resolve(send(types, attempt));
}

/** The same without anything that executes them. */
export async function loadActorTypes(
  exported: JsonObject,
  stateVersion: number,
  fileUrl: string,
): Promise<ActorTypes> {
  demandXState(fileUrl);
  // The machines' own copy: two of them do not know each other's actors.
  const { createActor } = (await importAsSeenFrom("xstate", fileUrl)) as { createActor: CreateActor };
  const types = new Map<string, ActorSteps>();
  for (const [name, value] of Object.entries(exported)) {
    if (!isActorType(value))
      throw new TypeError(`its export ${name} is none that defineActor of rollout/actors has made`);
    types.set(name, new ActorSteps(name, value, stateVersion, createActor));
  }
  return types;
}

function demandXState(fileUrl: string): void {
  const version = versionSeenFrom("xstate", fileUrl);
  const [major = 0, minor = 0] = version.split(".").map(Number);
  const [majorMin, minorMin] = XSTATE_MIN;
  if (major > majorMin || (major === majorMin && minor >= minorMin)) return;
  throw new Error(`it uses XState ${version}, and actors need ${majorMin}.${minorMin} or newer`);
}

function send(types: ActorTypes, { message: { keyed, payload } }: CodeAttempt): CodeOutcome {
  if (keyed === undefined)
    return refused("an event is sent to an actor by its key: submit it with --key-field");
  const { key, state } = keyed;
  const address = actorAddress(key);
  const steps = address && types.get(address.type);
  if (address === undefined || steps === undefined) return refused(addressFault(key, [...types.keys()]));
  const event = parseJsonText(payload);
  if (!isEvent(event)) return refused(EVENT_FAULT);
  const before = state && readActorState(state);
  if (state !== undefined && before === undefined)
    return refused(`state_refused: the state of ${key} is none that an actor has left`);
  try {
    const after = steps.step(before, event, { key, ...address });
    return { kind: "success", output: resultOf(after), state: writeActorState(after) };
  } catch (error) {
    if (!(error instanceof RefusedEvent)) throw error;
    const { why, message } = error;
    return { ...refused(message), ...(why === "actor_done" && { sparesKey: true }) };
  }
}

/** Another attempt would come to the same. */
function refused(message: string): Extract<CodeOutcome, { readonly kind: "error" }> {
  return { kind: "error", message, isPermanent: true };
}

/** As `results` shows it. */
function resultOf({ tags, snapshot: { value, status, output = null } }: ActorState): Uint8Array {
  return Buffer.from(JSON.stringify({ value, status, tags, output }));
}
