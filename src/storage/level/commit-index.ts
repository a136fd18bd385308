// The gap-free index of commits. LevelDB drops what it cannot read of its write-ahead log and opens as if nothing had
// been (docs/adr/0009). So each write carries a number of its own, whose value is the lowest number that is still kept, and the
// numbers are checked when the database is opened.
//
// Keeps true: an opened database holds every write up to its last one, and every synced one that was acknowledged; a
// hole or a lost end is reported before anything is served. Numbers older than the log reaches back are deleted; where commits are
// so small that the log holds very many, the log is emptied before it is full.
import type { FileHandle } from "node:fs/promises";
import { constants, open, readFile } from "node:fs/promises";
import { join } from "node:path";
import { crc32 } from "node:zlib";
import type { Clock } from "../../base/clock.ts";
import { describeError } from "../../base/errors.ts";
import { ifThere } from "../../base/file-system.ts";
import type { Logger } from "../../observe/log.ts";
import type { Entry } from "../store.ts";
import type { Operation } from "./level-writer.ts";

/** Below every key that the port allows, so that no scan meets it. */
const PREFIX = "\u0001commits/";
export const COMMIT_KEYS = { gte: PREFIX, lt: "\u0001commits0" } as const;

/** In the directory of the database: the number of the last synced write, as text with a checksum. */
export const WITNESS_FILE = "commits.synced";

/** The least that LevelDB's memtable takes for an entry besides key and value. */
const ENTRY_OVERHEAD_BYTES = 24;

/** Numbers that are kept, about: an open reads them all. */
const NUMBERS_MAX = 4_096;
/** Numbers that one write takes away: many would make it a slow one. */
const TRIMMED_MAX = 512;

export type IndexProblem = { readonly key: string; readonly reason: string };

interface Numbered {
  readonly number: number;
  /** Bytes that were written before it since the database was opened. */
  readonly offset: number;
}

export class CommitIndex {
  readonly #witness: FileHandle;
  readonly #log: Logger | undefined;
  readonly #clock: Clock;
  readonly #writeBufferBytes: number;
  #last: number;
  #recent: Numbered[];
  #writtenBytes = 0;
  #largestBytes = 0;
  /** Commits up to this number are in no log. */
  #emptied = 0;
  #synced = 0;
  #witnessed = 0;
  #witnessing: Promise<void> | undefined;

  private constructor(witness: FileHandle, last: number, options: IndexOptions) {
    this.#witness = witness;
    this.#log = options.log;
    this.#clock = options.clock;
    this.#writeBufferBytes = options.writeBufferBytes;
    this.#last = last;
    this.#recent = last > 0 ? [{ number: last, offset: 0 }] : [];
  }

  /** `last` is the last number of a database that passed `findIndexProblem`, 0 when it is new. */
  static async open(last: number, options: IndexOptions): Promise<CommitIndex> {
    // Made when it is missing, written in place: no flag by name says that.
    const flags = constants.O_RDWR | constants.O_CREAT;
    const witness = await open(join(options.directory, WITNESS_FILE), flags, 0o600);
    return new CommitIndex(witness, last, options);
  }

  /** The number of the last write; 0 when there was none. */
  get last(): number {
    return this.#last;
  }

  /** There are more numbers than an open is to read: it is time to empty the log. */
  get isLong(): boolean {
    return this.#recent.length > NUMBERS_MAX;
  }

  /** Everything up to this number stands in tables now. */
  noteEmptied(number: number): void {
    this.#emptied = number;
  }

  /** Adds the next number to a write, and takes away those that the log no longer holds. Returns the bytes of the write. */
  number(operations: Operation[]): number {
    const bytes = operations.reduce((sum, operation) => sum + weigh(operation), 0);
    this.#largestBytes = Math.max(this.#largestBytes, bytes);
    this.#recent.push({ number: ++this.#last, offset: this.#writtenBytes });
    this.#writtenBytes += bytes + ENTRY_OVERHEAD_BYTES;
    // LevelDB keeps two logs at most, each as large as a full memtable and one more write.
    const reach = this.#writtenBytes - 2 * (this.#writeBufferBytes + this.#largestBytes);
    const isGone = (entry: Numbered): boolean => entry.offset < reach || entry.number <= this.#emptied;
    const kept = this.#recent.findIndex((entry, at) => at === TRIMMED_MAX || !isGone(entry));
    for (const { number } of this.#recent.splice(0, kept))
      operations.push({ type: "del", key: keyOf(number) });
    operations.push(indexEntry(this.#last, this.#recent[0]?.number ?? this.#last));
    return bytes;
  }

  /** The write that was numbered last is on the disk: the witness follows soon, and off the path of the commit. */
  noteSynced(): void {
    this.#synced = this.#last;
    this.#witnessing ??= this.#writeWitness();
  }

  /** Waits for the witness. The database is closed already. */
  async close(): Promise<void> {
    await this.#witnessing;
    await this.#witness.close();
  }

  async #writeWitness(): Promise<void> {
    // The answer to the commit goes first: to hand this to a thread may cost the loop its core.
    await new Promise<void>((resolve) => this.#clock.nextTurn(resolve));
    while (this.#witnessed < this.#synced) {
      const number = this.#synced;
      try {
        await this.#witness.write(witnessText(number), 0);
      } catch (error) {
        // The witness is a lower bound: an old one only sees less.
        this.#log?.warn("cannot note the last synced commit", { err: error, reason: describeError(error) });
      }
      this.#witnessed = number;
    }
    this.#witnessing = undefined;
  }
}

export interface IndexOptions {
  readonly directory: string;
  /** LevelDB's. */
  readonly writeBufferBytes: number;
  readonly log: Logger | undefined;
  readonly clock: Clock;
}

/** The numbers that are missing from a database whose entries in `COMMIT_KEYS` are `entries`, in order. */
export async function findIndexProblem(
  entries: readonly Entry[],
  directory: string,
): Promise<IndexProblem | undefined> {
  const witnessed = await readWitness(directory);
  const last = lastNumber(entries);
  if (last < witnessed) return missing(last + 1, `commit ${witnessed} was acknowledged as synced`);
  let expected = Number(Buffer.from(entries.at(-1)?.value ?? []).toString());
  if (!Number.isSafeInteger(expected)) return { key: `commit ${last}`, reason: "its number is damaged" };
  for (const { key } of entries) {
    const number = numberOf(key);
    if (number !== expected) return missing(expected, `commit ${number} is there`);
    expected++;
  }
  return undefined;
}

/** Operations that take away all numbers but the last: when a database is opened its log is empty. */
export function trimIndex(entries: readonly Entry[]): Operation[] {
  const last = entries.at(-1);
  if (last === undefined || entries.length === 1) return [];
  const number = numberOf(last.key);
  return [...entries.map(({ key }): Operation => ({ type: "del", key })), indexEntry(number, number)];
}

/** The last number, 0 when there is none. */
export function lastNumber(entries: readonly Entry[]): number {
  const last = entries.at(-1);
  return last === undefined ? 0 : numberOf(last.key);
}

function missing(number: number, though: string): IndexProblem {
  return { key: `commit ${number}`, reason: `it is missing, and ${though}` };
}

function indexEntry(number: number, lowestKept: number): Operation {
  return { type: "put", key: keyOf(number), value: Buffer.from(String(lowestKept)) };
}

/** 0 when there is no witness, or when it is not whole: it then says nothing. */
async function readWitness(directory: string): Promise<number> {
  const text = (await ifThere(readFile(join(directory, WITNESS_FILE), "utf8"))) ?? "";
  const number = Number(text.slice(0, DIGITS));
  return Number.isSafeInteger(number) && text === witnessText(number) ? number : 0;
}

const DIGITS = 16;

function witnessText(number: number): string {
  const digits = String(number).padStart(DIGITS, "0");
  return `${digits} ${crc32(digits).toString(16).padStart(8, "0")}\n`;
}

function keyOf(number: number): string {
  return `${PREFIX}${String(number).padStart(DIGITS, "0")}`;
}

function numberOf(key: string): number {
  return Number(key.slice(PREFIX.length));
}

function weigh(operation: Operation): number {
  const value = operation.type === "put" ? operation.value.length : 0;
  return ENTRY_OVERHEAD_BYTES + operation.key.length + value;
}
