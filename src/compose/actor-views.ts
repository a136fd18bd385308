// Actors of a run as those who look at them see them: keys whose states say which actor they are of.
import type { FullKey, KeyWithState } from "../client/keys.ts";
import { readActorState } from "../runtime/actor-state.ts";
import type { ActorState } from "../runtime/actor-state.ts";

/** A key, and the actor that it is: undefined while no event of it has succeeded, and for a key that is none. */
export interface ActorView<Actor = ActorState | undefined> {
  readonly key: KeyWithState;
  readonly actor: Actor;
}

export function actorOf(key: KeyWithState): ActorView {
  return { key, actor: key.state && readActorState(key.state) };
}

/** Those among the keys that are actors, and have a state. */
export async function* actorsAmong(keys: AsyncIterable<FullKey>): AsyncGenerator<ActorView<ActorState>> {
  for await (const key of keys) {
    const { actor } = actorOf(key);
    if (actor !== undefined) yield { key, actor };
  }
}

/** The object that `--json` prints. */
export function actorObject({ key, actor }: ActorView): object {
  const { value = null, status = null, context = null, output = null } = actor?.snapshot ?? {};
  const { type = null, version = null, events = 0, tags = [] } = actor ?? {};
  return {
    ...{ key: key.key, type, value, status, tags, output, context, events, state_version: version },
    ...{ phase: key.phase, pending: key.items, next_item: key.head ?? null, worker: key.worker ?? null },
    ...{ parked_by: key.parkedBy ?? null, error: key.error ?? null },
  };
}

/** A state as people name it: `paid`, or `playing.fast` of one within another; regions stand beside each other. */
export function valueText(value: unknown): string {
  if (typeof value !== "object" || value === null) return String(value);
  return Object.entries(value)
    .map(([name, inner]) => {
      const below = valueText(inner);
      return below === "" ? name : `${name}.${below}`;
    })
    .join(", ");
}
