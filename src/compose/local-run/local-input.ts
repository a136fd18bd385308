// The input of a local run, looked at as a whole before anything is started: a line that is no item costs nothing then. It is
// read a second time to be submitted: what can be read once only (standard input, a pipe, a terminal) is kept in a file meanwhile.
// Keeps true: what is submitted is what was looked at, byte for byte, or the run does not get to its end.
import { createHash } from "node:crypto";
import type { Hash } from "node:crypto";
import { createReadStream, fstatSync, statSync } from "node:fs";
import { open, rm, stat } from "node:fs/promises";
import type { FileHandle } from "node:fs/promises";
import type { Clock } from "../../base/clock.ts";
import { failure, RolloutError } from "../../base/errors.ts";
import { systemReason, unwritable } from "../../base/system-reason.ts";
import { inputLines } from "../../client/input-lines.ts";
import type { InputKind, InputOptions } from "../../client/input-lines.ts";
import { announced } from "../../client/slow-input.ts";

export interface InputSource {
  /** Undefined: standard input. */
  readonly file: string | undefined;
  readonly kind: InputKind;
  readonly lineBytesMax: number;
}

export interface CheckedInput {
  /** The file that it stands in; undefined when it could be read only once. */
  readonly file: string | undefined;
  /** Reads so many of its first bytes, as often as it is called, until `close`. */
  readonly read: (bytes: number) => AsyncIterable<Uint8Array>;
  readonly close: () => Promise<void>;
  readonly options: InputOptions;
  readonly items: number;
  readonly bytes: number;
  /** SHA-256 of these bytes, hexadecimal. */
  readonly digest: string;
}

/** To whom it is said, once, that what can be read only once is waited for. */
export interface Announcer {
  readonly clock: Clock;
  readonly say: (sentence: string) => void;
}

/** An input made fit to be looked at, and how it is read again. */
type Way = Pick<CheckedInput, "file" | "read" | "close">;

const STANDARD_INPUT = "standard input";
const SPOOL_MODE = 0o600;
const CHUNK_BYTES = 64 * 1024;

/** Whether it can be read only once. A file that is not there, and a directory, are refused when they are read. */
export async function isReadOnce({ file }: InputSource): Promise<boolean> {
  if (file === undefined) return true;
  return stat(file).then(
    (found) => !found.isFile() && !found.isDirectory(),
    () => false,
  );
}

/**
 * `spoolFile` is where an input is kept that can be read only once: it has that name for a moment only, so that nothing is left of it
 * whatever ends the process. Throws input_refused or item_too_large with the line, input_unreadable or file_unwritable.
 */
export async function checkInput(
  source: InputSource,
  spoolFile: string,
  { clock, say }: Announcer,
): Promise<CheckedInput> {
  const { file, kind, lineBytesMax } = source;
  const options = { name: file ?? STANDARD_INPUT, kind, lineBytesMax };
  if (file !== undefined && !(await isReadOnce(source))) {
    // One that is replaced meanwhile is read to its end, and what is added to it is for another time.
    const opened = await open(file).catch((error: unknown) => {
      throw failure("input_unreadable", { file, reason: systemReason(error) }, error);
    });
    return checked(readable(chunksOf(opened), file), { ...wayOf(opened, file), file }, options);
  }
  const unwritable = unwritableOf(spoolFile);
  const spool = await open(spoolFile, "w+", SPOOL_MODE).catch(unwritable);
  const way = { ...wayOf(spool, options.name), file: undefined };
  const stream = file === undefined || isStandardInput(file) ? process.stdin : createReadStream(file);
  const chunks = announced<unknown>(stream, clock, () => say(`waiting for input from ${options.name}`));
  const keep = spooling(readable(chunks, options.name), spool, unwritable);
  await rm(spoolFile, { force: true }).catch(unwritable);
  return checked(keep, way, options);
}

function wayOf(kept: FileHandle, name: string): Pick<Way, "read" | "close"> {
  return { read: (bytes) => readable(chunksOf(kept, bytes), name), close: () => kept.close() };
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

async function checked(
  chunks: AsyncIterable<Uint8Array>,
  way: Way,
  options: InputOptions,
): Promise<CheckedInput> {
  const account = new Account();
  let items = 0;
  try {
    for await (const line of inputLines(account.of(chunks), options)) items += line.length > 0 ? 1 : 0;
  } catch (error) {
    await way.close();
    throw refused(error);
  }
  const { bytes } = account;
  return { ...way, options, items, bytes, digest: account.digest() };
}

/** The items of an input that was checked. Throws input_changed, behind the items, when it is not what it was then. */
export async function* itemsOf({ read, options, bytes, digest }: CheckedInput): AsyncGenerator<Uint8Array> {
  const account = new Account();
  const changed = (cause?: unknown): Error => failure("input_changed", { file: options.name }, cause);
  try {
    yield* inputLines(account.of(read(bytes)), options);
  } catch (error) {
    throw isOfLine(error) ? changed(error) : error;
  }
  if (account.bytes !== bytes || account.digest() !== digest) throw changed();
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

  /** Hexadecimal. To be called once. */
  digest(): string {
    return this.#hash.digest("hex");
  }
}

function isOfLine(error: unknown): boolean {
  return error instanceof RolloutError && ["input_invalid", "item_too_large"].includes(error.code);
}

/** Nothing stands before that line in a run that was not begun. */
function refused(error: unknown): unknown {
  if (!(error instanceof RolloutError) || error.code !== "input_invalid") return error;
  const { file = "", line = "", reason = "" } = error.params;
  return failure("input_refused", { file, line, reason }, error);
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

/** From the start of the file, to its end or for so many bytes. */
async function* chunksOf(file: FileHandle, bytes = Infinity): AsyncGenerator<Uint8Array> {
  for (let position = 0; position < bytes;) {
    const wanted = Math.min(CHUNK_BYTES, bytes - position);
    const { buffer, bytesRead } = await file.read(Buffer.alloc(wanted), 0, wanted, position);
    if (bytesRead === 0) return;
    position += bytesRead;
    yield buffer.subarray(0, bytesRead);
  }
}

function unwritableOf(file: string): (error: unknown) => never {
  return (error) => {
    throw unwritable(file, error);
  };
}
