// Results into files, or to standard output, a page at a time, so that whoever dies in between leaves whole lines and can
// go on: nothing is missing then and nothing stands there twice.
import { failure } from "../../base/errors.ts";
import { printable } from "../../base/safe-text.ts";
import type { Result, ResultPage, ResultsOrder } from "../../client/results.ts";
import {
  besideOutput,
  cursorFileOf,
  cursorIn,
  errorsExtentOf,
  extentOf,
  findOutput,
  writeProgress,
} from "./cursor-file.ts";
import type { Begun, CursorPlace, Found, Progress } from "./cursor-file.ts";
import { formatOf } from "./format.ts";
import type { Format, FormatName } from "./format.ts";
import { EMPTY, growFile, isFile, printTo, replaceFile, streamTo } from "./outlet.ts";
import type { Appended, Extent, Outlet } from "./outlet.ts";

export interface ResultTarget {
  /** Undefined: standard output. */
  readonly output: string | undefined;
  /** A file for failures; without it they stand among the results. */
  readonly errors?: string | undefined;
  readonly format: FormatName;
  readonly withInput?: boolean;
  /** Whether results of items that other items have made stand among them. */
  readonly inside?: boolean;
  /** Only results of this version of the plugin stand among them. */
  readonly pluginVersion?: string | undefined;
  /** `replace`: files appear when they are whole. `grow`: they grow, and a later sink on the same goes on with them. */
  readonly mode: "replace" | "grow";
  readonly runId: string;
  readonly order: ResultsOrder;
  /** Where a file that grows keeps how far it is, in place of beside it. */
  readonly place?: CursorPlace;
  /** Forgets what earlier sinks wrote into a file that grows. It has to be a file of theirs. */
  readonly anew?: boolean;
}

/** Items that other items have made and that have failed; `unheard`: those of them of which no actor was told. */
export interface FailedInside {
  readonly failed: number;
  readonly unheard: number;
}

/** The results of items that other items have made, as they are to be read: their failures are always told. */
export function insideOf({ inside = false }: Pick<ResultTarget, "inside">): true | "failed" {
  return inside || "failed";
}

/** An id of the input that needs no quotes and cannot be taken for a flag. */
const NAME = /^\w[\w.:/-]*$/;
/** So many digits of an item's id mean no other one. */
const DIGITS = 12;

const START: Progress = {
  ...{ cursor: "", bytes: 0, errorsBytes: 0, results: 0, failures: 0 },
  ...{ checksum: 0, errorsChecksum: 0 },
};
const NOTHING: Found = { progress: undefined, missing: undefined };

/** The sentence about a `missing` file, so that nobody takes it for a file that goes on. */
export function missingText(file: string): string {
  return `${printable(file)} is not there any more: it is written anew, nothing is run again`;
}

/** Throws file_unwritable, output_not_continued and output_unwritten. */
export async function openResultSink(target: ResultTarget): Promise<ResultSink> {
  const { output, errors, mode } = target;
  const format = formatOf(target.format, target);
  if (output === undefined || mode === "replace" || !(await isFile(output))) return openFresh(target, format);

  const place = placeOf(target, output);
  const begun = begunOf(target, output);
  const { progress: earlier, missing } =
    target.anew === true ? NOTHING : await findOutput(place, output, begun);
  const progress = earlier ?? START;
  // Named before anything is written: a file with text in it and no cursor beside it is somebody else's.
  if (earlier === undefined) await writeProgress(place, output, begun, progress);
  const outlets = await openBoth(
    errors === undefined ? undefined : () => openErrors(errors, errorsExtentOf(progress)),
    () => growFile(output, extentOf(progress)),
  );
  const save = (now: Progress): Promise<void> => writeProgress(place, output, begun, now);
  const isNew = { output: progress.bytes === 0, errors: progress.errorsBytes === 0 };
  return beginning(new ResultSink(outlets, format, { progress, missing }, save), isNew);
}

/** Throws output_not_continued when `openResultSink` would. Resolves with what would be `missing` of the sink. Changes nothing. */
export async function checkResultTarget(target: ResultTarget): Promise<string | undefined> {
  const { output, mode } = target;
  if (output === undefined || mode === "replace" || !(await isFile(output))) return undefined;
  return (await findOutput(placeOf(target, output), output, begunOf(target, output))).missing;
}

function placeOf({ place }: ResultTarget, output: string): CursorPlace {
  return place ?? cursorIn(cursorFileOf(output));
}

function begunOf(target: ResultTarget, output: string): Begun {
  const { runId, format, order, withInput, errors, inside, pluginVersion } = target;
  return {
    ...{ runId, format, order, withInput: withInput ?? false },
    errors: errors === undefined ? null : besideOutput(output, errors),
    ...(inside === true && { inside }),
    ...(pluginVersion !== undefined && { pluginVersion }),
  };
}

async function openErrors(file: string, written: Extent): Promise<Outlet> {
  return (await isFile(file)) ? growFile(file, written) : streamTo(file);
}

async function openFresh(target: ResultTarget, format: Format): Promise<ResultSink> {
  const { output, errors } = target;
  const anew = async (file: string): Promise<Outlet> =>
    (await isFile(file)) ? replaceFile(file) : streamTo(file);
  const outlets = await openBoth(errors === undefined ? undefined : () => anew(errors), () =>
    output === undefined ? printTo(process.stdout) : anew(output),
  );
  // A cursor that a growing file has left behind would speak of another one.
  const forget = async (): Promise<void> => {
    if (output !== undefined && (await isFile(output))) await placeOf(target, output).remove();
  };
  const sink = new ResultSink(outlets, format, { progress: START, missing: undefined }, undefined, forget);
  return beginning(sink, { output: true, errors: true });
}

/** Both, or neither. */
async function openBoth(
  openErrorsOutlet: (() => Promise<Outlet>) | undefined,
  openOutput: () => Promise<Outlet> | Outlet,
): Promise<Outlets> {
  const errors = await openErrorsOutlet?.();
  try {
    return { errors, output: await openOutput() };
  } catch (error) {
    await errors?.abandon();
    throw error;
  }
}

async function beginning(
  sink: ResultSink,
  isNew: { readonly output: boolean; readonly errors: boolean },
): Promise<ResultSink> {
  try {
    await sink.begin(isNew);
    return sink;
  } catch (error) {
    await sink.abandon();
    throw error;
  }
}

interface Outlets {
  readonly output: Outlet;
  readonly errors: Outlet | undefined;
}

export class ResultSink {
  /** One of the files that had results in it and was taken away: all of them are written anew. */
  readonly missing: string | undefined;
  readonly #outlets: Outlets;
  readonly #format: Format;
  readonly #save: ((progress: Progress) => Promise<void>) | undefined;
  readonly #beforeFinish: (() => Promise<void>) | undefined;
  #progress: Progress;

  constructor(
    outlets: Outlets,
    format: Format,
    { progress, missing }: { readonly progress: Progress; readonly missing: string | undefined },
    save: ((progress: Progress) => Promise<void>) | undefined,
    beforeFinish?: () => Promise<void>,
  ) {
    this.missing = missing;
    this.#outlets = outlets;
    this.#format = format;
    this.#progress = progress;
    this.#save = save;
    this.#beforeFinish = beforeFinish;
  }

  /** After what to go on reading; empty at the start. */
  get cursor(): string {
    return this.#progress.cursor;
  }

  /** Results so far, failures included, and failures; those that earlier sinks wrote into growing files included. */
  get results(): number {
    return this.#progress.results;
  }

  get failures(): number {
    return this.#progress.failures;
  }

  /** Results of items that other items have made. */
  get inside(): number {
    return this.#progress.inside ?? 0;
  }

  /** Failures among these of which no actor was told. */
  get unheard(): number {
    return this.#progress.unheard ?? 0;
  }

  /** One that has failed, by a name that can be typed, whoever wrote it; undefined when none has. */
  get failedItem(): string | undefined {
    return this.#progress.failedItem;
  }

  /** The first lines of those that have none yet. */
  async begin(isNew: { readonly output: boolean; readonly errors: boolean }): Promise<void> {
    const { header } = this.#format;
    if (header === "") return;
    if (isNew.output) await this.#outlets.output.append(header);
    if (isNew.errors) await this.#outlets.errors?.append(header);
    await this.#commit({});
  }

  /** Files that grow have the page on disk when it resolves. Throws output_unwritten: then as if it was never given. */
  async write({ results, cursor }: ResultPage): Promise<Appended> {
    const { output, errors } = this.#outlets;
    const lines = (wanted: (result: Result) => boolean): string =>
      results.filter(wanted).map(this.#format.line).join("");
    const isFailure = ({ ok }: Result): boolean => !ok;
    const appended = await output.append(lines(errors === undefined ? () => true : ({ ok }) => ok));
    const erred = errors === undefined ? "written" : await errors.append(lines(isFailure));
    await this.#commit({
      cursor,
      results: this.#progress.results + results.length,
      failures: this.#progress.failures + results.filter(isFailure).length,
      ...this.#insideWith(results),
      failedItem: this.#progress.failedItem ?? nameOf(results.find(isFailure)),
    });
    return appended === "written" ? erred : appended;
  }

  /** The name of a file that grows and that somebody else has taken away or changed since it was opened. */
  async lostFile(): Promise<string | undefined> {
    const { output, errors } = this.#outlets;
    return (await output.lostFile?.()) ?? (await errors?.lostFile?.());
  }

  /** All pages were written. Throws output_not_continued when there is a lost file. */
  async close(): Promise<void> {
    const file = await this.lostFile();
    if (file === undefined) await this.#beforeFinish?.();
    await this.#outlets.errors?.finish();
    await this.#outlets.output.finish();
    if (file === undefined) return;
    const reason = "somebody else took it away or changed it while it was written";
    const advice = "remove it and give the same command again: it is written anew, and nothing is run again";
    throw failure("output_not_continued", { file, reason, advice });
  }

  /** Nothing more comes, and it was not all. Files that grow keep what was written, others are as before. */
  async abandon(): Promise<void> {
    await this.#outlets.errors?.abandon();
    await this.#outlets.output.abandon();
  }

  #insideWith(results: readonly Result[]): Pick<Progress, "inside" | "unheard"> {
    const inside = results.filter(({ origin }) => origin !== undefined);
    if (inside.length === 0) return {};
    // The end of an invocation is an event of its actor.
    const unheard = inside.filter(({ ok, origin }) => !ok && origin?.kind !== "invocation");
    return { inside: this.inside + inside.length, unheard: this.unheard + unheard.length };
  }

  async #commit(change: Partial<Progress>): Promise<void> {
    const written = (await this.#outlets.output.sync()) ?? EMPTY;
    const errorsWritten = (await this.#outlets.errors?.sync()) ?? EMPTY;
    const next = {
      ...{ ...this.#progress, ...change, bytes: written.bytes, errorsBytes: errorsWritten.bytes },
      ...{ checksum: written.checksum, errorsChecksum: errorsWritten.checksum },
    };
    await this.#save?.(next);
    this.#progress = next;
  }
}

function nameOf(result: Result | undefined): string | undefined {
  return NAME.test(result?.id ?? "") ? result?.id : result?.item.slice(0, DIGITS);
}

/** Why it stopped: the run is over, there is nothing more for now (when it does not follow), or nobody reads. */
export type Pumped = "end" | "caught-up" | "reader-gone";

/**
 * From a run into a sink, to the end or as far as there is something: goes on where the sink is. The sink is closed, or abandoned when this
 * throws: what `pagesAfter` throws, output_unwritten, file_unwritable. Called again with a new sink on the same target it goes on.
 */
export async function followResults(
  pagesAfter: (cursor: string) => AsyncIterable<ResultPage>,
  sink: ResultSink,
): Promise<Pumped> {
  try {
    let outcome: Pumped = "caught-up";
    for await (const page of pagesAfter(sink.cursor)) {
      if (page.end) outcome = "end";
      if ((await sink.write(page)) === "reader-gone") {
        outcome = "reader-gone";
        break;
      }
    }
    await sink.close();
    return outcome;
  } catch (error) {
    await sink.abandon();
    throw error;
  }
}
