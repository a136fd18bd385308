// Deeds of an operator to keys, in words, and the refusal where some of them did not allow it.
import { failure } from "../base/errors.ts";
import { printable } from "../base/safe-text.ts";
import { listKeys } from "../client/keys.ts";
import type { KeyRefusal, KeySteering } from "../client/keys.ts";
import type { RolloutClient } from "./rollout-client.ts";
import type { Outcome } from "./run-deeds.ts";

const SHOWN_MAX = 5;

const DONE: Readonly<Record<KeySteering, string>> = {
  pause: "paused: nothing more of it starts",
  resume: "going on",
  skip: "going on without the item that has failed",
  retire: "forgotten, with its state",
};

const REASONS: Readonly<Record<string, string>> = {
  not_failed: "no failed item has parked it",
  head_failed:
    "a failed item has parked it: `rollout retry` runs that item again, `rollout key skip` goes on without it",
  not_idle: "it has items that are not final",
  cancelled: "the run was cancelled",
};

/** The word for keys: an actor is one. */
export type KeyNoun = "key" | "actor";

/** Rejects with key_unknown or actor_unknown, or key_refused behind the others that were steered, and the transport's rows. */
export async function steerKeys(
  client: RolloutClient,
  steering: KeySteering,
  keys: readonly string[],
  noun: KeyNoun = "key",
): Promise<Outcome> {
  const { steered, refused } = await client.steerKeys(steering, keys);
  const [first] = refused;
  if (first !== undefined) throw refusalOf(first, refused, noun);
  const [only = ""] = keys;
  const one = `${noun === "key" ? "Key" : "Actor"} ${printable(only)} is`;
  const who = keys.length === 1 ? one : `${steered} ${noun}s are`;
  return { object: { steered }, text: `${who} ${DONE[steering]}.\n` };
}

function refusalOf(first: KeyRefusal, refused: readonly KeyRefusal[], noun: KeyNoun): Error {
  const unknown = refused.filter(({ reason }) => reason === "unknown");
  if (first.reason === "unknown" && unknown.length === 1) return unknownKey(first.key, noun);
  const alike = refused.filter(({ reason }) => reason === first.reason).map(({ key }) => key);
  const shown = alike.slice(0, SHOWN_MAX).join(", ");
  const more = alike.length > SHOWN_MAX ? ` and ${alike.length - SHOWN_MAX} more` : "";
  const reason =
    REASONS[first.reason] ?? (first.reason === "unknown" ? "the run has no such key" : first.reason);
  return failure("key_refused", { keys: `${shown}${more}`, reason });
}

/** The refusal of a name that the run does not have. */
export function unknownKey(key: string, noun: KeyNoun): Error {
  return noun === "key" ? failure("key_unknown", { key }) : failure("actor_unknown", { actor: key });
}

/** The keys that an item of theirs has parked, or an operator; only those that begin with `prefix`. */
export async function parkedKeys(
  client: RolloutClient,
  by: "failed" | "paused",
  prefix = "",
): Promise<string[]> {
  const found: string[] = [];
  for await (const { key, parkedBy } of listKeys(client.keyCalls, ["parked"], prefix))
    if (parkedBy === by) found.push(key);
  return found;
}
