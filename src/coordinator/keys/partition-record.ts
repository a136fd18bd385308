// The last checkpoint of a partition that its worker has acknowledged. It says where states can be read; what they are, the ledger says.
import { isCheckpointPlace, partitionDigits } from "../../base/partition.ts";
import type { RecordType } from "../../storage/codec.ts";
import { PARTITIONS_PREFIX, RECORD_KIND } from "../../storage/keys.ts";

export interface PartitionRecord {
  readonly partition: number;
  /** The name in the checkpoint store. */
  readonly place: string;
  /** States of no later commit are in it. */
  readonly offset: number;
  readonly atWallMs: number;
}

export const partitionRecord: RecordType<PartitionRecord> = {
  kind: RECORD_KIND.partition,
  name: "partition",
  encode: ({ partition, place, offset, atWallMs }) => [partition, place, offset, atWallMs],
  decode: (fields) => {
    const [partition, place] = [fields.integer(0), fields.text(1)];
    if (!isCheckpointPlace(place, partition)) return fields.refuse(1, "is no name of a checkpoint");
    return { partition, place, offset: fields.integer(2), atWallMs: fields.number(3) };
  },
};

export function partitionKey(partition: number): string {
  return `${PARTITIONS_PREFIX}${partitionDigits(partition)}`;
}
