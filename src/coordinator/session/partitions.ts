// Partitions of keys in a worker's session: it says what it has read of one, is sent the states that it lacks, and says when it has them;
// from then on they need not travel with items. Now and then it is asked for a checkpoint of each, and nobody waits for that.
import { encodeRecord } from "../../storage/codec.ts";
import { partitionKey, partitionRecord } from "../keys/partition-record.ts";
import { pathOf } from "../keys/key-records.ts";
import type { Input } from "../turn/input.ts";
import type { SessionInput, SessionPort } from "../turn/session-frame.ts";
import { isHeard } from "../turn/state.ts";
import type { CoordinatorState, WorkerRow } from "../turn/state.ts";
import type { Turn } from "../turn/turn.ts";

/** Keys whose states are read at once; the reading stops earlier when there are too many bytes. */
const KEYS_MAX = 512;

type Said<K extends SessionInput["kind"]> = Extract<SessionInput, { readonly kind: K }>;

export function onPartitionLoaded(
  state: CoordinatorState,
  turn: Turn,
  row: WorkerRow,
  said: Said<"partitionLoaded">,
): void {
  const { keys } = state;
  const { partition, offset, port } = said;
  // One that is not its own any more it will hear of: by the epoch in the answer to its next beat.
  if (!keys.isInUse || keys.assignment.ownerOf(partition) !== row.id || row.session?.takesOneFrame !== false)
    return;
  switch (said.says) {
    case "dropped":
      return keys.warmth.close(partition);
    case "has":
      if (keys.warmth.loaded(partition, port, offset)) announce(turn, row, said);
      return;
    case "asks":
      if (!keys.warmth.isOpen(partition, port)) open(state, row, said);
      return sendStates(state, turn, partition, port);
  }
}

function open({ keys, ledger }: CoordinatorState, row: WorkerRow, said: Said<"partitionLoaded">): void {
  const { partition, port } = said;
  // A state that is committed in this turn has the next number, and is sent beside what was asked for.
  const upTo = ledger.tally.nextCompletion;
  keys.warmth.open(partition, {
    worker: row.id,
    incarnation: row.chart.context.incarnation,
    holder: port,
    // Later commits than there are: whatever it has is of another history.
    offset: said.offset > upTo ? 0 : said.offset,
    upTo,
    keys: keys.table.keysOf(partition),
  });
}

function sendStates({ keys }: CoordinatorState, turn: Turn, partition: number, port: SessionPort): void {
  const unsent = keys.warmth.next(partition, port, KEYS_MAX);
  if (unsent === undefined) return;
  const read = unsent.keys.map(({ text }) => ({ text, path: pathOf(text, partition) }));
  if (read.length > 0) {
    turn.effects.push({ kind: "readStates", reading: { port, partition, keys: read } });
    return;
  }
  keys.warmth.sent(partition, port, 0);
  turn.send(port, { kind: "partitionStates", partition, states: [], last: unsent.upTo });
}

export function onStatesRead(
  { keys }: CoordinatorState,
  turn: Turn,
  { read: { reading, frames, count } }: Extract<Input, { kind: "statesRead" }>,
): void {
  const { port, partition } = reading;
  const sent = keys.warmth.sent(partition, port, count);
  if (sent === undefined) return;
  for (const [at, states] of frames.entries()) {
    const isEnd = at === frames.length - 1;
    turn.send(port, { kind: "partitionStates", partition, states, last: isEnd ? sent.last : undefined });
  }
}

function announce(turn: Turn, { id }: WorkerRow, said: Said<"partitionLoaded">): void {
  const { partition, offset, loaded, replayed, durationMs } = said;
  // One in which there is nothing is no news.
  if (loaded + replayed === 0) return;
  turn.emit("partition_loaded", { worker_id: id, partition, offset, loaded, replayed, ms: durationMs });
}

/** Called at each scan: the workers are asked when it is time. */
export function askForCheckpoints({ keys, workers }: CoordinatorState, turn: Turn): void {
  const { warmth, settings, isInUse } = keys;
  const { checkpointIntervalMs } = settings;
  if (checkpointIntervalMs === undefined || !isInUse) return;
  if (turn.nowMs - warmth.requestedAtMs < checkpointIntervalMs) return;
  warmth.requestedAtMs = turn.nowMs;
  const number = ++warmth.request;
  for (const row of workers.values()) {
    const port = row.session?.port;
    if (port === undefined || !isHeard(row) || !warmth.hears(row.id, port)) continue;
    turn.send(port, { kind: "checkpointRequest", number });
  }
}

/** It is a cache: what is lost of it with the power is read as one that is older. */
export function onPartitionsWritten(
  { keys, ledger }: CoordinatorState,
  turn: Turn,
  row: WorkerRow,
  { port, written }: Said<"partitionsWritten">,
): void {
  for (const { partition, offset, place } of written) {
    if (keys.assignment.ownerOf(partition) !== row.id || offset > ledger.tally.nextCompletion) continue;
    const record = { partition, place, offset, atWallMs: turn.wallMs };
    if (!keys.warmth.written(record, port)) continue;
    const key = partitionKey(partition);
    turn.put({ key, value: encodeRecord(partitionRecord, key, record) });
  }
}
