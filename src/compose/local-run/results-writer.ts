// The results of a local run on their way into files. Keeps true: what was written stays whole whatever dies; at the end the
// files say of each item what became of it, once, and keep a result that the run has lost.
import { lstat, rm } from "node:fs/promises";
import type { RunId } from "../../base/ids.ts";
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
}

/** Longer than a coordinator takes to come back. */
const CATCH_UP_PATIENCE_MS = 10_000;

export class ResultsWriter {
  readonly #options: WriterOptions;
  #sink: ResultSink;

  private constructor(options: WriterOptions, sink: ResultSink) {
    this.#options = options;
    this.#sink = sink;
  }

  /** Throws output_not_continued when `open` would. Changes nothing. */
  static async check(options: Omit<WriterOptions, "client">): Promise<void> {
    await checkResultTarget(targetOf(options));
  }

  /** Goes on where an earlier one ended. Throws what `openResultSink` throws. */
  static async open(options: WriterOptions): Promise<ResultsWriter> {
    return new ResultsWriter(options, await openResultSink(targetOf(options)));
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
    // Rows that were set aside leave successes in the files that the run does not have any more: nobody could write them again.
    const isOnlyCopy = results - failures > counts.done;
    const isOutdated = !isOnlyCopy && (results !== counts.done + counts.failed || failures !== counts.failed);
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

  /** Forgets what an earlier reading has written: the run has it all. */
  async startAnew(): Promise<void> {
    await this.#sink.abandon();
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

function targetOf({ files, cursorFile, runId }: Omit<WriterOptions, "client">): ResultTarget {
  return { ...files, mode: "grow", runId, cursorFile };
}
