// The row of a timer: an event that is sent when it is due, by the clock that outlives leaders.
import type { RecordType } from "../../storage/codec.ts";
import { RECORD_KIND, TIMERS_PREFIX } from "../../storage/keys.ts";

export interface TimerRecord {
  /** The key of the actor that has set it. */
  readonly key: string;
  /** Empty: the actor is forgotten when it is due. */
  readonly id: string;
  /** Grows with each timer of the actor. */
  readonly number: number;
  /** By the steady clock. */
  readonly dueMs: number;
  readonly event: Uint8Array;
  /** As in `SetTimer`. */
  readonly to: string;
  readonly isOptional: boolean;
  /** The item whose result has set it, and its number among all that the result has asked for. */
  readonly asker: Uint8Array;
  readonly index: number;
  readonly priority: number;
}

export const timerRecord: RecordType<TimerRecord> = {
  kind: RECORD_KIND.timer,
  name: "timer",
  encode: ({ key, id, number, dueMs, event, to, isOptional, asker, index, priority }) => [
    ...[key, id, number, dueMs, event, to, isOptional, asker, index, priority],
  ],
  decode: (fields) => ({
    key: fields.text(0),
    id: fields.text(1),
    number: fields.integer(2),
    dueMs: fields.number(3),
    event: fields.bytes(4),
    to: fields.text(5),
    isOptional: fields.boolean(6),
    asker: fields.bytes(7),
    index: fields.integer(8),
    priority: fields.integer(9),
  }),
};

const NUMBER_DIGITS = 12;

/** `path`: see `pathOf`. */
export function timerKey(path: string, number: number): string {
  return `${TIMERS_PREFIX}${path}/${number.toString(16).padStart(NUMBER_DIGITS, "0")}`;
}
