// Actors as `rollout actor export` prints them: each is asked for alone, because only then it is told what it waits for; some at the same time.
import { RolloutError } from "../base/errors.ts";
import { listKeys } from "../client/keys.ts";
import type { ActorState } from "../runtime/actor-state.ts";
import { actorOf, asksObject, asksOf } from "./actor-views.ts";
import type { ActorView } from "./actor-views.ts";
import type { RolloutClient } from "./rollout-client.ts";

const AT_ONCE = 16;

/** Objects of those that have a state, some at a time. Rejects with the transport's rows. */
export async function* exportedActors(client: RolloutClient, prefix: string): AsyncGenerator<object[]> {
  let keys: string[] = [];
  for await (const { key, stateBytes } of listKeys(client.keyCalls, [], prefix)) {
    if (stateBytes !== undefined) keys.push(key);
    if (keys.length < AT_ONCE) continue;
    yield await readAll(client, keys);
    keys = [];
  }
  yield await readAll(client, keys);
}

async function readAll(client: RolloutClient, keys: readonly string[]): Promise<object[]> {
  const read = await Promise.all(keys.map((key) => readOne(client, key)));
  return read.flat();
}

/** Nothing for one that is no actor, or has been forgotten meanwhile. */
async function readOne(client: RolloutClient, text: string): Promise<object[]> {
  try {
    const { key, actor } = actorOf(await client.key(text, { withState: true }));
    return actor === undefined ? [] : [exportedActor({ key, actor })];
  } catch (error) {
    if (error instanceof RolloutError && error.code === "key_unknown") return [];
    throw error;
  }
}

function exportedActor({ key, actor }: ActorView<ActorState>): object {
  const { type, version, events, tags, snapshot } = actor;
  const { value, status, context, output = null } = snapshot;
  const { timers, children } = asksObject(asksOf(key)) as Readonly<Record<string, unknown>>;
  return {
    ...{ key: key.key, type, value, status, tags, context, output, events, state_version: version },
    ...{ pending: key.items, parked_by: key.parkedBy ?? null, timers, children },
  };
}
