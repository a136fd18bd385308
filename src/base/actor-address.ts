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
  const [type = "", id = "", ...more] = key.split("/");
  return id === "" || more.length > 0 ? undefined : { type, id };
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
