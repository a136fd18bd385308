// Items that come in: one batch of lines at a time is compared with the ledger, for the whole run, so that between the look-ups and the
// commit nobody else may add the same item.
import type { ServiceImpl } from "@connectrpc/connect";
import { parseUlidBytes } from "../../base/ids.ts";
import { LIMITS } from "../../config/limits.ts";
import type { NewItem, OperatorService, SubmitRequest } from "../../gen/rollout/v1/run_pb.ts";
import type { Store } from "../../storage/store.ts";
import { PRIORITY_MAX, PRIORITY_MIN, eventItemIdOf, itemIdOf, itemIdText } from "../ledger/place.ts";
import type { Place } from "../ledger/place.ts";
import type { PlannedBatch, RunTask, SubmissionAnswer } from "../turn/run-terms.ts";
import { otherTask, submissionKey, submissionRecord } from "../run/submission.ts";
import type { Leader } from "./leader.ts";
import { ask, refuse } from "./leader.ts";
import { refuseSubmission } from "./submission-refusal.ts";
import { turnstile } from "../../base/turnstile.ts";
import { COUNT_MAX, countFrom } from "./messages.ts";
import { assert } from "../../base/assert.ts";
import { failure } from "../../base/errors.ts";
import { ITEM_INDEX_PREFIX, ITEMS_PREFIX } from "../../storage/keys.ts";
import { corrupt, readRecord, recordOf } from "../../storage/records.ts";
import { itemIndexRecord, itemRecord } from "../ledger/records.ts";
import type { ItemIndexRecord, LineCount } from "../ledger/records.ts";

const LINES_MAX = 10_000;
const DIGEST_BYTES = 32;
const KEY_BYTES_MAX = 256;
/** Control characters, line ends among them. */
const UNPRINTABLE = /[\p{Cc}\p{Zl}\p{Zp}\p{Cs}]/u;

export function submissions(
  leader: Leader,
  store: Store,
): Pick<ServiceImpl<typeof OperatorService>, "submit"> {
  const takeTurn = turnstile();
  return {
    async submit(request) {
      const { added, known, duplicates } = request.dryRun
        ? await wouldSubmit(leader, store, request)
        : await takeTurn(() => take(leader, store, readBatch(leader, request)));
      const counts = { added: BigInt(added), known: BigInt(known), duplicates: BigInt(duplicates) };
      return { coordinator: leader.envelope, ...counts };
    },
  };
}

async function take(leader: Leader, store: Store, batch: Lines): Promise<SubmissionAnswer> {
  const planned = await planSubmission(store, batch);
  switch (planned.kind) {
    case "answered":
      return planned.answer;
    case "gap":
      return refuse("Submit", `batch ${batch.batchNumber} came before batch ${batch.batchNumber - 1}`);
    case "reused":
      throw failure("event_id_reused", { event: planned.event, key: planned.key });
    case "planned": {
      const verdict = await ask(leader, { kind: "submit", batch: planned.batch });
      if (verdict.kind === "taken") return verdict;
      // The run's first task names its items for good, whichever manifest they come with.
      if (verdict.kind === "renamed") return take(leader, store, { ...batch, task: verdict.task });
      return refuseSubmission(verdict, batch.task);
    }
  }
}

/** The same refusals, and the same counts if nothing comes between; nothing is written. */
async function wouldSubmit(leader: Leader, store: Store, request: SubmitRequest): Promise<SubmissionAnswer> {
  const asked = readTask(request);
  const lines = readLines(request, (item) => ({ ...readLine(leader, item), sampleIndex: item.sampleIndex }));
  const { phase, task: ofRun, releases } = await ask(leader, { kind: "getExtent" });
  if (phase === "cancelled") return refuseSubmission({ kind: "cancelled" }, asked);
  const refusal = ofRun === null ? undefined : otherTask(ofRun, asked, releases);
  if (refusal !== undefined && refusal.kind !== "renamed") return refuseSubmission(refusal, asked);
  const task = refusal?.task ?? asked;
  const foreseen = await foresee(store, task, lines);
  return phase === "open" || request.reopen || foreseen.added === 0
    ? foreseen
    : refuseSubmission({ kind: "sealed" }, task);
}

function readBatch(leader: Leader, request: SubmitRequest): Lines {
  const { submissionId, batchNumber } = request;
  const submission = parseUlidBytes(submissionId);
  if (submission === undefined) return refuse("Submit", "submission_id is not 16 bytes");
  const number = countFrom(batchNumber) ?? refuse("Submit", `batch_number is over ${COUNT_MAX}`);
  if (number < 1) return refuse("Submit", "batch_number is not counted from 1");
  const lines = readLines(request, (item) => readLine(leader, item));
  const { reopen } = request;
  return { submission, batchNumber: number, task: readTask(request), reopen, lines };
}

/** Throws request_invalid. */
export function readTask({
  taskDigest: digest,
  plugin,
  taskSummary: summary,
}: Pick<SubmitRequest, "taskDigest" | "plugin" | "taskSummary">): RunTask {
  if (digest.length !== DIGEST_BYTES) return refuse("Submit", "task_digest is not 32 bytes");
  refuseLong("plugin", plugin, LIMITS.pluginTextBytes);
  refuseLong("task_summary", summary, LIMITS.taskSummaryBytes);
  // A copy: the run keeps it, and must not keep the whole message that it came in.
  return { digest: new Uint8Array(digest), plugin, summary };
}

function readLines<Read>({ items }: SubmitRequest, read: (item: NewItem) => Read): Read[] {
  if (items.length > LINES_MAX) return refuse("Submit", `more than ${LINES_MAX} items in one batch`);
  return items.map(read);
}

function readLine({ limits }: Leader, { payload, key, priority, label, eventId }: NewItem): Line {
  if (payload.length > limits.payloadBytes)
    return refuse(
      "Submit",
      `a payload of ${payload.length} bytes; the limit is ${limits.payloadBytes} (limits.payload)`,
    );
  refuseLong("a key", key, KEY_BYTES_MAX);
  if (UNPRINTABLE.test(key)) return refuse("Submit", "a key has characters that cannot be printed");
  refuseLong("an event id", eventId, KEY_BYTES_MAX);
  refuseLong("a label", label, LIMITS.itemTextBytes);
  if (priority < PRIORITY_MIN || priority > PRIORITY_MAX)
    return refuse("Submit", `priority ${priority} is not between ${PRIORITY_MIN} and ${PRIORITY_MAX}`);
  return { payload, key, priority, label, eventId };
}

function refuseLong(what: string, text: string, bytesMax: number): void {
  if (Buffer.byteLength(text) > bytesMax) refuse("Submit", `${what} is longer than ${bytesMax} bytes`);
}

interface Line {
  readonly payload: Uint8Array;
  readonly key: string;
  readonly priority: number;
  /** How the input names it; no part of what it is. */
  readonly label: string;
  /** Names the item within its key for ever, whatever its payload; empty when nothing does. */
  readonly eventId?: string;
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
  | { readonly kind: "gap" }
  /** The event was submitted before, with another payload. */
  | { readonly kind: "reused"; readonly key: string; readonly event: string };

/** The part that equal lines have in common. */
interface Content {
  /** Id of the first of them. */
  readonly id: Uint8Array;
  /** As the ledger has it; undefined for a content that is new with this batch. */
  readonly index: ItemIndexRecord | undefined;
  /** Equal lines in this submission so far, this batch included. */
  count: number;
  /** It is named by an event id: it is counted for this batch alone. */
  readonly isEvent: boolean;
}

interface NumberedLine extends Line {
  readonly id: Uint8Array;
  readonly content: Content;
  /** How many equal lines came before it in the submission. */
  readonly sampleIndex: number;
  /** Its event came before in the batch. */
  readonly isRepeated: boolean;
}

/**
 * Reads only. Throws store_corrupt, naming the key.
 * @internal
 */
export async function planSubmission(store: Store, batch: Lines): Promise<Planned> {
  const { submission, batchNumber } = batch;
  const firsts = batch.lines.map((line) => firstIdOf(line, batch.task));
  const { answer, isGap, indexes } = await readKnown(store, batch, firsts);
  if (answer !== undefined) return { kind: "answered", answer };
  if (isGap) return { kind: "gap" };
  const contents = contentsOf(submission, firsts, indexes);
  const reused = await findReused(store, batch.lines, firsts, contents);
  if (reused !== undefined) return { kind: "reused", ...reused };
  const lines = numberLines(batch, firsts, contents);
  const copied = lines.filter(({ sampleIndex }) => sampleIndex > 0).map(({ id }) => id);
  const copies = await readIndexes(store, copied);
  const isKnown = ({ sampleIndex, content, id, isRepeated }: NumberedLine): boolean =>
    isRepeated ||
    (sampleIndex === 0 ? content.index !== undefined : copies.get(itemIdText(id)) !== undefined);
  const fresh = lines.filter((line) => !isKnown(line));
  const added = fresh.map(({ id, payload, key, priority, label, sampleIndex, content }) => ({
    ...{ id, payload, key, priority, label },
    counts: sampleIndex === 0 && !content.isEvent ? [{ submission, count: content.count }] : [],
  }));
  const counted = [...contents.values()].flatMap(({ id, index, count, isEvent }) =>
    index === undefined || isEvent ? [] : [{ id, index: withCount(index, { submission, count }) }],
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
async function foresee(
  store: Store,
  { digest: taskDigest }: RunTask,
  lines: readonly (Line & { readonly sampleIndex: number })[],
): Promise<SubmissionAnswer> {
  const met = new Set<string>();
  const ids = lines.map((line) =>
    isEvent(line)
      ? eventItemIdOf({ taskDigest, key: line.key, eventId: line.eventId ?? "" })
      : itemIdOf({ ...line, taskDigest }),
  );
  const found = await readIndexes(store, ids);
  const known = ids.filter((id, at) => {
    const text = itemIdText(id);
    const line = lines[at];
    const isRepeated = line !== undefined && isEvent(line) && met.has(text);
    met.add(text);
    return isRepeated || found.has(text);
  }).length;
  const duplicates = lines.filter(({ sampleIndex }) => sampleIndex > 0).length;
  return { added: lines.length - known, known, duplicates };
}

/** Id of the first of the lines that are equal to it. */
interface FirstId {
  readonly id: Uint8Array;
  readonly text: string;
  readonly isEvent: boolean;
}

function firstIdOf(line: Line, { digest: taskDigest }: RunTask): FirstId {
  const { eventId = "" } = line;
  const id =
    eventId === ""
      ? itemIdOf({ ...line, taskDigest, sampleIndex: 0 })
      : eventItemIdOf({ taskDigest, key: line.key, eventId });
  return { id, text: itemIdText(id), isEvent: eventId !== "" };
}

function isEvent({ eventId = "" }: Line): boolean {
  return eventId !== "";
}

/** The first event that was submitted before, or comes earlier in the batch, with another payload. Throws store_corrupt. */
async function findReused(
  store: Store,
  lines: readonly Line[],
  firsts: readonly FirstId[],
  contents: ReadonlyMap<string, Content>,
): Promise<{ readonly key: string; readonly event: string } | undefined> {
  const payloads = new Map<string, Uint8Array>();
  for (const [at, line] of lines.entries()) {
    const { eventId = "", key, payload } = line;
    const first = firsts[at];
    if (eventId === "" || first === undefined) continue;
    const place = contents.get(first.text)?.index?.place;
    const before =
      payloads.get(first.text) ?? (place === undefined ? undefined : await payloadAt(store, place));
    if (before !== undefined && Buffer.compare(before, payload) !== 0) return { key, event: eventId };
    payloads.set(first.text, payload);
  }
  return undefined;
}

async function payloadAt(store: Store, place: Place): Promise<Uint8Array> {
  const key = `${ITEMS_PREFIX}${place}`;
  const item = await readRecord(store, key, itemRecord);
  return (item ?? corrupt(store, key, "an item that is found by its id is missing")).payload;
}

interface Known {
  /** The answer to this batch, when it was taken before. */
  readonly answer: SubmissionAnswer | undefined;
  /** The batch before it was not taken. */
  readonly isGap: boolean;
  readonly indexes: Indexes;
}

/** All that the ledger has of a batch, in one reading: it waits for none of the others. */
async function readKnown(
  store: Store,
  { submission, batchNumber }: Lines,
  firsts: readonly FirstId[],
): Promise<Known> {
  const answerKey = submissionKey(submission, batchNumber);
  const batchKeys = batchNumber > 1 ? [answerKey, submissionKey(submission, batchNumber - 1)] : [answerKey];
  const indexKeys = indexKeysOf(firsts.map(({ text }) => text));
  const values = await store.getMany([...batchKeys, ...indexKeys]);
  const [value] = values;
  return {
    answer: value && recordOf(store, { key: answerKey, value }, submissionRecord),
    isGap: batchNumber > 1 && values[1] === undefined,
    indexes: indexesOf(store, indexKeys, values.slice(batchKeys.length)),
  };
}

/** Every distinct content of the batch, by the text of its id. */
function contentsOf(submission: string, firsts: readonly FirstId[], indexes: Indexes): Map<string, Content> {
  return new Map(
    firsts.map(({ id, text, isEvent }): [string, Content] => {
      const index = indexes.get(text);
      if (isEvent) return [text, { id, index, count: 0, isEvent }];
      const count = index?.counts.find((counted) => counted.submission === submission)?.count ?? 0;
      return [text, { id, index, count, isEvent }];
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
    const before = content.count++;
    // An event is one item, however often it comes.
    if (isEvent(line)) return { ...line, id: first.id, content, sampleIndex: 0, isRepeated: before > 0 };
    const id = before === 0 ? first.id : itemIdOf({ ...line, taskDigest, sampleIndex: before });
    return { ...line, id, content, sampleIndex: before, isRepeated: false };
  });
}

/** Submissions whose counts of one line are kept: so many may run at once over the same lines. */
const COUNTS_MAX = 8;

function withCount({ place, counts }: ItemIndexRecord, count: LineCount): ItemIndexRecord {
  const others = counts.filter(({ submission }) => submission !== count.submission);
  return { place, counts: [count, ...others].slice(0, COUNTS_MAX) };
}

/** The index rows that there are, by the text of the id. */
type Indexes = ReadonlyMap<string, ItemIndexRecord>;

async function readIndexes(store: Store, ids: readonly Uint8Array[]): Promise<Indexes> {
  if (ids.length === 0) return new Map();
  const keys = indexKeysOf(ids.map(itemIdText));
  return indexesOf(store, keys, await store.getMany(keys));
}

function indexKeysOf(texts: readonly string[]): readonly string[] {
  return [...new Set(texts)].map((text) => `${ITEM_INDEX_PREFIX}${text}`);
}

function indexesOf(
  store: Store,
  keys: readonly string[],
  values: readonly (Uint8Array | undefined)[],
): Indexes {
  const found = keys.flatMap((key, at): [string, ItemIndexRecord][] => {
    const value = values[at];
    if (value === undefined) return [];
    return [[key.slice(ITEM_INDEX_PREFIX.length), recordOf(store, { key, value }, itemIndexRecord)]];
  });
  return new Map(found);
}
