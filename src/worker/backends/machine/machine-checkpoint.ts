// A machine's snapshot as bytes, with the machine that it is of: XState checks neither. Beside it stand the machine's timers
// (`after`, delayed events), which go on with the time that was left: XState forgets them with the process, so that a machine
// which waits in a restored state would wait for ever.
import type { AnyStateMachine, AnyStateNode, Snapshot, AnyActorRef, EventObject } from "xstate";
import { createHash } from "node:crypto";
import { systemClock } from "../../../base/clock.ts";
import { jsonFields } from "../../../base/exact-json.ts";
import { exactCopy } from "../../../runtime/exact-copy.ts";

/** A snapshot means the same where all of these are equal. */
export interface MachineIdentity {
  readonly id: string;
  /** Empty when the machine says none. */
  readonly version: string;
  /** Over the names, kinds and nesting of its states. */
  readonly structure: string;
}

export type ReadCheckpoint =
  | { readonly kind: "none" }
  | { readonly kind: "found"; readonly snapshot: Snapshot<unknown>; readonly timers: readonly SavedTimer[] }
  /** It is of another machine, or nothing that this program wrote. */
  | { readonly kind: "refused"; readonly reason: string };

const FORMAT = "rollout machine 1";

export function machineIdentity(machine: AnyStateMachine): MachineIdentity {
  const structure = createHash("sha256")
    .update(JSON.stringify(shapeOf(machine.root)))
    .digest("hex");
  return { id: machine.id, version: machine.version ?? "", structure };
}

function shapeOf({ key, type, states }: AnyStateNode): unknown {
  return [key, type, Object.values<AnyStateNode>(states).map(shapeOf)];
}

/** Throws when JSON cannot hold the snapshot, or would hold another context than this one, or than that of a machine within it. */
export function writeCheckpoint(
  machine: MachineIdentity,
  snapshot: unknown,
  timers: readonly SavedTimer[],
): Uint8Array {
  refuseInexactContext(snapshot as PersistedSnapshot, "");
  return Buffer.from(JSON.stringify({ format: FORMAT, machine, snapshot, timers }));
}

/** The part of XState's persisted snapshot that a user's values are in. */
interface PersistedSnapshot {
  readonly context?: unknown;
  readonly children?: Readonly<Record<string, { readonly snapshot?: PersistedSnapshot }>>;
}

/** A date would come back as a text, a map as an empty object: the machine would go on in a state that it never was in. */
function refuseInexactContext({ context, children = {} }: PersistedSnapshot, path: string): void {
  if (context !== undefined) exactCopy(context, `${path}context`);
  for (const [id, { snapshot }] of Object.entries(children))
    if (snapshot !== undefined) refuseInexactContext(snapshot, `${path}${id}.`);
}

export function readCheckpoint(bytes: Uint8Array, machine: MachineIdentity): ReadCheckpoint {
  if (bytes.length === 0) return { kind: "none" };
  const saved = jsonFields(Buffer.from(bytes).toString("utf8")) as Saved;
  if (saved.format !== FORMAT || saved.snapshot === undefined || !isTimers(saved.timers))
    return { kind: "refused", reason: "the checkpoint is not one of a machine" };
  const { snapshot, timers } = saved;
  for (const name of ["id", "version", "structure"] as const) {
    const [was, is] = [String(saved.machine?.[name]), machine[name]];
    if (was === is) continue;
    const reason =
      name === "structure"
        ? "the states of the machine are others than those of the checkpoint"
        : `the checkpoint is of a machine with ${name} ${was || "(none)"}, and this one has ${is || "(none)"}`;
    return { kind: "refused", reason };
  }
  return { kind: "found", snapshot, timers };
}

interface Saved {
  readonly format?: unknown;
  readonly machine?: Partial<Record<keyof MachineIdentity, unknown>>;
  readonly snapshot?: Snapshot<unknown>;
  readonly timers?: unknown;
}

/** Actors are named by the ids of children on the way from the root. */
export interface SavedTimer {
  readonly id: string;
  readonly source: readonly string[];
  readonly target: readonly string[];
  readonly event: EventObject;
  readonly leftMs: number;
}

export function pendingTimers(root: AnyActorRef): SavedTimer[] {
  const { _scheduledEvents: scheduled } = root.system.getSnapshot();
  const paths = new Map(actorsBelow(root, []));
  const nowMs = systemClock.wallMs();
  return Object.values(scheduled).flatMap(({ id, source, target, event, delay, startedAt }) => {
    const [from, to] = [paths.get(source), paths.get(target)];
    // An actor of it cannot be restored.
    if (from === undefined || to === undefined) return [];
    return [{ id, source: from, target: to, event, leftMs: Math.max(0, startedAt + delay - nowMs) }];
  });
}

/** For an actor that was started from a snapshot. */
export function restoreTimers(root: AnyActorRef, timers: readonly SavedTimer[]): void {
  const { _scheduledEvents: scheduled } = root.system.getSnapshot();
  const known = new Set(Object.values(scheduled).map(({ source, id }) => `${source.sessionId} ${id}`));
  const actors = new Map(actorsBelow(root, []).map(([actor, path]) => [JSON.stringify(path), actor]));
  for (const { id, source, target, event, leftMs } of timers) {
    const [from, to] = [actors.get(JSON.stringify(source)), actors.get(JSON.stringify(target))];
    if (from === undefined || to === undefined || known.has(`${from.sessionId} ${id}`)) continue;
    root.system.scheduler.schedule(from, to, event, leftMs, id);
  }
}

function isTimers(value: unknown): value is readonly SavedTimer[] {
  return Array.isArray(value) && value.every((timer) => typeof timer === "object" && timer !== null);
}

function actorsBelow(actor: AnyActorRef, path: readonly string[]): [AnyActorRef, readonly string[]][] {
  const { children = {} } = actor.getSnapshot() as { children?: Readonly<Record<string, AnyActorRef>> };
  const below = Object.entries(children).flatMap(([id, child]) => actorsBelow(child, [...path, id]));
  return [[actor, path], ...below];
}
