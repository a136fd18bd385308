// The address of a durable actor, which is its key, and what may be sent to one: the same for those who submit events and for workers.
import { isJsonObject } from "./exact-json.ts";
import type { JsonObject } from "./exact-json.ts";

export interface ActorAddress {
  readonly type: string;
  readonly id: string;
}

/** Events of XState's own begin with it: they come from inside alone. */
const OWN_EVENTS = "xstate.";

export const EVENT_FAULT = `it is no event: an event is a JSON object with a type, which does not begin with ${OWN_EVENTS}`;

export function isEvent(value: unknown): value is JsonObject & { readonly type: string } {
  if (!isJsonObject(value)) return false;
  const { type } = value;
  return typeof type === "string" && type !== "" && !type.startsWith(OWN_EVENTS);
}

/** Undefined for a key that is not TYPE/ID. */
export function actorAddress(key: string): ActorAddress | undefined {
  const place = actorPlace(key);
  return place?.parent === undefined ? place : undefined;
}

/** Where an actor stands: one that somebody addresses, or a machine within another one. */
export interface ActorPlace extends ActorAddress {
  readonly key: string;
  /** `TYPE/ID` of the actor that all of them are within; its own when it is none's child. */
  readonly root: string;
  /** The key of the actor that has started it, and its name there. */
  readonly parent?: string;
  readonly name?: string;
}

/** Undefined for a key that is neither TYPE/ID nor that of a child, which is TYPE/ID/CHILD and so on. */
export function actorPlace(key: string): ActorPlace | undefined {
  const parts = key.split("/");
  const [type = "", id = ""] = parts;
  if (parts.length < 2 || parts.includes("") || key.includes("\0")) return undefined;
  const place = { type, id, key, root: `${type}/${id}` };
  const name = parts.at(-1);
  if (parts.length === 2 || name === undefined) return place;
  return { ...place, parent: parts.slice(0, -1).join("/"), name };
}

/** The key of the actor that is named; where there is one type its id is enough. Undefined when it names none. */
export function actorKey(name: string, types: readonly string[]): string | undefined {
  const [only, ...others] = types;
  const key = only !== undefined && others.length === 0 && !name.includes("/") ? `${only}/${name}` : name;
  return types.includes(actorAddress(key)?.type ?? "") ? key : undefined;
}

/** The reason why a name names none. */
export function addressFault(name: string, types: readonly string[]): string {
  return `${name} names no actor: a key is TYPE/ID without another /, and TYPE one of ${types.join(", ")}`;
}
