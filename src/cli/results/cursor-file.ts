// How far a file that grows has got, in a small file beside it: where to go on reading, and how much of the files was
// written by then. It is replaced as a whole, after what it speaks of is on disk: whenever the process dies, the two agree.
// Keeps true: what somebody else has written, or has taken away from, is never touched.
import { readFile, rm, stat } from "node:fs/promises";
import { dirname, relative, resolve } from "node:path";
import { errnoOf, failure } from "../../base/errors.ts";
import { replaceFile } from "../../base/file-replacement.ts";
import { systemReason, unwritable } from "../../base/system-reason.ts";
import { checksumOf } from "./outlet.ts";
import type { Extent } from "./outlet.ts";

/** Choices that must be the same when it goes on. */
export interface Begun {
  readonly runId: string;
  readonly format: string;
  readonly order: string;
  readonly withInput: boolean;
  /** The errors file as seen from beside the output; null when failures stand among the results. */
  readonly errors: string | null;
}

export interface Progress {
  readonly cursor: string;
  readonly bytes: number;
  readonly errorsBytes: number;
  /** Results so far, failures included, and failures. */
  readonly results: number;
  readonly failures: number;
  /** CRC-32 of so many bytes of the files; undefined where 0.1 has begun them. */
  readonly checksum?: number | undefined;
  readonly errorsChecksum?: number | undefined;
  /** One that has failed, by a name that can be typed. */
  readonly failedItem?: string | undefined;
}

/** An output, as it is found. */
export interface Found {
  /** Undefined: it is to be written from the start. */
  readonly progress: Progress | undefined;
  /** One of its files that had results in it and was taken away, so that all of them are written anew. */
  readonly missing: string | undefined;
}

const VERSION = 1;
/** More takes longer to read again than somebody waits for who wants to go on: `rollout doctor` reads it. */
const COMPARED_BYTES_MAX = 256 * 1024 * 1024;

/** Where it is unless somebody says otherwise. */
export function cursorFileOf(output: string): string {
  return `${output}.cursor`;
}

/** How `file` is named in what is kept, so that it may be moved together with `output`. */
export function besideOutput(output: string, file: string): string {
  return relative(dirname(resolve(output)), resolve(file));
}

/**
 * How far `output` has got. An output that was taken away as a whole has not got anywhere: the run has it all. Throws
 * output_not_continued when it was begun otherwise, or is not what this program left. Changes nothing.
 */
export async function readCursorFile(file: string, output: string, begun: Begun): Promise<Found> {
  const refuse = (reason: string, advice: string, refused = output): never => {
    throw failure("output_not_continued", { file: refused, reason, advice });
  };
  const text = await readIfThere(file, output);
  const errors = begun.errors === null ? undefined : resolve(dirname(output), begun.errors);
  const there = await lengthOf(output);
  const errorsThere = errors === undefined ? undefined : await lengthOf(errors);
  const refuseForeign = (name: string, option: string): never =>
    refuse(FOREIGN, `choose another file with ${option}, or move ${name} away`, name);
  if (text === undefined) {
    if ((there ?? 0) > 0) refuseForeign(output, "-o");
    if (errors !== undefined && (errorsThere ?? 0) > 0) refuseForeign(errors, "--errors");
    return { progress: undefined, missing: undefined };
  }

  const record = parse(text);
  const difference = record && differenceOf(record.begun, begun);
  const { bytes = 0, errorsBytes = 0, failures = 0, results = 0 } = record?.progress ?? {};
  const anew = `remove ${output} to have it written anew`;
  if (there === undefined && (record === undefined || difference !== undefined || bytes > 0)) {
    const isOurs = record?.begun.errors === begun.errors && (errorsThere ?? 0) >= errorsBytes;
    if (errors !== undefined && (errorsThere ?? 0) > 0 && !isOurs) refuseForeign(errors, "--errors");
    return { progress: undefined, missing: results > 0 ? output : undefined };
  }
  if (record === undefined) return refuse(`${file} is damaged`, anew);
  if (difference !== undefined) refuse(difference, `choose another output with -o, or ${anew}`);
  if ((there ?? 0) < bytes) refuse(SHORTER, anew);
  const refuseChanged = async (name: string, written: Extent): Promise<void> => {
    if (written.bytes <= COMPARED_BYTES_MAX && (await stateOf(name, written)) === "changed")
      refuse(CHANGED, `restore it, or remove ${name} to have it written anew; nothing is run again`, name);
  };
  await refuseChanged(output, extentOf(record.progress));
  if (errors === undefined || (errorsThere ?? 0) >= errorsBytes) {
    if (errors !== undefined) await refuseChanged(errors, errorsExtentOf(record.progress));
    return { progress: record.progress, missing: undefined };
  }
  if (errorsThere !== undefined) refuse(SHORTER, `remove ${errors} to have it written anew`, errors);
  // One in which nothing stood but the format's first lines is no loss.
  if (failures === 0)
    return { progress: { ...record.progress, errorsBytes: 0, errorsChecksum: 0 }, missing: undefined };
  return { progress: undefined, missing: errors };
}

/** How far it got, whatever it was begun as; undefined where nothing says so. */
export async function readProgress(file: string): Promise<Progress | undefined> {
  return parse(await readFile(file, "utf8").catch(() => ""))?.progress;
}

/** The files that it speaks of in which something stands. None where 0.1 has begun them. */
export async function filledFilesOf(cursorFile: string): Promise<string[]> {
  const record = parse(await readFile(cursorFile, "utf8").catch(() => ""));
  if (record?.output === undefined) return [];
  const output = resolve(dirname(cursorFile), record.output);
  const { errors } = record.begun;
  const files = errors === null ? [output] : [output, resolve(dirname(output), errors)];
  const lengths = await Promise.all(files.map(lengthOf));
  return files.filter((_, at) => (lengths[at] ?? 0) > 0);
}

/** Takes away the record of files in which no result stands, and their first lines: they are free for another run. */
export async function dropEmptyResults(cursorFile: string): Promise<void> {
  const record = parse(await readFile(cursorFile, "utf8").catch(() => ""));
  if (record?.output !== undefined && record.progress.results === 0) {
    const { begun, progress } = record;
    const output = resolve(dirname(cursorFile), record.output);
    if ((await lengthOf(output)) === progress.bytes) await rm(output, { force: true });
    const errors = begun.errors === null ? undefined : resolve(dirname(output), begun.errors);
    if (errors !== undefined && (await lengthOf(errors)) === progress.errorsBytes)
      await rm(errors, { force: true });
  }
  await removeCursorFile(cursorFile);
}

/** The files of results and errors, read whole and compared with what the cursor recorded of them. */
export interface Compared {
  readonly results: number;
  readonly files: readonly {
    readonly file: string;
    /** `unknown`: 0.1 has begun it, or it cannot be read. */
    readonly state: "as-written" | "changed" | "gone" | "unknown";
  }[];
}

/** Undefined where there is no such record, or none that says where the results are. Changes nothing. */
export async function compareWithCursorFile(cursorFile: string): Promise<Compared | undefined> {
  const record = parse(await readFile(cursorFile, "utf8").catch(() => ""));
  if (record?.output === undefined) return undefined;
  const { begun, progress } = record;
  const output = resolve(dirname(cursorFile), record.output);
  const files = [{ file: output, written: extentOf(progress) }];
  // One without a failure in it is removed at the end.
  if (begun.errors !== null && progress.failures > 0)
    files.push({ file: resolve(dirname(output), begun.errors), written: errorsExtentOf(progress) });
  const compared = files.map(async ({ file, written }) => ({ file, state: await stateOf(file, written) }));
  return { results: progress.results, files: await Promise.all(compared) };
}

async function stateOf(
  file: string,
  { bytes, checksum }: Extent,
): Promise<Compared["files"][number]["state"]> {
  const there = await lengthOf(file);
  if (there === undefined) return bytes > 0 ? "gone" : "as-written";
  if (there < bytes) return "changed";
  if (checksum === undefined) return "unknown";
  return checksumOf(file, bytes).then(
    (found) => (found === checksum ? "as-written" : "changed"),
    () => "unknown",
  );
}

/** Throws file_unwritable and output_unwritten; the file is then the one that it was. */
export async function writeCursorFile(
  file: string,
  output: string,
  begun: Begun,
  progress: Progress,
): Promise<void> {
  const record = { version: VERSION, output: besideOutput(file, output), begun, progress };
  const how = { temporary: `${file}.partial`, synced: "content" } as const;
  await replaceFile(file, `${JSON.stringify(record)}\n`, how).catch((error: unknown) => {
    throw unwritable(file, error);
  });
}

export async function removeCursorFile(file: string): Promise<void> {
  await rm(file, { force: true });
}

const FOREIGN = "it has lines that this run did not write";
const SHORTER = "it is shorter than what was written to it";
const CHANGED = "it has other bytes than what was written to it";

export function extentOf({ bytes, checksum }: Progress): Extent {
  return { bytes, checksum };
}

export function errorsExtentOf({ errorsBytes: bytes, errorsChecksum: checksum }: Progress): Extent {
  return { bytes, checksum };
}

async function readIfThere(file: string, output: string): Promise<string | undefined> {
  return readFile(file, "utf8").catch((error: unknown) => {
    if (errnoOf(error) === "ENOENT") return undefined;
    const reason = `${file} cannot be read: ${systemReason(error)}`;
    throw failure("output_not_continued", { file: output, reason, advice: "make it readable" }, error);
  });
}

/** Undefined when it is not there; what is no file has no length either. */
async function lengthOf(file: string): Promise<number | undefined> {
  return stat(file).then(
    (found) => (found.isFile() ? found.size : 0),
    (error: unknown) => (errnoOf(error) === "ENOENT" ? undefined : 0),
  );
}

const WORDS: Readonly<Record<keyof Begun, string>> = {
  runId: "run",
  format: "format",
  order: "order",
  withInput: "inputs",
  errors: "errors file",
};

function differenceOf(found: Begun, wanted: Begun): string | undefined {
  for (const name of Object.keys(WORDS) as (keyof Begun)[]) {
    if (found[name] === wanted[name]) continue;
    return `it was begun with ${WORDS[name]} ${shown(found[name])}, and this is ${shown(wanted[name])}`;
  }
  return undefined;
}

function shown(value: string | boolean | null): string {
  if (typeof value === "boolean") return value ? "with" : "without";
  return value ?? "none";
}

interface Kept {
  readonly begun: Begun;
  readonly progress: Progress;
  /** As seen from beside the record; undefined where 0.1 wrote it. */
  readonly output: string | undefined;
}

function parse(text: string): Kept | undefined {
  let value: unknown;
  try {
    value = JSON.parse(text);
  } catch {
    return undefined;
  }
  const at = (object: unknown, name: string): unknown =>
    typeof object === "object" && object !== null
      ? Object.getOwnPropertyDescriptor(object, name)?.value
      : undefined;
  const [begun, progress] = [at(value, "begun"), at(value, "progress")];
  const numbers = ["bytes", "errorsBytes", "results", "failures"].map((name) => at(progress, name));
  const isWhole =
    at(value, "version") === VERSION &&
    typeof at(progress, "cursor") === "string" &&
    numbers.every((number) => Number.isSafeInteger(number)) &&
    ["string", "undefined"].includes(typeof at(progress, "failedItem")) &&
    ["checksum", "errorsChecksum"].every((name) =>
      ["number", "undefined"].includes(typeof at(progress, name)),
    ) &&
    Object.keys(WORDS).every((name) => at(begun, name) !== undefined);
  const output = at(value, "output");
  if (!isWhole) return undefined;
  return {
    ...{ begun: begun as Begun, progress: progress as Progress },
    output: typeof output === "string" ? output : undefined,
  };
}
