// Where lines of results go: a file that is replaced as a whole, a file that grows, or something that only takes them
// (standard output, a pipe, a device). Lines are given whole, many at a time.
//
// Keeps true: under the name of a file that is replaced stands the old one or the whole new one. A file that grows has
// on disk at least what `sync` has told of; what a crash leaves behind that is cut off when it is opened again.
import { createReadStream } from "node:fs";
import { open, readdir, readlink, realpath, rm, stat } from "node:fs/promises";
import type { FileHandle } from "node:fs/promises";
import { basename, dirname, join, resolve } from "node:path";
import { crc32 } from "node:zlib";
import { errnoOf, failure } from "../../base/errors.ts";
import { placeFile, syncDirectory } from "../../base/file-system.ts";
import { acceptsSignals } from "../../base/process-table.ts";
import { systemReason, asUnwritable } from "../../base/system-reason.ts";
import { shownOn } from "../../base/safe-text.ts";

/** `reader-gone`: nobody will ever read what is written; nothing is wrong with it. */
export type Appended = "written" | "reader-gone";

export interface Outlet {
  append(lines: string): Promise<Appended>;
  /** Resolves, with the extent of all that was appended, when that is on disk; undefined: nothing is kept there. */
  sync(): Promise<Extent | undefined>;
  /** The name of a file that grows, when somebody else has taken it away, changed its length or put another one in its place. */
  lostFile?(): Promise<string | undefined>;
  /** Everything was appended. */
  finish(): Promise<void>;
  /** Nothing more comes. Lines that were synced stay, unless the file was to be replaced. */
  abandon(): Promise<void>;
}

/** How much of a file was written, and what: bytes from its start, and their CRC-32 where it was counted from the first one on. */
export interface Extent {
  readonly bytes: number;
  readonly checksum: number | undefined;
}

/** The extent of a file in which nothing stands. */
export const EMPTY: Extent = { bytes: 0, checksum: 0 };

/** A chain of more is a circle. */
const LINKS_MAX = 40;
const READ_BYTES = 1024 * 1024;

/** Bytes at a position of a file. Throws output_unwritten. */
class FileEnd {
  readonly #file: string;
  readonly handle: FileHandle;
  length: number;
  #checksum: number | undefined;
  /** Somebody else has changed its length: there is a hole in it now, or more than was written. */
  isTorn = false;

  constructor(file: string, handle: FileHandle, { bytes, checksum }: Extent) {
    this.#file = file;
    this.handle = handle;
    this.length = bytes;
    this.#checksum = checksum;
  }

  get extent(): Extent {
    return { bytes: this.length, checksum: this.#checksum };
  }

  async append(lines: string): Promise<void> {
    const bytes = Buffer.from(lines);
    let written = 0;
    await this.attempt(async () => {
      this.isTorn ||= (await this.handle.stat()).size !== this.length;
      while (written < bytes.length) {
        const left = bytes.length - written;
        written += (await this.handle.write(bytes, written, left, this.length + written)).bytesWritten;
      }
    });
    this.length += bytes.length;
    if (this.#checksum !== undefined) this.#checksum = crc32(bytes, this.#checksum);
  }

  async attempt(work: () => Promise<unknown>): Promise<void> {
    await work().catch((error: unknown) => {
      throw unwritten(this.#file, error);
    });
  }
}

/** Removes what killed processes have left of their attempts at this file. */
async function removeLeftBehind(target: string): Promise<void> {
  const directory = dirname(target);
  const names = await readdir(directory).catch(() => []);
  const prefix = `.${basename(target)}.`;
  for (const name of names) {
    const pid = name.startsWith(prefix) ? /^(\d+)\.partial$/.exec(name.slice(prefix.length))?.[1] : undefined;
    if (pid !== undefined && !acceptsSignals(Number(pid))) await rm(join(directory, name), { force: true });
  }
}

/** Throws file_unwritable, and output_unwritten later. */
export async function replaceFile(file: string): Promise<Outlet> {
  const target = await realpath(file).catch(() => file);
  // A name of its own: two that write one file at once each make a whole one, and the later one stays.
  const partial = join(dirname(target), `.${basename(target)}.${process.pid}.partial`);
  await removeLeftBehind(target);
  const end = new FileEnd(file, await openFile(partial, "w", file), EMPTY);
  return {
    append: async (lines) => {
      await end.append(lines);
      return "written";
    },
    sync: async () => undefined,
    finish: async () => {
      await end.attempt(() => end.handle.sync());
      await end.handle.close();
      await placeFile(partial, target).catch(asUnwritable(file));
    },
    abandon: async () => {
      await end.handle.close().catch(() => undefined);
      await rm(partial, { force: true });
    },
  };
}

/** Cuts the file to what was written to it, which it has to have at least, and goes on behind. Throws file_unwritable. */
export async function growFile(file: string, written: Extent): Promise<Outlet> {
  const { bytes: length } = written;
  const end = new FileEnd(file, await openFile(file, length === 0 ? "w" : "r+", file), written);
  await end.attempt(() => end.handle.truncate(length));
  if (length === 0) await syncDirectory(dirname(file));
  let synced = length;
  return {
    append: async (lines) => {
      await end.append(lines);
      return "written";
    },
    sync: async () => {
      if (end.length !== synced) await end.attempt(() => end.handle.datasync());
      synced = end.length;
      return end.extent;
    },
    lostFile: async () => {
      const { size, dev, ino } = await end.handle.stat({ bigint: true });
      if (end.isTorn || Number(size) !== end.length) return file;
      return size === 0n || (await identityOf(file)) === `${dev}:${ino}` ? undefined : file;
    },
    finish: () => end.handle.close(),
    abandon: async () => {
      // The next start would do it too; until then nobody reads half a line.
      await end.handle.truncate(synced).catch(() => undefined);
      await end.handle.close().catch(() => undefined);
    },
  };
}

/** Something that is there and no file: a pipe with a name, a device. Throws file_unwritable. */
export async function streamTo(file: string): Promise<Outlet> {
  const handle = await openFile(file, "w", file);
  const close = (): Promise<void> => handle.close().catch(() => undefined);
  return {
    append: async (lines) => {
      try {
        await handle.writeFile(lines);
        return "written";
      } catch (error) {
        if (errnoOf(error) === "EPIPE") return "reader-gone";
        throw unwritten(file, error);
      }
    },
    sync: async () => undefined,
    finish: close,
    abandon: close,
  };
}

/** Standard output, or what stands for it. Waits for a slow reader; a terminal obeys nothing of the lines. */
export function printTo(
  stream: NodeJS.WritableStream & { readonly destroyed?: boolean; readonly isTTY?: boolean },
): Outlet {
  const write = (lines: string): Promise<Appended> =>
    new Promise((resolve, reject) => {
      const settle = (error: Error | null | undefined): void => {
        if (error === null || error === undefined) resolve("written");
        else if (errnoOf(error) === "EPIPE" || stream.destroyed === true) resolve("reader-gone");
        else reject(unwritten("standard output", error));
      };
      if (stream.destroyed === true) return resolve("reader-gone");
      try {
        stream.write(shownOn(stream, lines), settle);
      } catch (error) {
        // Where standard output is a file, it is written at once and throws at once.
        reject(unwritten("standard output", error));
      }
    });
  return {
    append: (lines) => (lines === "" ? Promise.resolve("written") : write(lines)),
    sync: () => Promise.resolve(undefined),
    finish: () => Promise.resolve(),
    abandon: () => Promise.resolve(),
  };
}

/** Whether results can be kept there: true of a file, and of a name that is free. */
export async function isFile(file: string): Promise<boolean> {
  return stat(file).then(
    (found) => found.isFile(),
    () => true,
  );
}

/** CRC-32 of so many bytes from the start of a file; undefined when it has fewer. Throws what the file system throws. */
export async function checksumOf(file: string, bytes: number): Promise<number | undefined> {
  let [checksum, left] = [0, bytes];
  if (bytes === 0) return checksum;
  for await (const chunk of createReadStream(file, { end: bytes - 1, highWaterMark: READ_BYTES })) {
    checksum = crc32(chunk as Uint8Array, checksum);
    left -= (chunk as Uint8Array).length;
  }
  return left === 0 ? checksum : undefined;
}

/** Whether both names are of one file, which need not be there yet: however they are spelled, by links of either kind. */
export async function isSameFile(one: string, other: string): Promise<boolean> {
  const [found, foundOther] = await Promise.all([one, other].map(identityOf));
  if (found !== undefined && foundOther !== undefined) return found === foundOther;
  return (await wholeName(one)) === (await wholeName(other));
}

/** Undefined when it is not there. */
async function identityOf(file: string): Promise<string | undefined> {
  return stat(file, { bigint: true }).then(
    ({ dev, ino }) => `${dev}:${ino}`,
    () => undefined,
  );
}

/** Where a link leads, also one to a file that is still to be made. */
async function wholeName(file: string, links = LINKS_MAX): Promise<string> {
  const there = await realpath(file).catch(() => undefined);
  if (there !== undefined) return there;
  const directory = await realpath(dirname(file)).catch(() => resolve(dirname(file)));
  const target = links === 0 ? undefined : await readlink(file).catch(() => undefined);
  return target === undefined
    ? join(directory, basename(file))
    : wholeName(resolve(directory, target), links - 1);
}

async function openFile(file: string, flags: "w" | "r+", named: string): Promise<FileHandle> {
  return open(file, flags).catch(asUnwritable(named));
}

function unwritten(file: string, error: unknown): Error {
  return failure("output_unwritten", { file, reason: systemReason(error) }, error);
}
