// Records of attempts beside the ledger's own rows: how they ended, what they wrote to their standard error, and the last
// checkpoint. Nothing is decided by the first two; an item has 16 slots of each, so that one which comes back for ever does not
// fill the disk.
import { ulidToBytes } from "../../base/ids.ts";
import type { WorkerId } from "../../base/ids.ts";
import type { RecordType } from "../../storage/codec.ts";
import { ATTEMPT_LOGS_PREFIX, ATTEMPTS_PREFIX, CHECKPOINTS_PREFIX, RECORD_KIND } from "../../storage/keys.ts";
import type { Execution } from "./records.ts";
import { workerFrom } from "./records.ts";
import type { Place } from "./place.ts";

/** So many attempts of an item are remembered, the last ones. */
const SLOTS = 16;

/** Outcomes of attempts that did not succeed. */
export const ATTEMPT_CLASSES = [
  "error",
  "timeout",
  "crash",
  "crash_shared",
  "too_large",
  "preempted",
  "stolen",
  "fenced",
  "cancelled",
  "lost",
] as const;
export type AttemptClass = (typeof ATTEMPT_CLASSES)[number];

export interface AttemptRecord extends Execution {
  readonly attempt: number;
  readonly worker: WorkerId;
  readonly class: AttemptClass;
  readonly message: string;
  readonly endedAtWallMs: number;
  /** Size of its log; 0 when it left none. */
  readonly logBytes: number;
}

export const attemptRecord: RecordType<AttemptRecord> = {
  kind: RECORD_KIND.attempt,
  name: "attempt",
  encode: (row) => [
    row.attempt,
    ulidToBytes(row.worker),
    row.class,
    row.message,
    row.pluginVersion,
    row.startedAtWallMs,
    row.durationMs,
    row.endedAtWallMs,
    row.logBytes,
  ],
  decode: (fields) => ({
    attempt: fields.integer(0),
    worker: workerFrom(fields, 1),
    class:
      ATTEMPT_CLASSES.find((known) => known === fields.text(2)) ??
      fields.refuse(2, "is no class of an attempt"),
    message: fields.text(3),
    pluginVersion: fields.text(4),
    startedAtWallMs: fields.number(5),
    durationMs: fields.number(6),
    endedAtWallMs: fields.number(7),
    logBytes: fields.integer(8),
  }),
};

export interface AttemptLog {
  readonly attempt: number;
  readonly log: Uint8Array;
}

export const attemptLogRecord: RecordType<AttemptLog> = {
  kind: RECORD_KIND.attemptLog,
  name: "attempt log",
  encode: ({ attempt, log }) => [attempt, log],
  decode: (fields) => ({ attempt: fields.integer(0), log: fields.bytes(1) }),
};

/** A checkpoint that an attempt has left, for the next one of the same version. */
export interface LeftCheckpoint {
  readonly content: Uint8Array;
  /** The version that the attempt's assignment named; empty: its worker's own, as all attempts of a run without releases. */
  readonly version: string;
}

export const checkpointRecord: RecordType<LeftCheckpoint> = {
  kind: RECORD_KIND.checkpoint,
  name: "checkpoint",
  encode: ({ content, version }) => (version === "" ? [content] : [content, version]),
  decode: (fields) => ({ content: fields.bytes(0), version: fields.length > 1 ? fields.text(1) : "" }),
};

/** Prefix of what is remembered of one item's attempts. */
export function attemptsOf(place: Place): string {
  return `${ATTEMPTS_PREFIX}${place}/`;
}

export function logsOf(place: Place): string {
  return `${ATTEMPT_LOGS_PREFIX}${place}/`;
}

/** The slot of an attempt. A reader compares the attempt: another one may have taken its place. */
export function slotOf(attempt: number): string {
  return (attempt % SLOTS).toString(SLOTS);
}

export function checkpointKey(place: Place): string {
  return `${CHECKPOINTS_PREFIX}${place}`;
}
