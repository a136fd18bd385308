// The types of actors that a user's file exports, by their names. Throws, when it is loaded, for all that no actor can be.
import type { JsonObject } from "../../../base/exact-json.ts";
import { parseDurationMs } from "../../../config/duration.ts";
import type { CreateActor } from "../../../runtime/transition.ts";
import { importAsSeenFrom, versionSeenFrom } from "../code/lent-packages.ts";
import { ActorSteps } from "./actor-step.ts";
import type { CreatePromise } from "./actor-work.ts";
import { isActorType } from "./define-actor.ts";

/** Snapshots, scopes and pure transitions are as this program needs them since then. */
const XSTATE_MIN = [5, 33] as const;

export interface LoadedType {
  readonly steps: ActorSteps;
  /** How long a final one stays; for ever when undefined. */
  readonly idleTtlMs: number | undefined;
}

/** A user's types of actors by their names. */
export interface ActorTypes {
  readonly types: ReadonlyMap<string, LoadedType>;
  /** From the copy of XState that the file has. */
  readonly createPromise: CreatePromise;
}

/** `exported` has the exports of the types. Throws when one of them cannot be actors. */
export async function loadActorTypes(
  exported: JsonObject,
  stateVersion: number,
  fileUrl: string,
): Promise<ActorTypes> {
  demandXState(fileUrl);
  // The machines' own copy: two of them do not know each other's actors.
  const { createActor } = (await importAsSeenFrom("xstate", fileUrl)) as { createActor: unknown };
  const names = Object.keys(exported);
  const types = Object.entries(exported).map(([name, value]): [string, LoadedType] => {
    if (!isActorType(value))
      throw new TypeError(`its export ${name} is none that defineActor of rollout/actors has made`);
    const create = createActor as CreateActor;
    const steps = new ActorSteps(name, value, stateVersion, create, (type) => names.includes(type));
    const idleTtlMs = value.idleTtl === undefined ? undefined : parseDurationMs(value.idleTtl);
    return [name, { steps, idleTtlMs }];
  });
  return { types: new Map(types), createPromise: createActor as CreatePromise };
}

function demandXState(fileUrl: string): void {
  const version = versionSeenFrom("xstate", fileUrl);
  const [major = 0, minor = 0] = version.split(".").map(Number);
  const [majorMin, minorMin] = XSTATE_MIN;
  if (major > majorMin || (major === majorMin && minor >= minorMin)) return;
  throw new Error(`it uses XState ${version}, and actors need ${majorMin}.${minorMin} or newer`);
}
