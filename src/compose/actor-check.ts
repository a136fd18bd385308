// Other code for actors, tried on the states that a run has: each is restored by it, migrated where it is of an older version, and the
// events that wait for it are tried on it, one after the other. Nothing is written, and nothing is asked of the run but what it has.
import { resolve } from "node:path";
import { pathToFileURL } from "node:url";
import { actorPlace } from "../base/actor-address.ts";
import { describeError, failure } from "../base/errors.ts";
import type { FullKey, WaitingItem } from "../client/keys.ts";
import type { Origin } from "../client/origin.ts";
import { loadManifest } from "../config/manifest.ts";
import { readActorState } from "../runtime/actor-state.ts";
import type { ActorState } from "../runtime/actor-state.ts";
import { RefusedEvent } from "../worker/backends/actor/actor-step.ts";
import type { ComingOrigin } from "../worker/backends/key-asks.ts";
import { readIncoming } from "../worker/backends/actor/incoming.ts";
import { loadActorTypes } from "../worker/backends/actor/load-actors.ts";
import type { ActorTypes } from "../worker/backends/actor/load-actors.ts";
import { exportsOfFile } from "./user-machine.ts";

const ADVICE = "correct that, or name the manifest of a plugin whose backend is actor";

/** Actors of one type in one state. */
export interface CheckedGroup {
  readonly type: string;
  /** As JSON has it. */
  readonly value: string;
  actors: number;
  parks: number;
}

export interface ActorCheck {
  readonly actors: number;
  /** Events that were tried. */
  readonly events: number;
  /** Actors that more events wait for than were tried on them. */
  readonly cut: number;
  readonly groups: readonly CheckedGroup[];
  /** Actors that would park, and why. */
  readonly parks: readonly { readonly key: string; readonly reason: string }[];
}

/** Throws what manifests throw, and machine_unusable for a file that a worker would refuse. */
export async function loadCheckedTypes(file: string): Promise<ActorTypes> {
  const manifest = await loadManifest(file);
  const refuse = (reason: string): Error =>
    failure("machine_unusable", {
      file: manifest.file,
      reason,
      advice: ADVICE,
    });
  if (manifest.backend !== "actor") throw refuse(`its backend is ${manifest.backend}, and not actor`);
  const { module, types: names, stateVersion } = manifest.spec;
  const path = resolve(manifest.directory, module);
  const exports = await exportsOfFile(path);
  const absent = names.find((name) => !Object.hasOwn(exports, name));
  if (absent !== undefined) throw refuse(`${path} has no export ${absent}`);
  const chosen = Object.fromEntries(names.map((name) => [name, exports[name]]));
  try {
    return await loadActorTypes(chosen, stateVersion, pathToFileURL(path).href);
  } catch (error) {
    throw refuse(`${path}: ${describeError(error)}`);
  }
}

/** Reads the keys to their end. A key with neither a state nor an item is no actor. */
export async function checkActors(types: ActorTypes, keys: AsyncIterable<FullKey>): Promise<ActorCheck> {
  const groups = new Map<string, CheckedGroup>();
  const parks: { key: string; reason: string }[] = [];
  let [actors, events, cut] = [0, 0, 0];
  for await (const key of keys) {
    // Work that an actor has given away stands under a key of its own, which has no state.
    const place = actorPlace(key.key);
    const isWork = place === undefined && key.key.includes("\0");
    if (isWork || (key.state === undefined && key.next === undefined)) continue;
    actors++;
    const state = key.state && readActorState(key.state);
    const group = groupOf(groups, state, key.key);
    group.actors++;
    const waiting = waitingOf(key);
    events += waiting.length;
    if (key.hasMore) cut++;
    const reason = misfitOf(types, key, { state, waiting });
    if (reason === undefined) continue;
    group.parks++;
    parks.push({ key: key.key, reason });
  }
  return { actors, events, cut, groups: [...groups.values()], parks };
}

function groupOf(
  groups: Map<string, CheckedGroup>,
  state: ActorState | undefined,
  key: string,
): CheckedGroup {
  const type = [state?.type ?? actorPlace(key)?.type ?? "", state?.source ?? []].flat().join(" ");
  const value = state === undefined ? "" : JSON.stringify(state.snapshot.value);
  const name = `${type} ${value}`;
  const known = groups.get(name) ?? { type, value, actors: 0, parks: 0 };
  groups.set(name, known);
  return known;
}

/** Why the actor would park with this code; undefined when it would not. */
function misfitOf(
  types: ActorTypes,
  { key, state: bytes }: FullKey,
  { state, waiting }: { readonly state: ActorState | undefined; readonly waiting: readonly WaitingItem[] },
): string | undefined {
  const place = actorPlace(key);
  const steps = place && types.types.get(place.type)?.steps;
  if (place === undefined || steps === undefined) return "the plugin has no such type of actors";
  if (bytes !== undefined && state === undefined) return "its state is none that an actor has left";
  let [now, at] = [state, 0];
  try {
    if (state !== undefined) steps.check(state, place);
    for (const { payload, origin } of waiting) {
      const incoming = readIncoming(comingOf(origin), payload);
      if (incoming !== undefined) now = steps.step(now, incoming, place).state;
      at++;
    }
    return undefined;
  } catch (error) {
    // It takes no more, and nobody parks for that.
    if (error instanceof RefusedEvent) return error.why === "actor_done" ? undefined : error.message;
    const which = at === 0 ? "its next event" : `event ${at + 1} of those that wait for it`;
    return `${which} fails: ${describeError(error)}`;
  }
}

/** An earlier coordinator tells the next one alone, and not what has made it. */
function waitingOf({ waiting, next }: FullKey): readonly WaitingItem[] {
  return waiting.length > 0 || next === undefined ? waiting : [{ payload: next, origin: UNKNOWN }];
}

const UNKNOWN = {
  kind: "unknown",
  actor: undefined,
  id: undefined,
  source: undefined,
  type: undefined,
} as const;

function comingOf(origin: Origin | undefined): ComingOrigin | undefined {
  const { kind, id = "", actor = "", source = "" } = origin ?? {};
  switch (kind) {
    case "mail":
      return { kind, key: actor };
    case "outcome":
    case "failure":
      return { kind, id };
    case "start":
      return { kind, source, parent: actor };
    case "timer":
    case "unknown":
      return { kind: "timer", id };
    default:
      return undefined;
  }
}
