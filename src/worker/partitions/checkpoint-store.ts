// The room of partitions at a worker: `partitions` keeps the states of those that are the worker's own by the ring, `partition-states` is one
// of them in memory and `checkpoint-record` as it is written, `checkpoints` bears with the trouble on the way; `directory-store` and `s3-store`, with
// its `s3-credentials`, are where it is written to.
//
// Here is the port of such a place. Its content is a cache: anything that is wrong with it, or with the way to it, costs bytes.

export interface CheckpointStore {
  /** For messages: where it is, without secrets. */
  readonly name: string;
  /** Undefined when there is nothing of this name. Rejects when that cannot be known, or it has more bytes; within half a minute. */
  read(place: string, maxBytes: number): Promise<Uint8Array | undefined>;
  /** In place of what was there. Durable and whole when it resolves. Rejects within half a minute where that can be. */
  write(place: string, bytes: Uint8Array): Promise<void>;
}
