// Items into a run, in batches of a bounded number of bytes, with the names that the input gives to them. Each batch is on stable storage
// when its answer comes; a batch whose answer was lost is sent again by the transport and taken once.
import { createHash } from "node:crypto";
import type { MessageInitShape } from "@bufbuild/protobuf";
import { createClient } from "@connectrpc/connect";
import type { Transport } from "@connectrpc/connect";
import { describeError, failure, RolloutError } from "../base/errors.ts";
import type { StoreId } from "../base/ids.ts";
import { newUlid, ulidToBytes } from "../base/ids.ts";
import { LIMITS } from "../config/limits.ts";
import type { Task } from "../config/task.ts";
import type { Clock } from "../base/clock.ts";
import type { Random } from "../base/random.ts";
import { OperatorService } from "../gen/rollout/v1/run_pb.ts";
import type { NewItemSchema } from "../gen/rollout/v1/run_pb.ts";
import { eventNames, givenNames, namesIn } from "./item-fields.ts";
import type { ItemNames, Named } from "./item-fields.ts";

export interface Submitted {
  readonly added: number;
  readonly known: number;
  /** Lines, among both, that are equal to one before them. */
  readonly duplicates: number;
}

export interface SubmitOptions {
  /** The task that is run. A run is of one task: the first that is submitted to it. */
  readonly task: Task;
  readonly priority: number;
  /** Add to a run that was sealed, if there is anything new; it is open again then. */
  readonly reopen?: boolean;
  /** Only count what would become of the lines: nothing is submitted. */
  readonly dryRun?: boolean;
  readonly clock: Clock;
  readonly random: Random;
  /** Told after each batch. */
  readonly onProgress?: (soFar: Submitted) => void;
}

const BATCH_ITEMS = 2_000;
const BATCH_BYTES = 1024 * 1024;
/** Fields by which an input names its items itself. */
const NAMES = ["id", "custom_id"] as const;
/** Most lines of most files have neither: they are not parsed. */
const MARKS = NAMES.map((name) => Buffer.from(`"${name}"`));
const CELLS_FIRST = 1_024;
const LOAD_MAX = 0.6;

/** An item of a key. */
interface KeyedLine extends ItemNames {
  readonly payload: Uint8Array;
}

export type Line = Uint8Array | KeyedLine;

/** Throws the transport's rows, and what `lines` throws; what was answered before stays submitted. */
export async function submitLines(
  transport: Transport,
  lines: AsyncIterable<Line>,
  { task, priority, reopen = false, dryRun = false, clock, random, onProgress }: SubmitOptions,
): Promise<Submitted> {
  const client = createClient(OperatorService, transport);
  const submissionId = ulidToBytes(newUlid<StoreId>(clock, random));
  const { plugin, digest: taskDigest, summary: taskSummary } = task;
  const about = { submissionId, taskDigest, plugin, taskSummary, reopen, dryRun };
  // Otherwise the coordinator counts, for whom a lost answer is no reason to count twice.
  const counter = dryRun ? new LineCounter() : undefined;
  let total: Submitted = { added: 0, known: 0, duplicates: 0 };
  let batchNumber = 0n;
  for await (const batch of batches(lines)) {
    batchNumber++;
    const items = batch.map((line) => itemOf(line, priority, counter));
    const { added, known, duplicates } = await client.submit({ ...about, batchNumber, items });
    total = {
      added: total.added + Number(added),
      known: total.known + Number(known),
      duplicates: total.duplicates + Number(duplicates),
    };
    onProgress?.(total);
  }
  return total;
}

function itemOf(
  line: Line,
  priority: number,
  counter: LineCounter | undefined,
): MessageInitShape<typeof NewItemSchema> {
  if (line instanceof Uint8Array) {
    const sampleIndex = counter?.count(line) ?? 0;
    return { payload: line, priority, label: labelOf(line), sampleIndex };
  }
  const { payload, key, eventId } = line;
  // An event is known by its id, however often it comes.
  const counted = eventId === "" ? counter : undefined;
  const sampleIndex = counted?.count(Buffer.concat([payload, Buffer.from(`\n${key}`)])) ?? 0;
  return { payload, key, eventId, priority, label: labelOf(payload), sampleIndex };
}

async function* batches(lines: AsyncIterable<Line>): AsyncGenerator<Line[]> {
  let batch: Line[] = [];
  let bytes = 0;
  try {
    for await (const line of lines) {
      const { length } = line instanceof Uint8Array ? line : line.payload;
      if (batch.length >= BATCH_ITEMS || (batch.length > 0 && bytes + length > BATCH_BYTES)) {
        yield batch;
        [batch, bytes] = [[], 0];
      }
      batch.push(line);
      bytes += length;
    }
  } catch (error) {
    // Items before a line that is no item are submitted all the same, as the refusal says; of those before one without its key none is.
    const isOfKey = error instanceof RolloutError && error.code === "key_invalid";
    if (batch.length > 0 && !isOfKey) yield batch;
    throw error;
  }
  if (batch.length > 0) yield batch;
}

/** Where an item has a name: in a field of it, as `ItemFields` has it, or as a function says. */
export type NameOf = string | ((item: unknown) => string | number);

/** Names of items that belong to keys. */
export interface NamesOf {
  readonly key: NameOf;
  readonly id?: NameOf | undefined;
  /** The types of actors that the items are events for; undefined when they are none. */
  readonly actorTypes?: readonly string[] | undefined;
}

/**
 * Values of a program as items: each is one line of JSON, and bytes are a line as they are. Throws input_invalid, which counts values from
 * 1, for what JSON has not and for what is too large; key_invalid for one without its key; and what `values` and functions of `names` throw.
 */
export async function* jsonItems(
  values: Iterable<unknown> | AsyncIterable<unknown>,
  itemBytesMax: number,
  names?: NamesOf,
): AsyncGenerator<Line> {
  let number = 0;
  for await (const value of values) {
    number++;
    const refuse = (reason: string): Error =>
      failure("input_invalid", { file: "the items", line: number, reason });
    const bytes = value instanceof Uint8Array ? value : jsonBytes(value, refuse);
    if (bytes.length > itemBytesMax)
      throw refuse(`it has ${bytes.length} bytes, and an item has ${itemBytesMax} at most (limits.payload)`);
    if (names === undefined) {
      yield bytes;
      continue;
    }
    const own = namedBy(names, value, bytes);
    const { actorTypes } = names;
    const named =
      actorTypes === undefined ? own : eventNames(Buffer.from(bytes).toString("utf8"), own, actorTypes);
    if ("fault" in named)
      throw failure("key_invalid", { file: "the items", line: number, reason: named.fault });
    yield { payload: bytes, ...named };
  }
}

function namedBy({ key, id }: NamesOf, value: unknown, bytes: Uint8Array): Named {
  if (typeof key === "string" && typeof id !== "function")
    return namesIn(Buffer.from(bytes).toString("utf8"), { key, eventId: id });
  const [keyed, identified] = [key, id].map((name) => name && nameBy(name, value, bytes));
  return givenNames(keyed, id === undefined ? undefined : (identified ?? null));
}

/** Undefined where the field is missing. */
function nameBy(name: NameOf, value: unknown, bytes: Uint8Array): unknown {
  if (typeof name === "function") return name(value);
  const named = namesIn(Buffer.from(bytes).toString("utf8"), { key: name });
  return "fault" in named ? undefined : named.key;
}

/** Undefined for a function, a symbol and undefined itself, which its own type does not say. */
const stringify: (value: unknown) => string | undefined = JSON.stringify;

function jsonBytes(value: unknown, refuse: (reason: string) => Error): Uint8Array {
  let text: string | undefined;
  try {
    text = stringify(value);
  } catch (error) {
    // A cycle, a BigInt, a toJSON that throws.
    throw refuse(`it is no JSON: ${describeError(error)}`);
  }
  if (text === undefined) throw refuse("JSON has no such value");
  return Buffer.from(text);
}

/**
 * The `id` or `custom_id` of a line that is a JSON object: it goes with the result. Empty when the line has none, or a longer one than is
 * kept. A number is written as it stands there.
 * @internal
 */
export function labelOf(payload: Uint8Array): string {
  const bytes = Buffer.from(payload.buffer, payload.byteOffset, payload.byteLength);
  if (!MARKS.some((mark) => bytes.includes(mark))) return "";
  const line = parseObject(bytes.toString("utf8"));
  const label = NAMES.map((name) => textOf(line?.[name])).find((text) => text !== undefined) ?? "";
  return Buffer.byteLength(label) > LIMITS.itemTextBytes ? "" : label;
}

function textOf(value: unknown): string | undefined {
  if (typeof value === "string") return value.toWellFormed();
  return value instanceof NumberText ? value.text : undefined;
}

/** 12345678901234567890 is not the number that JavaScript takes it for. */
class NumberText {
  readonly text: string;

  constructor(text: string) {
    this.text = text;
  }
}

// The third parameter is newer than the library's types.
const parse = JSON.parse as (
  text: string,
  revive: (key: string, value: unknown, context: { readonly source?: string }) => unknown,
) => unknown;

function parseObject(text: string): Readonly<Record<string, unknown>> | undefined {
  try {
    const value = parse(text, (_, inner, { source }) =>
      typeof inner === "number" ? new NumberText(source ?? String(inner)) : inner,
    );
    return typeof value === "object" && value !== null && !Array.isArray(value) ? { ...value } : undefined;
  } catch {
    return undefined;
  }
}

/**
 * How often each line has come before, in 16 bytes a line, however long lines are. Lines are known by 64 bits of their hash: of ten million,
 * two different ones are taken for equal with a chance of one in a hundred thousand. That is for saying what would happen; what happens is
 * counted by the coordinator over whole hashes.
 * @internal
 */
export class LineCounter {
  /** Hash of each cell's line; 0 is none. */
  #hashes = new BigUint64Array(CELLS_FIRST);
  #counts = new Uint32Array(CELLS_FIRST);
  #lines = 0;

  /** How many equal lines were given before this one. */
  count(line: Uint8Array): number {
    if (this.#lines >= this.#hashes.length * LOAD_MAX) this.#grow();
    const hash = createHash("sha256").update(line).digest().readBigUInt64LE();
    const at = this.#cellOf(hash === 0n ? 1n : hash);
    const before = this.#counts[at] ?? 0;
    if (before === 0) this.#lines++;
    this.#counts[at] = before + 1;
    return before;
  }

  /** Where the line is, or may be put: the first free cell behind the one that it belongs to. */
  #cellOf(hash: bigint): number {
    const mask = this.#hashes.length - 1;
    let at = Number(hash & BigInt(mask));
    while (this.#hashes[at] !== 0n && this.#hashes[at] !== hash) at = (at + 1) & mask;
    this.#hashes[at] = hash;
    return at;
  }

  #grow(): void {
    const [hashes, counts] = [this.#hashes, this.#counts];
    this.#hashes = new BigUint64Array(hashes.length * 2);
    this.#counts = new Uint32Array(counts.length * 2);
    for (const [at, hash] of hashes.entries()) {
      if (hash !== 0n) this.#counts[this.#cellOf(hash)] = counts[at] ?? 0;
    }
  }
}
