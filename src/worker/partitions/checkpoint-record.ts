// A checkpoint of a partition as bytes: a record under the run and its own name, so that one of another run, under another name, or of which
// a part is missing is not taken for it.
import type { RunId } from "../../base/ids.ts";
import { decodeRecord, encodeRecord } from "../../storage/codec.ts";
import type { RecordType } from "../../storage/codec.ts";
import { RECORD_KIND } from "../../storage/keys.ts";
import type { KeyState } from "./partition-states.ts";

export interface Checkpoint {
  readonly partition: number;
  /** States of no later commit are in it. */
  readonly offset: number;
  readonly states: readonly KeyState[];
}

/** @internal */
export const checkpointRecord: RecordType<Checkpoint> = {
  kind: RECORD_KIND.partitionCheckpoint,
  name: "checkpoint of a partition",
  encode: ({ partition, offset, states }) => [
    partition,
    offset,
    states.map(({ key, commit, state }) => [key, commit, state ?? null]),
  ],
  decode: (fields) => ({
    partition: fields.integer(0),
    offset: fields.integer(1),
    states: fields
      .tuples(2)
      .map((state) => ({ key: state.text(0), commit: state.integer(1), state: state.bytes(2) })),
  }),
};

/** The name under which it is found, and which its checksum covers. */
export function checkpointName(runId: RunId, place: string): string {
  return `${runId}/${place}`;
}

export function encodeCheckpoint(name: string, checkpoint: Checkpoint): Uint8Array {
  return encodeRecord(checkpointRecord, name, checkpoint);
}

/** The checkpoint that was meant, or why it is not that one. */
export function decodeCheckpoint(
  name: string,
  bytes: Uint8Array,
  { partition, offset }: Pick<Checkpoint, "partition" | "offset">,
): Checkpoint | string {
  const read = decodeRecord(checkpointRecord, name, bytes);
  if (read.kind === "newer") return `a newer version has written it (${read.found})`;
  if (read.kind === "corrupt") return read.reason;
  const found = read.value;
  if (found.partition !== partition) return `it is of partition ${found.partition}`;
  return found.offset === offset ? found : `it ends with commit ${found.offset}, and ${offset} was named`;
}
