// The input of a local run, looked at as a whole before anything is started: a line that is no item costs nothing then. Standard
// input is kept in a file meanwhile, because it can be read once and is needed twice.
import { createHash } from "node:crypto";
import { createReadStream } from "node:fs";
import { open, rm } from "node:fs/promises";
import type { FileHandle } from "node:fs/promises";
import { failure, RolloutError } from "../../base/errors.ts";
import { systemReason } from "../../base/system-reason.ts";
import { inputLines } from "../../client/input-lines.ts";
import type { InputKind, InputOptions } from "../../client/input-lines.ts";

export interface InputSource {
  /** Undefined: standard input. */
  readonly file: string | undefined;
  readonly kind: InputKind;
  readonly lineBytesMax: number;
}

export interface CheckedInput {
  /** Reads it all, as often as it is called, until `close`. */
  readonly read: () => AsyncIterable<Uint8Array>;
  readonly close: () => Promise<void>;
  readonly options: InputOptions;
  readonly items: number;
  /** SHA-256 of it all, hexadecimal. */
  readonly digest: string;
}

const STANDARD_INPUT = "standard input";
const SPOOL_MODE = 0o600;
const CHUNK_BYTES = 64 * 1024;

/**
 * `spoolFile` is where standard input is kept: it has that name for a moment only, so that nothing is left of it whatever ends
 * the process. Throws input_refused or item_too_large with the line, input_unreadable or file_unwritable.
 */
export async function checkInput(source: InputSource, spoolFile: string): Promise<CheckedInput> {
  const { file, kind, lineBytesMax } = source;
  if (file !== undefined) {
    const read = (): AsyncGenerator<Uint8Array> => readable(createReadStream(file), file);
    return checked(read(), { read, close: async () => undefined }, { name: file, kind, lineBytesMax });
  }
  const unwritable = unwritableOf(spoolFile);
  const spool = await open(spoolFile, "w+", SPOOL_MODE).catch(unwritable);
  try {
    await rm(spoolFile, { force: true }).catch(unwritable);
    const read = (): AsyncGenerator<Uint8Array> => readable(spooledChunks(spool), STANDARD_INPUT);
    const options = { name: STANDARD_INPUT, kind, lineBytesMax };
    const keep = spooling(process.stdin, spool, unwritable);
    return await checked(keep, { read, close: () => spool.close() }, options);
  } catch (error) {
    await spool.close();
    throw error;
  }
}

async function checked(
  chunks: AsyncIterable<Uint8Array>,
  way: Pick<CheckedInput, "read" | "close">,
  options: InputOptions,
): Promise<CheckedInput> {
  const hash = createHash("sha256");
  let items = 0;
  try {
    for await (const line of inputLines(hashed(chunks, hash), options)) items += line.length > 0 ? 1 : 0;
  } catch (error) {
    throw refused(error);
  }
  return { ...way, options, items, digest: hash.digest("hex") };
}

/** The items of an input that was checked. */
export function itemsOf({ read, options }: CheckedInput): AsyncGenerator<Uint8Array> {
  return inputLines(read(), options);
}

/** Nothing stands before that line in a run that was not begun. */
function refused(error: unknown): unknown {
  if (!(error instanceof RolloutError) || error.code !== "input_invalid") return error;
  const { file = "", line = "", reason = "" } = error.params;
  return failure("input_refused", { file, line, reason }, error);
}

async function* hashed(
  chunks: AsyncIterable<Uint8Array>,
  hash: { update(bytes: Uint8Array): unknown },
): AsyncGenerator<Uint8Array> {
  for await (const chunk of chunks) {
    hash.update(chunk);
    yield chunk;
  }
}

async function* readable(stream: AsyncIterable<unknown>, file: string): AsyncGenerator<Uint8Array> {
  try {
    for await (const chunk of stream) yield chunk as Uint8Array;
  } catch (error) {
    throw failure("input_unreadable", { file, reason: systemReason(error) }, error);
  }
}

async function* spooling(
  stream: AsyncIterable<unknown>,
  spool: FileHandle,
  unwritable: (error: unknown) => never,
): AsyncGenerator<Uint8Array> {
  for await (const chunk of readable(stream, STANDARD_INPUT)) {
    await spool.writeFile(chunk).catch(unwritable);
    yield chunk;
  }
}

async function* spooledChunks(spool: FileHandle): AsyncGenerator<Uint8Array> {
  for (let position = 0; ;) {
    const { buffer, bytesRead } = await spool.read(Buffer.alloc(CHUNK_BYTES), 0, CHUNK_BYTES, position);
    if (bytesRead === 0) return;
    position += bytesRead;
    yield buffer.subarray(0, bytesRead);
  }
}

function unwritableOf(file: string): (error: unknown) => never {
  return (error) => {
    throw failure("file_unwritable", { file, reason: systemReason(error) }, error);
  };
}
