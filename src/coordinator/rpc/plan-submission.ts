// A batch of lines, compared with the ledger. One batch at a time for the whole run: between the look-ups and the commit
// nobody else may add the same item.
import { assert } from "../../base/assert.ts";
import { ITEM_INDEX_PREFIX } from "../../storage/keys.ts";
import { readRecord, recordOf } from "../../storage/records.ts";
import type { Store } from "../../storage/store.ts";
import { itemIdOf, itemIdText } from "../ledger/item-id.ts";
import { itemIndexRecord } from "../ledger/records.ts";
import type { ItemIndexRecord, LineCount } from "../ledger/records.ts";
import type { PlannedBatch, RunTask, SubmissionAnswer } from "../turn/run-view.ts";
import { submissionKey, submissionRecord } from "../run/submission.ts";

export interface Line {
  readonly payload: Uint8Array;
  readonly key: string;
  readonly priority: number;
  /** How the input names it; no part of what it is. */
  readonly label: string;
}

export interface Lines {
  readonly submission: string;
  /** From 1 without gaps. */
  readonly batchNumber: number;
  readonly task: RunTask;
  /** Whether a run that was sealed is to take them. */
  readonly reopen: boolean;
  readonly lines: readonly Line[];
}

export type Planned =
  | { readonly kind: "planned"; readonly batch: PlannedBatch }
  /** The batch was taken before. */
  | { readonly kind: "answered"; readonly answer: SubmissionAnswer }
  /** The batch before it has not come: what it counts lines from is not known. */
  | { readonly kind: "gap" };

/** The part that equal lines have in common. */
interface Content {
  /** Id of the first of them. */
  readonly id: Uint8Array;
  /** As the ledger has it; undefined for a content that is new with this batch. */
  readonly index: ItemIndexRecord | undefined;
  /** Equal lines in this submission so far, this batch included. */
  count: number;
}

interface NumberedLine extends Line {
  readonly id: Uint8Array;
  readonly content: Content;
  /** How many equal lines came before it in the submission. */
  readonly sampleIndex: number;
}

/** Reads only. Throws store_corrupt, naming the key. */
export async function planSubmission(store: Store, batch: Lines): Promise<Planned> {
  const { submission, batchNumber } = batch;
  const answer = await readAnswer(store, submission, batchNumber);
  if (answer !== undefined) return { kind: "answered", answer };
  if (batchNumber > 1 && (await readAnswer(store, submission, batchNumber - 1)) === undefined)
    return { kind: "gap" };
  const firsts = batch.lines.map((line) => firstIdOf(line, batch.task));
  const contents = await readContents(store, submission, firsts);
  const lines = numberLines(batch, firsts, contents);
  const copies = await readIndexes(
    store,
    lines.filter(({ sampleIndex }) => sampleIndex > 0).map(({ id }) => id),
  );
  const isKnown = ({ sampleIndex, content, id }: NumberedLine): boolean =>
    sampleIndex === 0 ? content.index !== undefined : copies.get(itemIdText(id)) !== undefined;
  const fresh = lines.filter((line) => !isKnown(line));
  const added = fresh.map(({ id, payload, key, priority, label, sampleIndex, content }) => ({
    ...{ id, payload, key, priority, label },
    counts: sampleIndex === 0 ? [{ submission, count: content.count }] : [],
  }));
  const counted = [...contents.values()].flatMap(({ id, index, count }) =>
    index === undefined ? [] : [{ id, index: withCount(index, { submission, count }) }],
  );
  const known = lines.length - added.length;
  const duplicates = lines.filter(({ sampleIndex }) => sampleIndex > 0).length;
  const { task, reopen } = batch;
  return {
    kind: "planned",
    batch: { submission, batchNumber, task, reopen, added, known, duplicates, counted },
  };
}

/** Foresees what would become of lines that their sender has counted: each is its own item by its sample index. Reads only. */
export async function foresee(
  store: Store,
  { digest: taskDigest }: RunTask,
  lines: readonly (Line & { readonly sampleIndex: number })[],
): Promise<SubmissionAnswer> {
  const ids = lines.map((line) => itemIdOf({ ...line, taskDigest }));
  const found = await readIndexes(store, ids);
  const known = ids.filter((id) => found.has(itemIdText(id))).length;
  const duplicates = lines.filter(({ sampleIndex }) => sampleIndex > 0).length;
  return { added: lines.length - known, known, duplicates };
}

/** Id of the first of the lines that are equal to it. */
interface FirstId {
  readonly id: Uint8Array;
  readonly text: string;
}

function firstIdOf(line: Line, { digest: taskDigest }: RunTask): FirstId {
  const id = itemIdOf({ ...line, taskDigest, sampleIndex: 0 });
  return { id, text: itemIdText(id) };
}

/** Every distinct content of the batch, by the text of its id. */
async function readContents(
  store: Store,
  submission: string,
  firsts: readonly FirstId[],
): Promise<Map<string, Content>> {
  const indexes = await readIndexes(
    store,
    firsts.map(({ id }) => id),
  );
  return new Map(
    firsts.map(({ id, text }) => {
      const index = indexes.get(text);
      const count = index?.counts.find((counted) => counted.submission === submission)?.count ?? 0;
      return [text, { id, index, count }];
    }),
  );
}

/** Counts the contents up. */
function numberLines(
  { task: { digest: taskDigest }, lines }: Lines,
  firsts: readonly FirstId[],
  contents: ReadonlyMap<string, Content>,
): readonly NumberedLine[] {
  return lines.map((line, at) => {
    const first = firsts[at];
    assert(first !== undefined, "there is an id for each line");
    const content = contents.get(first.text);
    assert(content !== undefined, "every line has been looked up");
    const sampleIndex = content.count++;
    const id = sampleIndex === 0 ? first.id : itemIdOf({ ...line, taskDigest, sampleIndex });
    return { ...line, id, content, sampleIndex };
  });
}

/** Submissions whose counts of one line are kept: so many may run at once over the same lines. */
const COUNTS_MAX = 8;

function withCount({ place, counts }: ItemIndexRecord, count: LineCount): ItemIndexRecord {
  const others = counts.filter(({ submission }) => submission !== count.submission);
  return { place, counts: [count, ...others].slice(0, COUNTS_MAX) };
}

async function readAnswer(
  store: Store,
  submission: string,
  batchNumber: number,
): Promise<SubmissionAnswer | undefined> {
  return readRecord(store, submissionKey(submission, batchNumber), submissionRecord);
}

/** The index rows that there are, by the text of the id. */
async function readIndexes(
  store: Store,
  ids: readonly Uint8Array[],
): Promise<ReadonlyMap<string, ItemIndexRecord>> {
  const texts = [...new Set(ids.map(itemIdText))];
  const values = await store.getMany(texts.map((text) => `${ITEM_INDEX_PREFIX}${text}`));
  return new Map(
    texts.flatMap((text, at): [string, ItemIndexRecord][] => {
      const value = values[at];
      if (value === undefined) return [];
      return [[text, recordOf(store, { key: `${ITEM_INDEX_PREFIX}${text}`, value }, itemIndexRecord)]];
    }),
  );
}
