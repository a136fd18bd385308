// The timers of a machine (`after`, delayed events): XState forgets them with the process, so that a machine which waits in
// a restored state would wait for ever. They are kept beside the snapshot, and go on with what was left of them.
import type { AnyActorRef, EventObject } from "xstate";
import { systemClock } from "../../../base/clock.ts";

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
    // Of an actor that nobody can restore.
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

export function isTimers(value: unknown): value is readonly SavedTimer[] {
  return Array.isArray(value) && value.every((timer) => typeof timer === "object" && timer !== null);
}

function actorsBelow(actor: AnyActorRef, path: readonly string[]): [AnyActorRef, readonly string[]][] {
  const { children = {} } = actor.getSnapshot() as { children?: Readonly<Record<string, AnyActorRef>> };
  const below = Object.entries(children).flatMap(([id, child]) => actorsBelow(child, [...path, id]));
  return [[actor, path], ...below];
}
