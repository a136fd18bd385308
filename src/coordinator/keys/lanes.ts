// Lanes: keys without a state, beside an actor's own and in its partition, each for items that run apart from the actor's events: one for
// each invocation, and one for named actions, which run in order. A lane is gone as soon as it is empty, and counts as no key.
import { LANE_MARK } from "../../base/partition.ts";

/** The lane of one invocation. The number tells it from earlier ones of the same id. */
export function invocationLane(key: string, id: string, number: number): string {
  return `${key}${LANE_MARK}run/${id}/${number}`;
}

/** The lane of an actor's named actions. */
export function actionLane(key: string): string {
  return `${key}${LANE_MARK}do`;
}

export function isLane(text: string): boolean {
  return text.includes(LANE_MARK);
}

/** The key of the actor that has the lane; a key's own text. */
export function actorOf(text: string): string {
  const mark = text.indexOf(LANE_MARK);
  return mark === -1 ? text : text.slice(0, mark);
}

export interface Invocation {
  /** The key of its actor. */
  readonly key: string;
  readonly id: string;
  readonly number: number;
}

/** Undefined for any other text than that of an invocation's lane. */
export function invocationOf(text: string): Invocation | undefined {
  const mark = text.indexOf(LANE_MARK);
  const name = mark === -1 ? "" : text.slice(mark + 1);
  if (!name.startsWith("run/")) return undefined;
  const end = name.lastIndexOf("/");
  return {
    key: text.slice(0, mark),
    id: name.slice("run/".length, end),
    number: Number(name.slice(end + 1)),
  };
}
