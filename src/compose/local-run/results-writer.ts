// The results of a local run on their way into files. Keeps true: what was written stays whole whatever dies; at the end the
// files say of each item what became of it, once; a result whose row stands in quarantine is not lost from the disk.
import { constants, copyFile, lstat, rm } from "node:fs/promises";
import { errnoOf, failure } from "../../base/errors.ts";
import type { RunId } from "../../base/ids.ts";
import { systemReason } from "../../base/system-reason.ts";
import { isFile } from "../../cli/results/outlet.ts";
import { checkResultTarget, openResultSink } from "../../cli/results/result-sink.ts";
import type { ResultSink, ResultTarget } from "../../cli/results/result-sink.ts";
import type { RolloutClient } from "../rollout-client.ts";
import type { ResultFiles } from "./result-files.ts";

export interface WriterOptions {
  readonly files: ResultFiles;
  /** Keeps how far the files have got. */
  readonly cursorFile: string;
  readonly runId: RunId;
  readonly client: RolloutClient;
  /** Items that stand in quarantine: the files may hold results that the run cannot give again. */
  readonly setAside: number;
  /** The files as they were are kept under these names, because they are written anew. */
  readonly onKept: (copies: readonly string[]) => void;
}

/** Longer than a coordinator takes to come back. */
const CATCH_UP_PATIENCE_MS = 10_000;

type TargetOptions = Pick<WriterOptions, "files" | "cursorFile" | "runId">;

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

  /** Writes what comes until the run is over (`end`), or `signal` aborts. */
  async follow(signal: AbortSignal): Promise<"end" | "aborted" | "reader-gone"> {
    return this.#copy({ follow: true, patienceMs: Infinity }, signal);
  }

  /** Writes all results there are, unless `signal` aborts. A coordinator that is away is waited for, but not for long. */
  async catchUp(signal: AbortSignal): Promise<void> {
    await this.#copy({ follow: false, patienceMs: CATCH_UP_PATIENCE_MS }, signal);
  }

  /** The run is over and everything was read: `counts` are what it has. */
  async finish(counts: { readonly done: number; readonly failed: number }): Promise<void> {
    const { results, failures } = this.#sink;
    const successes = results - failures;
    // Rows that were set aside leave successes in the files that the run does not have any more: they stay where they are.
    const surplus = Math.min(Math.max(0, successes - counts.done), this.#options.setAside);
    const isOutdated = successes - surplus !== counts.done || failures !== counts.failed;
    const { output, errors } = this.#options.files;
    // Failed items were taken back after they were written, or a file was taken away while it was: where lines cannot be taken back,
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
    const pages = client.resultPages({ ...how, order: files.order, after: this.#sink.cursor, signal });
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

/** A device, a pipe or a link is somebody else's to remove. */
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

function targetOf({ files, cursorFile, runId }: TargetOptions): ResultTarget {
  return { ...files, mode: "grow", runId, cursorFile };
}
