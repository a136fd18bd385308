// How far a file that grows has got, in a small file beside it, or in the record of a run's directory: where to go on reading, and how much
// of the files was written by then. It is replaced as a whole, after what it speaks of is on disk: whenever the process dies, the two agree.
// Keeps true: what somebody else has written, or has taken away from, is never touched.
import { readFile, rm, stat } from "node:fs/promises";
import { dirname, relative, resolve } from "node:path";
import { errnoOf, failure } from "../../base/errors.ts";
import { jsonFields, memberOf } from "../../base/exact-json.ts";
import { ifThere, replaceFile } from "../../base/file-system.ts";
import { systemReason, asUnwritable } from "../../base/system-reason.ts";
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
  /** Whether results of items that other items have made stand among them; they do not unless it is said. */
  readonly inside?: true;
  /** The version of the plugin whose results alone stand there; those of all do unless it is said. */
  readonly pluginVersion?: string;
}

export interface Progress {
  readonly cursor: string;
  readonly bytes: number;
  readonly errorsBytes: number;
  /** Results so far, failures included, and failures. */
  readonly results: number;
  readonly failures: number;
  /** Results of items that other items have made, and failures among them of which no actor was told; none unless said. */
  readonly inside?: number;
  readonly unheard?: number;
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

/** Where it is kept how far files have got. */
export interface CursorPlace {
  /** Files are named as seen from beside this one. */
  readonly file: string;
  /** Undefined when nothing is kept there. Rejects as the file system does. */
  readonly read: () => Promise<unknown>;
  /** On disk when it resolves. Throws file_unwritable and output_unwritten; what is kept is then what it was. */
  readonly write: (record: object) => Promise<void>;
  readonly remove: () => Promise<void>;
}

const VERSION = 1;
/** More takes longer to read again than somebody waits for who wants to go on: `rollout doctor` reads it. */
const COMPARED_BYTES_MAX = 256 * 1024 * 1024;

/** Where it is unless somebody says otherwise. */
export function cursorFileOf(output: string): string {
  return `${output}.cursor`;
}

/** A file for nothing else. */
export function cursorIn(file: string): CursorPlace {
  return {
    file,
    read: async () => {
      const text = await ifThere(readFile(file, "utf8"));
      return text === undefined ? undefined : jsonFields(text);
    },
    write: async (record) => {
      const how = { temporary: `${file}.partial`, synced: "content" } as const;
      await replaceFile(file, `${JSON.stringify(record)}\n`, how).catch(asUnwritable(file));
    },
    remove: () => rm(file, { force: true }),
  };
}

/** How `file` is named in what is kept, so that it may be moved together with `output`. */
export function besideOutput(output: string, file: string): string {
  return relative(dirname(resolve(output)), resolve(file));
}

/**
 * How far `output` has got. An output that was taken away as a whole has not got anywhere: the run has it all. Throws
 * output_not_continued when it was begun otherwise, or is not what this program left. Changes nothing.
 */
export async function findOutput(place: CursorPlace, output: string, begun: Begun): Promise<Found> {
  const refuse = (reason: string, advice: string, refused = output): never => {
    throw failure("output_not_continued", { file: refused, reason, advice });
  };
  const kept = await place.read().catch((error: unknown) => {
    const reason = `${place.file} cannot be read: ${systemReason(error)}`;
    throw failure("output_not_continued", { file: output, reason, advice: "make it readable" }, error);
  });
  const errors = begun.errors === null ? undefined : resolve(dirname(output), begun.errors);
  const there = await lengthOf(output);
  const errorsThere = errors === undefined ? undefined : await lengthOf(errors);
  const refuseForeign = (name: string, option: string): never =>
    refuse(FOREIGN, `choose another file with ${option}, or move ${name} away`, name);
  if (kept === undefined) {
    if ((there ?? 0) > 0) refuseForeign(output, "-o");
    if (errors !== undefined && (errorsThere ?? 0) > 0) refuseForeign(errors, "--errors");
    return { progress: undefined, missing: undefined };
  }

  const record = recordIn(kept);
  const difference = record && differenceOf(record.begun, begun);
  const { bytes = 0, errorsBytes = 0, failures = 0, results = 0 } = record?.progress ?? {};
  const anew = `remove ${output} to have it written anew`;
  if (there === undefined && (record === undefined || difference !== undefined || bytes > 0)) {
    const isOurs = record?.begun.errors === begun.errors && (errorsThere ?? 0) >= errorsBytes;
    if (errors !== undefined && (errorsThere ?? 0) > 0 && !isOurs) refuseForeign(errors, "--errors");
    return { progress: undefined, missing: results > 0 ? output : undefined };
  }
  if (record === undefined) return refuse(`${place.file} is damaged`, anew);
  if (difference !== undefined) refuse(difference, `choose another output with -o, or ${anew}`);
  if ((there ?? 0) < bytes) refuse(SHORTER, anew);
  const compare = async (name: string, extent: Extent): Promise<void> => {
    if (extent.bytes <= COMPARED_BYTES_MAX && (await stateOf(name, extent)) === "changed")
      refuse(CHANGED, restoreOr(name), name);
  };
  await compare(output, extentOf(record.progress));
  if (errors === undefined || (errorsThere ?? 0) >= errorsBytes) {
    if (errors !== undefined) await compare(errors, errorsExtentOf(record.progress));
    return { progress: record.progress, missing: undefined };
  }
  if (errorsThere !== undefined) refuse(SHORTER, `remove ${errors} to have it written anew`, errors);
  // One in which nothing stood but the format's first lines is no loss.
  if (failures === 0)
    return { progress: { ...record.progress, errorsBytes: 0, errorsChecksum: 0 }, missing: undefined };
  return { progress: undefined, missing: errors };
}

/** Files of results as a record has them, for a look at them. */
export interface Written {
  readonly progress: Progress;
  /** The output, then the errors file if there is one; none where 0.1 has begun them. */
  readonly files: readonly { readonly file: string; readonly extent: Extent }[];
}

/** `record` is kept beside what it names, as `beside`. Undefined for what is no such record. */
export function writtenBy(record: unknown, beside: string): Written | undefined {
  const kept = recordIn(record);
  if (kept?.output === undefined) return kept && { progress: kept.progress, files: [] };
  const { begun, progress } = kept;
  const output = resolve(dirname(beside), kept.output);
  const files = [{ file: output, extent: extentOf(progress) }];
  if (begun.errors !== null)
    files.push({ file: resolve(dirname(output), begun.errors), extent: errorsExtentOf(progress) });
  return { progress, files };
}

/** Those in which something stands. */
export async function filledFiles({ files }: Written): Promise<string[]> {
  const lengths = await Promise.all(files.map(({ file }) => lengthOf(file)));
  return files.filter((_, at) => (lengths[at] ?? 0) > 0).map(({ file }) => file);
}

/** Takes away files in which no result stands, with their first lines: they are free for another run. */
export async function dropEmptyResults({ progress, files }: Written): Promise<void> {
  if (progress.results > 0) return;
  for (const { file, extent } of files)
    if ((await lengthOf(file)) === extent.bytes) await rm(file, { force: true });
}

/** `unknown`: 0.1 has begun it, or it cannot be read. */
export type FileState = "as-written" | "changed" | "gone" | "unknown";

/** The files, read whole and compared with what the record has of them. Changes nothing. */
export function compareFiles({
  progress,
  files,
}: Written): Promise<{ readonly file: string; readonly state: FileState }[]> {
  // An errors file without a failure in it is removed at the end.
  const kept = progress.failures > 0 ? files : files.slice(0, 1);
  return Promise.all(kept.map(async ({ file, extent }) => ({ file, state: await stateOf(file, extent) })));
}

/** The files, however long they are. Throws output_not_continued for one that has not the bytes that were written to it. */
export async function refuseChanged(written: Written): Promise<void> {
  const changed = (await compareFiles(written)).find(({ state }) => state === "changed");
  if (changed === undefined) return;
  const { file } = changed;
  throw failure("output_not_continued", { file, reason: CHANGED, advice: restoreOr(file) });
}

async function stateOf(file: string, { bytes, checksum }: Extent): Promise<FileState> {
  const there = await lengthOf(file);
  if (there === undefined) return bytes > 0 ? "gone" : "as-written";
  if (there < bytes) return "changed";
  if (checksum === undefined) return "unknown";
  return checksumOf(file, bytes).then(
    (found) => (found === checksum ? "as-written" : "changed"),
    () => "unknown",
  );
}

/** Throws what `CursorPlace.write` throws. */
export function writeProgress(
  place: CursorPlace,
  output: string,
  begun: Begun,
  progress: Progress,
): Promise<void> {
  return place.write({ version: VERSION, output: besideOutput(place.file, output), begun, progress });
}

const FOREIGN = "it has lines that this run did not write";
const SHORTER = "it is shorter than what was written to it";
const CHANGED = "it has other bytes than what was written to it";

function restoreOr(file: string): string {
  return `restore it, or remove ${file} to have it written anew; nothing is run again`;
}

export function extentOf({ bytes, checksum }: Progress): Extent {
  return { bytes, checksum };
}

export function errorsExtentOf({ errorsBytes: bytes, errorsChecksum: checksum }: Progress): Extent {
  return { bytes, checksum };
}

/** Undefined when it is not there; what is no file has no length either. */
async function lengthOf(file: string): Promise<number | undefined> {
  return stat(file).then(
    (found) => (found.isFile() ? found.size : 0),
    (error: unknown) => (errnoOf(error) === "ENOENT" ? undefined : 0),
  );
}

const WORDS: Readonly<Record<Exclude<keyof Begun, "inside" | "pluginVersion">, string>> = {
  runId: "run",
  format: "format",
  order: "order",
  withInput: "inputs",
  errors: "errors file",
};

function differenceOf(found: Begun, wanted: Begun): string | undefined {
  if (found.inside !== wanted.inside)
    return `it was begun ${shown(found.inside === true)} --inside, and this is ${shown(wanted.inside === true)}`;
  if (found.pluginVersion !== wanted.pluginVersion)
    return `it was begun with results of ${versionText(found)}, and this is of ${versionText(wanted)}`;
  for (const name of Object.keys(WORDS) as (keyof typeof WORDS)[]) {
    if (found[name] === wanted[name]) continue;
    return `it was begun with ${WORDS[name]} ${shown(found[name])}, and this is ${shown(wanted[name])}`;
  }
  return undefined;
}

function versionText({ pluginVersion }: Begun): string {
  return pluginVersion === undefined ? "all plugin versions" : `plugin version ${pluginVersion}`;
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

function recordIn(value: unknown): Kept | undefined {
  const [begun, progress] = [memberOf(value, "begun"), memberOf(value, "progress")];
  const numbers = ["bytes", "errorsBytes", "results", "failures"].map((name) => memberOf(progress, name));
  const isWhole =
    memberOf(value, "version") === VERSION &&
    typeof memberOf(progress, "cursor") === "string" &&
    numbers.every((number) => Number.isSafeInteger(number)) &&
    ["string", "undefined"].includes(typeof memberOf(progress, "failedItem")) &&
    ["checksum", "errorsChecksum"].every((name) =>
      ["number", "undefined"].includes(typeof memberOf(progress, name)),
    ) &&
    Object.keys(WORDS).every((name) => memberOf(begun, name) !== undefined);
  const output = memberOf(value, "output");
  if (!isWhole) return undefined;
  return {
    ...{ begun: begun as Begun, progress: progress as Progress },
    output: typeof output === "string" ? output : undefined,
  };
}
