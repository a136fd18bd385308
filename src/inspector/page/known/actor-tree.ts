// Actors of a program as a tree. A program may say anything: an actor whose parent is not there stands at the top, and a circle of
// parents is cut.
import type { ActorRow } from "../../page-messages.ts";

export interface Branch {
  readonly actor: ActorRow;
  readonly depth: number;
  /** How many stand right below it. */
  readonly children: number;
}

/** Depth first, in the order in which they were told. */
export function branchesOf(actors: ReadonlyMap<string, ActorRow>): readonly Branch[] {
  const isTop = ({ parent_id }: ActorRow): boolean => parent_id === null || !actors.has(parent_id);
  const below = Map.groupBy(actors.values(), (actor) => (isTop(actor) ? null : actor.parent_id));
  const seen = new Set<string>();
  const branches: Branch[] = [];
  const grow = (from: readonly ActorRow[]): void => {
    const waiting = from.toReversed().map((actor) => ({ actor, depth: 0 }));
    for (let next = waiting.pop(); next !== undefined; next = waiting.pop()) {
      const { actor, depth } = next;
      if (seen.has(actor.session_id)) continue;
      seen.add(actor.session_id);
      const children = below.get(actor.session_id) ?? [];
      branches.push({ actor, depth, children: children.length });
      waiting.push(...children.toReversed().map((child) => ({ actor: child, depth: depth + 1 })));
    }
  };
  grow(below.get(null) ?? []);
  // Nothing leads to these from the top: they stand in circles.
  for (const actor of actors.values()) if (!seen.has(actor.session_id)) grow([actor]);
  return branches;
}
