// The partition of a key. A run's number of partitions never changes, so neither does a key's partition.
import { hash } from "node:crypto";

/** From 0 to `totalPartitions - 1`. */
export function partitionOf(key: string, totalPartitions: number): number {
  return hash("sha256", `key\0${key}`, "buffer").readUInt32BE(0) % totalPartitions;
}
