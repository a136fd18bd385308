// Items coming in. Which of a batch are new is decided by what the ledger holds, looked up by the edge for one batch at a time;
// here the new ones are written. A batch is on stable storage before it is acknowledged, and a batch that comes twice is
// answered as it was the first time.
import type { RecordType } from "../../storage/codec.ts";
import { encodeRecord } from "../../storage/codec.ts";
import { ITEM_INDEX_PREFIX, RECORD_KIND, SUBMISSIONS_PREFIX } from "../../storage/keys.ts";
import type { Input } from "../turn/input.ts";
import { addItem, writeIndex } from "../items/transitions.ts";
import { itemIdText, itemKeyOf } from "../ledger/place.ts";
import { adoptTask, extend, meaningOf } from "./run.ts";
import type { CoordinatorState } from "../turn/state.ts";
import type { PlannedBatch, Refusal, ReleasedTasks, RunTask, SubmissionAnswer } from "../turn/run-terms.ts";
import type { Turn } from "../turn/turn.ts";

export const submissionRecord: RecordType<SubmissionAnswer> = {
  kind: RECORD_KIND.submission,
  name: "submission",
  encode: ({ added, known, duplicates }) => [added, known, duplicates],
  decode: (fields) => ({
    added: fields.integer(0),
    known: fields.integer(1),
    duplicates: fields.integer(2),
  }),
};

/** Where the answer to one batch of a submission stands. */
export function submissionKey(submission: string, batchNumber: number): string {
  return `${SUBMISSIONS_PREFIX}${submission}/${String(batchNumber).padStart(16, "0")}`;
}

/** A run executes one task, under several names if it has come to others by releases: undefined when `asked` is the first of `run`. */
export function otherTask(run: RunTask, asked: RunTask, releases: ReleasedTasks): Refusal | undefined {
  if (Buffer.compare(run.digest, asked.digest) === 0) return undefined;
  if (releases.hasReached(asked.digest)) return { kind: "renamed", task: run };
  const release = releases.triedBy(asked.digest);
  return release === undefined ? { kind: "otherTask", task: run } : { kind: "onTrial", task: run, release };
}

export function onSubmit(
  state: CoordinatorState,
  turn: Turn,
  { batch, answer: to }: Extract<Input, { kind: "submit" }>,
): void {
  // A refusal rests on what was decided before, which the store may have lost.
  turn.requireSync();
  const lost = batch.added.find(({ id }) => state.ledger.running.has(itemKeyOf(id)));
  if (lost !== undefined) {
    const key = `${ITEM_INDEX_PREFIX}${itemIdText(lost.id)}`;
    return turn.foundDamage({
      kind: "corrupt",
      key,
      reason: "a worker has the item, and the store knows none",
    });
  }
  // It may have been sealed, or have got its task, since the batch was looked up.
  const refusal = refusalOf(state, batch) ?? refusalOfKeys(state, batch);
  if (refusal !== undefined) return turn.answer(to, refusal);
  if (state.task === null) adoptTask(state, turn, batch.task);
  const { submission, batchNumber, known, duplicates } = batch;
  // A submission of known items alone changes nothing, least of all a run that is complete.
  if (batch.added.length > 0) extend(state, turn);
  if (batch.added.some(({ key }) => key !== "")) state.keys.begin(turn);
  for (const item of batch.added) addItem(state.ledger, turn, item);
  for (const { id, index } of batch.counted) writeIndex(turn, id, index);
  const said = { added: batch.added.length, known, duplicates };
  const key = submissionKey(submission, batchNumber);
  turn.put({ key, value: encodeRecord(submissionRecord, key, said) });
  turn.answer(to, { kind: "taken", ...said });
}

function refusalOf(state: CoordinatorState, { task, reopen, added }: PlannedBatch): Refusal | undefined {
  const { phase } = meaningOf(state);
  if (phase === "cancelled") return { kind: "cancelled" };
  // A client that does not know whether its lines have arrived may submit them again.
  if (phase !== "open" && !reopen && added.length > 0) return { kind: "sealed" };
  return state.task === null ? undefined : otherTask(state.task, task, state.releases);
}

function refusalOfKeys({ keys }: CoordinatorState, { added }: PlannedBatch): Refusal | undefined {
  const texts = new Set(added.flatMap(({ key }) => (key === "" ? [] : [key])));
  if (texts.size === 0) return undefined;
  const [found, configured] = [keys.table.totalPartitions, keys.settings.totalPartitions];
  if (found !== configured) return { kind: "partitionsFixed", found, configured };
  const full = keys.table.findFull(texts);
  return full && { kind: "partitionFull", ...full };
}
