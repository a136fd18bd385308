// The files of a local run's results: which they are, and how results get into them. Keeps true: none of them is another, or something that
// the run reads; what cannot be gone on with is written only where the run is kept elsewhere; what was written stays whole whatever dies; at
// the end the files say of each item what became of it, once; a result whose row stands in quarantine is not lost from the disk.
import { constants, copyFile, lstat, rm, stat } from "node:fs/promises";
import { dirname, parse, format as formatPath, resolve } from "node:path";
import { errnoOf, failure } from "../../base/errors.ts";
import { systemReason } from "../../base/system-reason.ts";
import type { FormatName } from "../../cli/results/format.ts";
import { isFile, isSameFile } from "../../cli/results/outlet.ts";
import { checkResultTarget, insideOf, openResultSink } from "../../cli/results/result-sink.ts";
import type { FailedInside, ResultSink, ResultTarget } from "../../cli/results/result-sink.ts";
import type { ResultsOrder } from "../../client/results.ts";
import type { RunStatus } from "../../client/run-status.ts";
import type { RolloutClient } from "../rollout-client.ts";
import type { RunDirectory } from "./run-directory.ts";

export interface ResultFiles {
  /** Absolute. Undefined: standard output. */
  readonly output: string | undefined;
  /** Absolute. Undefined: failures stand among the results. */
  readonly errors: string | undefined;
  readonly format: FormatName;
  readonly order: ResultsOrder;
}

export interface FilesAsked {
  readonly output: string | undefined;
  readonly errors: string | undefined;
  /** The run's own directory. */
  readonly directory: string | undefined;
  /** Undefined: standard input. */
  readonly input: string | undefined;
  /** The plugin's manifest; undefined when there is none. */
  readonly manifest: string | undefined;
}

const STANDARD_OUTPUT: readonly (string | undefined)[] = [undefined, "-", "/dev/stdout"];

/** `answers.jsonl` has its failures in `answers.errors.jsonl`. */
function errorsFileOf(output: string): string {
  const { dir, name, ext } = parse(output);
  return formatPath({ dir, name: `${name}.errors`, ext });
}

/** The two files, or in a sentence why they cannot be. Changes nothing. */
export async function chooseFiles(
  asked: FilesAsked,
): Promise<Pick<ResultFiles, "output" | "errors"> | { readonly refusal: string }> {
  const output = STANDARD_OUTPUT.includes(asked.output) ? undefined : asked.output;
  const isKept = output !== undefined && (await isFile(output));
  const errors = asked.errors ?? (isKept ? errorsFileOf(output) : undefined);
  const refusal =
    (await refusedOutput(output, isKept, asked)) ??
    (await refusedErrors(errors, asked)) ??
    (output !== undefined && errors !== undefined && (await isSameFile(output, errors))
      ? "-o and --errors name the same file"
      : undefined);
  if (refusal !== undefined) return { refusal };
  return { output: output && resolve(output), errors: errors && resolve(errors) };
}

async function refusedOutput(
  output: string | undefined,
  isKept: boolean,
  { input, manifest, directory }: FilesAsked,
): Promise<string | undefined> {
  if (output === undefined) return undefined;
  if (await isDirectory(output)) return `-o ${output} is a directory: name a file`;
  if (await isSame(output, input)) return "-o names the input";
  if (await isSame(output, manifest)) return "-o names the plugin's manifest";
  if (await isSame(output, directory)) return "-o and --dir name the same";
  const missing = await missingDirectoryOf(output);
  if (missing !== undefined) return `-o ${output}: there is no directory ${missing}`;
  if (isKept || directory !== undefined) return undefined;
  return `-o ${output} is no file to go on with later: say with --dir where the run is kept, or leave -o away`;
}

async function refusedErrors(
  errors: string | undefined,
  { input, manifest, ...asked }: FilesAsked,
): Promise<string | undefined> {
  if (errors === undefined) return undefined;
  if (asked.errors === undefined && (await isSame(errors, input)))
    return `failures would go to ${errors}, and that is the input: name another file with --errors`;
  if (errors === "-" || (await isDirectory(errors))) return `--errors ${errors} is no file: name one`;
  if (await isSame(errors, input)) return "--errors names the input";
  if (await isSame(errors, manifest)) return "--errors names the plugin's manifest";
  const missing = asked.errors === undefined ? undefined : await missingDirectoryOf(errors);
  return missing === undefined ? undefined : `--errors ${errors}: there is no directory ${missing}`;
}

/** The directory that a file would be in, when it is not there: a mistyped one is not made. */
async function missingDirectoryOf(file: string): Promise<string | undefined> {
  const parent = dirname(file);
  return stat(parent).then(
    (found) => (found.isDirectory() ? undefined : parent),
    (error: unknown) => (["ENOENT", "ENOTDIR"].includes(errnoOf(error) ?? "") ? parent : undefined),
  );
}

async function isSame(file: string, other: string | undefined): Promise<boolean> {
  return other !== undefined && (await isSameFile(file, other));
}

async function isDirectory(file: string): Promise<boolean> {
  return (await stat(file).catch(() => undefined))?.isDirectory() === true;
}

export interface WriterOptions {
  readonly files: ResultFiles;
  /** Keeps how far the files have got. */
  readonly directory: Pick<RunDirectory, "cursorPlace" | "runId">;
  readonly client: RolloutClient;
  /** Items that stand in quarantine: the files may hold results that the run cannot give again. */
  readonly setAside: number;
  /** The files as they were are kept under these names, because they are written anew. */
  readonly onKept: (copies: readonly string[]) => void;
}

/** Longer than a coordinator takes to come back. */
const CATCH_UP_PATIENCE_MS = 10_000;

type TargetOptions = Pick<WriterOptions, "files" | "directory">;

export class ResultsWriter {
  readonly #options: WriterOptions;
  #sink: ResultSink;

  private constructor(options: WriterOptions, sink: ResultSink) {
    this.#options = options;
    this.#sink = sink;
  }

  /** Throws output_not_continued when `open` would. Changes nothing. */
  static async check(options: TargetOptions): Promise<void> {
    await checkResultTarget(targetOf(options));
  }

  /** Goes on where an earlier one ended. Throws what `openResultSink` throws. */
  static async open(options: WriterOptions): Promise<ResultsWriter> {
    const target = targetOf(options);
    if (options.setAside > 0 && (await checkResultTarget(target)) !== undefined) await keepFiles(options);
    return new ResultsWriter(options, await openResultSink(target));
  }

  /** A file that had results in it and was taken away: everything is written anew. */
  get missing(): string | undefined {
    return this.#sink.missing;
  }

  /** One that has failed, by a name that can be typed; undefined when none is written. */
  get failedItem(): string | undefined {
    return this.#sink.failedItem;
  }

  /** Items that other items have made: so many have failed, and of so many of them no actor was told. */
  get failedInside(): FailedInside {
    return { failed: this.#sink.inside, unheard: this.#sink.unheard };
  }

  /** Writes what comes until the run is over (`end`), or `signal` aborts. */
  async follow(signal: AbortSignal): Promise<"end" | "aborted" | "reader-gone"> {
    return this.#copy({ follow: true, patienceMs: Infinity }, signal);
  }

  /** Writes all results there are, unless `signal` aborts. A coordinator that is away is waited for, but not for long. */
  async catchUp(signal: AbortSignal): Promise<void> {
    await this.#copy({ follow: false, patienceMs: CATCH_UP_PATIENCE_MS }, signal);
  }

  /** The run is over and everything was read: `counts` are what it has. */
  async finish(
    counts: Pick<RunStatus, "done" | "failed"> & Partial<Pick<RunStatus, "inside">>,
  ): Promise<void> {
    const { results, failures, inside } = this.#sink;
    const successes = results - failures;
    // Rows that were set aside leave successes in the files that the run does not have any more: they stay where they are.
    const surplus = Math.min(Math.max(0, successes - counts.done), this.#options.setAside);
    const isOutdated =
      successes - surplus !== counts.done ||
      failures - inside !== counts.failed ||
      inside !== (counts.inside?.failed ?? 0);
    const { output, errors } = this.#options.files;
    // Failed items were retried after they were written, or a file was taken away while it was: where lines cannot be taken back,
    // there is nothing to be done about it.
    const isLost = (await this.#sink.lostFile()) !== undefined;
    if ((isOutdated || isLost) && output !== undefined && (await isFile(output))) {
      await this.startAnew();
      await this.catchUp(new AbortController().signal);
    }
    await this.#sink.close();
    if (errors !== undefined && this.#sink.failures === 0) await removeFile(errors);
  }

  /** Forgets what an earlier reading has written: the run has it all, but for what stands in quarantine, and then a copy is kept. */
  async startAnew(): Promise<void> {
    await this.#sink.abandon();
    if (this.#options.setAside > 0) await keepFiles(this.#options);
    this.#sink = await openResultSink({ ...targetOf(this.#options), anew: true });
  }

  /** It goes on another time. Call `finish` or this. */
  async abandon(): Promise<void> {
    await this.#sink.abandon();
  }

  async #copy(
    how: { readonly follow: boolean; readonly patienceMs: number },
    signal: AbortSignal,
  ): Promise<"end" | "aborted" | "reader-gone"> {
    const { client, files } = this.#options;
    const { order } = files;
    const pages = client.resultPages({
      ...{ ...how, order, inside: insideOf({}), after: this.#sink.cursor, signal },
    });
    try {
      for await (const page of pages) {
        if ((await this.#sink.write(page)) === "reader-gone") return "reader-gone";
        if (page.end) return "end";
      }
    } catch (error) {
      if (!signal.aborted) throw error;
    }
    return "aborted";
  }
}

/** Removes regular files only. */
async function removeFile(file: string): Promise<void> {
  const found = await lstat(file).catch(() => undefined);
  if (found?.isFile() === true) await rm(file, { force: true });
}

/** Copies the files under names beside them that are free. Throws output_unwritten. */
async function keepFiles({ files: { output, errors }, onKept }: WriterOptions): Promise<void> {
  const copies: string[] = [];
  for (const file of [output, errors])
    if (file !== undefined && (await isFile(file))) copies.push(...(await keepFile(file)));
  if (copies.length > 0) onKept(copies);
}

/** Empty when there is no such file. */
async function keepFile(file: string): Promise<string[]> {
  for (let number = 1; ; number++) {
    const copy = `${file}.kept-${number}`;
    try {
      await copyFile(file, copy, constants.COPYFILE_EXCL);
      return [copy];
    } catch (error) {
      const errno = errnoOf(error);
      if (errno === "ENOENT") return [];
      if (errno !== "EEXIST")
        throw failure("output_unwritten", { file: copy, reason: systemReason(error) }, error);
    }
  }
}

function targetOf({ files, directory: { runId, cursorPlace: place } }: TargetOptions): ResultTarget {
  return { ...files, mode: "grow", runId, place };
}
