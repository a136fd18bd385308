// Partitions of keys, as the coordinator and workers compute them alike: the partition of a key, and the names under which checkpoints of
// partitions stand in a store that several hosts may share.
import { hash } from "node:crypto";

const DIGITS = 3;
const PLACE = /^[0-9a-f]{3}-[0-9A-HJKMNP-TV-Z]{26}-[01]$/u;

/** Stands in the text of a lane between the key of its actor and its own name. No key that is submitted has it. */
export const LANE_MARK = "\0";

/**
 * From 0 to `totalPartitions - 1`. A run's number of partitions never changes, so neither does a key's partition. A lane is in that of its
 * actor.
 */
export function partitionOf(text: string, totalPartitions: number): number {
  const mark = text.indexOf(LANE_MARK);
  const key = mark === -1 ? text : text.slice(0, mark);
  return hash("sha256", `key\0${key}`, "buffer").readUInt32BE(0) % totalPartitions;
}

export function partitionDigits(partition: number): string {
  return partition.toString(16).padStart(DIGITS, "0");
}

/** The name of a worker's checkpoint of a partition. Each worker has two by turns, so the one that was named last stays whole. */
export function checkpointPlace(partition: number, worker: string, turn: 0 | 1): string {
  return `${partitionDigits(partition)}-${worker}-${turn}`;
}

/** Whether the text is the name of a checkpoint of this partition, and nothing that leads out of a directory. */
export function isCheckpointPlace(text: string, partition: number): boolean {
  return PLACE.test(text) && text.startsWith(`${partitionDigits(partition)}-`);
}
