// Items coming in. Which of a batch are new is decided by what the ledger holds, looked up by the edge for one batch at a time;
// here the new ones are written. A batch is on stable storage before it is acknowledged, and a batch that comes twice is
// answered as it was the first time.
import { encodeRecord } from "../storage/codec.ts";
import type { Input } from "./input.ts";
import { addItem, writeIndex } from "./ledger/ledger.ts";
import { takesItems } from "./run.ts";
import type { CoordinatorState } from "./state.ts";
import { submissionKey, submissionRecord } from "./submission-record.ts";
import type { Turn } from "./turn.ts";

export function onSubmit(
  state: CoordinatorState,
  turn: Turn,
  { batch, answer: to }: Extract<Input, { kind: "submit" }>,
): void {
  // It may have been sealed since the batch was looked up.
  if (!takesItems(state)) {
    turn.effects.push({ kind: "answerSubmission", to, answer: { kind: "closed" } });
    return;
  }
  const { submission, batchNumber, known } = batch;
  for (const item of batch.added) addItem(state.ledger, turn, item);
  for (const { id, index } of batch.counted) writeIndex(turn, id, index);
  const said = { added: batch.added.length, known };
  const key = submissionKey(submission, batchNumber);
  turn.put({ key, value: encodeRecord(submissionRecord, key, said) });
  turn.requireSync();
  turn.effects.push({ kind: "answerSubmission", to, answer: { kind: "taken", ...said } });
}
