// The input of a local run. A file is read once, and checked line by line on its way into the run: only its beginning is looked at before
// anything is started, so that a wrong file costs nothing and a large one no time. An input that can be read once only (standard input, a pipe,
// a terminal) is kept in a file until it has ended, and looked at as a whole meanwhile.
// Keeps true: submitted lines are those that stood in the file when it was opened, byte for byte, or the run does not get to its end.
import { createHash } from "node:crypto";
import type { Hash } from "node:crypto";
import type { Stats } from "node:fs";
import { createReadStream, fstatSync, statSync } from "node:fs";
import { open, realpath, rm, stat } from "node:fs/promises";
import type { FileHandle } from "node:fs/promises";
import { resolve } from "node:path";
import type { Clock } from "../../base/clock.ts";
import { failure, RolloutError } from "../../base/errors.ts";
import { asUnwritable, systemReason } from "../../base/system-reason.ts";
import { inputLines } from "../../client/input-lines.ts";
import type { InputKind, InputOptions } from "../../client/input-lines.ts";
import type { ItemFields } from "../../client/item-fields.ts";
import { announced } from "../../client/slow-input.ts";

export interface InputSource {
  /** Undefined: standard input. */
  readonly file: string | undefined;
  readonly kind: InputKind;
  readonly lineBytesMax: number;
  /** Where each line has its key. */
  readonly fields?: ItemFields | undefined;
  /** The types of actors that its lines are events for; undefined when they are none. */
  readonly actorTypes?: readonly string[] | undefined;
}

/** To whom it is said, once, that what can be read only once is waited for. */
export interface Announcer {
  readonly clock: Clock;
  readonly say: (sentence: string) => void;
}

const STANDARD_INPUT = "standard input";
const SPOOL_MODE = 0o600;
const CHUNK_BYTES = 64 * 1024;
/** For one that is read and not kept. */
const DIGEST_CHUNK_BYTES = 1024 * 1024;
const NEWLINE = 0x0a;

/** Whether it can be read only once. A file that is not there, and a directory, are refused when they are read. */
export async function isReadOnce({ file }: InputSource): Promise<boolean> {
  if (file === undefined) return true;
  const found = await stat(file).catch(() => undefined);
  return found !== undefined && !found.isFile() && !found.isDirectory();
}

/**
 * `spoolFile` is where an input is kept that can be read only once: it has that name for a moment only, so that nothing is left of it
 * whatever ends the process. Throws input_refused or item_too_large with the line, input_unreadable or file_unwritable.
 */
export async function openInput(
  source: InputSource,
  spoolFile: string,
  announcer: Announcer,
): Promise<LocalInput> {
  const { file, kind, lineBytesMax, fields, actorTypes } = source;
  const options = { name: file ?? STANDARD_INPUT, kind, lineBytesMax, fields, actorTypes };
  const input =
    file === undefined || (await isReadOnce(source))
      ? await spooled(file, spoolFile, options, announcer)
      : await opened(file, options);
  try {
    await input.lookAtBeginning();
    return input;
  } catch (error) {
    await input.close();
    throw refused(error);
  }
}

async function opened(file: string, options: InputOptions): Promise<LocalInput> {
  const unreadable = (error: unknown): never => {
    throw failure("input_unreadable", { file, reason: systemReason(error) }, error);
  };
  const handle = await open(file).catch(unreadable);
  const found = await handle.stat();
  const place = await realpath(file).catch(() => resolve(file));
  // Lines that are added from now on are for another time; of some files the system does not tell how long they are.
  const bytes = found.size === 0 ? Infinity : found.size;
  const known = `file ${place}`;
  return new LocalInput({ handle, options, file, bytes, found, known });
}

async function spooled(
  file: string | undefined,
  spoolFile: string,
  options: InputOptions,
  { clock, say }: Announcer,
): Promise<LocalInput> {
  const unwritable = asUnwritable(spoolFile);
  const handle = await open(spoolFile, "w+", SPOOL_MODE).catch(unwritable);
  const stream = file === undefined || isStandardInput(file) ? process.stdin : createReadStream(file);
  const chunks = announced<unknown>(stream, clock, () => say(`waiting for input from ${options.name}`));
  const account = new Account();
  const keep = spooling(account.of(readable(chunks, options.name)), handle, unwritable);
  try {
    await rm(spoolFile, { force: true }).catch(unwritable);
    await passed(inputLines(keep, options));
  } catch (error) {
    await handle.close();
    throw refused(error);
  }
  const { bytes } = account;
  const known = `content ${account.digest()}`;
  return new LocalInput({ handle, options, file: undefined, bytes, found: await handle.stat(), known });
}

interface OpenedInput {
  readonly handle: FileHandle;
  readonly options: InputOptions;
  /** The file that it stands in; undefined when it could be read only once. */
  readonly file: string | undefined;
  /** As many of its first bytes are read. */
  readonly bytes: number;
  /** As it was when it was opened. */
  readonly found: Stats;
  /** A file by its place, so that it may be edited; what can be read only once by what it has. */
  readonly known: string;
}

export class LocalInput {
  readonly #opened: OpenedInput;
  readonly #account = new Account();
  #beginning: Uint8Array = new Uint8Array();
  /** In its beginning. */
  #itemsFirst = 0;
  #items = 0;
  #digest: string | undefined;

  constructor(from: OpenedInput) {
    this.#opened = from;
  }

  get file(): string | undefined {
    return this.#opened.file;
  }

  /** By what a run of it is known where nothing else names the run. */
  get known(): string {
    return this.#opened.known;
  }

  /** Equal for two commands that read the same file as it was then, or the same content. */
  get identity(): string {
    const { known, file, found } = this.#opened;
    return file === undefined ? known : `${known} ${found.size} ${found.mtimeMs}`;
  }

  /** Items and SHA-256, hexadecimal, of all that was read; undefined until `lines` has ended. */
  get read(): { readonly items: number; readonly digest: string } | undefined {
    return this.#digest === undefined ? undefined : { items: this.#items, digest: this.#digest };
  }

  /** Items that it has, estimated by its length until all were read. */
  get expected(): number {
    const { bytes } = this.#opened;
    if (this.#digest !== undefined || bytes === Infinity) return this.#items;
    const isBegun = this.#account.bytes > 0;
    const [items, of] = isBegun
      ? [this.#items, this.#account.bytes]
      : [this.#itemsFirst, this.#beginning.length];
    return of === 0 ? 0 : Math.round((items * bytes) / of);
  }

  /** SHA-256 of it as it is, hexadecimal. */
  async digest(): Promise<string> {
    const { options, bytes } = this.#opened;
    return this.#digestOf(bytes, options.name);
  }

  /** Throws input_invalid or item_too_large for a line near the start. */
  async lookAtBeginning(): Promise<void> {
    const { handle, options, bytes } = this.#opened;
    for await (const chunk of readable(chunksOf(handle, 0, Math.min(bytes, CHUNK_BYTES)), options.name))
      this.#beginning = Buffer.concat([this.#beginning, chunk]);
    const isAll = this.#beginning.length < CHUNK_BYTES;
    const whole = isAll ? this.#beginning.length : this.#beginning.lastIndexOf(NEWLINE) + 1;
    this.#itemsFirst = await passed(inputLines(only(this.#beginning.subarray(0, whole)), options));
  }

  /**
   * The items, once, each checked as it comes. Throws input_invalid or item_too_large behind the items before that line; input_unreadable; and
   * input_changed, behind the items, for a file that is not any more what it was.
   */
  async *lines(): AsyncGenerator<Uint8Array> {
    const { options } = this.#opened;
    const account = this.#account;
    try {
      for await (const line of inputLines(account.of(this.#chunks()), options)) {
        this.#items++;
        yield line;
      }
    } catch (error) {
      if (isOfLine(error)) await this.#refuseChanged();
      throw error;
    }
    await this.#refuseChanged();
    this.#digest = account.digest();
  }

  /** Idempotent. */
  close(): Promise<void> {
    return this.#opened.handle.close();
  }

  async *#chunks(): AsyncGenerator<Uint8Array> {
    const { handle, options, bytes } = this.#opened;
    yield this.#beginning;
    yield* readable(chunksOf(handle, this.#beginning.length, bytes), options.name);
  }

  /** Lines that were added meanwhile are no change of what was read. */
  async #refuseChanged(): Promise<void> {
    const { handle, options, found, bytes } = this.#opened;
    const account = this.#account;
    const now = await handle.stat();
    if (this.file === undefined || (now.mtimeMs === found.mtimeMs && now.size === found.size)) return;
    if (bytes !== Infinity && now.size < bytes) throw this.#changed();
    if ((await this.#digestOf(account.bytes, options.name)) !== account.digest()) throw this.#changed();
  }

  async #digestOf(bytes: number, name: string): Promise<string> {
    const account = new Account();
    await passed(account.of(readable(chunksOf(this.#opened.handle, 0, bytes, DIGEST_CHUNK_BYTES), name)));
    return account.digest();
  }

  #changed(): Error {
    return failure("input_changed", { file: this.#opened.options.name });
  }
}

/** By whatever name. A socket cannot be opened a second time by any. */
function isStandardInput(file: string): boolean {
  try {
    const [found, own] = [statSync(file), fstatSync(0)];
    return found.dev === own.dev && found.ino === own.ino;
  } catch {
    return false;
  }
}

/** An account of the bytes that have passed. */
class Account {
  readonly #hash: Hash = createHash("sha256");
  bytes = 0;

  async *of(chunks: AsyncIterable<Uint8Array>): AsyncGenerator<Uint8Array> {
    for await (const chunk of chunks) {
      this.#hash.update(chunk);
      this.bytes += chunk.length;
      yield chunk;
    }
  }

  /** Hexadecimal, of what has passed so far. */
  digest(): string {
    return this.#hash.copy().digest("hex");
  }
}

export function isOfLine(error: unknown): error is RolloutError {
  return (
    error instanceof RolloutError && ["input_invalid", "key_invalid", "item_too_large"].includes(error.code)
  );
}

/** Nothing stands before that line in a run that was not begun. */
function refused(error: unknown): unknown {
  if (!(error instanceof RolloutError) || error.code !== "input_invalid") return error;
  const { file = "", line = "", reason = "" } = error.params;
  return failure("input_refused", { file, line, reason }, error);
}

/** How many there are. Throws what comes before their end. */
async function passed(all: AsyncIterator<unknown>): Promise<number> {
  let count = 0;
  while ((await all.next()).done !== true) count++;
  return count;
}

async function* only(chunk: Uint8Array): AsyncGenerator<Uint8Array> {
  yield chunk;
}

async function* readable(stream: AsyncIterable<unknown>, file: string): AsyncGenerator<Uint8Array> {
  try {
    for await (const chunk of stream) yield chunk as Uint8Array;
  } catch (error) {
    throw failure("input_unreadable", { file, reason: systemReason(error) }, error);
  }
}

async function* spooling(
  chunks: AsyncIterable<Uint8Array>,
  spool: FileHandle,
  unwritable: (error: unknown) => never,
): AsyncGenerator<Uint8Array> {
  for await (const chunk of chunks) {
    await spool.writeFile(chunk).catch(unwritable);
    yield chunk;
  }
}

/** From one position of the file to another, or to its end. */
async function* chunksOf(
  file: FileHandle,
  from: number,
  to: number,
  chunkBytes = CHUNK_BYTES,
): AsyncGenerator<Uint8Array> {
  for (let position = from; position < to;) {
    const wanted = Math.min(chunkBytes, to - position);
    const { buffer, bytesRead } = await file.read(Buffer.allocUnsafeSlow(wanted), 0, wanted, position);
    if (bytesRead === 0) return;
    position += bytesRead;
    yield buffer.subarray(0, bytesRead);
  }
}
