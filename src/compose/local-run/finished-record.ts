// The outcome of a local run, kept beside it: the same command over the same input finds here that there is nothing to do,
// and starts nothing. Keeps true: it speaks of files as they are now, byte for byte in length, or it is not believed; and it goes
// before anything can change in the database that it was written from.
import { readFile, rm, stat } from "node:fs/promises";
import { dirname, join } from "node:path";
import { unwritable } from "../../base/system-reason.ts";
import type { FailureMessage } from "../../client/run-status.ts";
import { isOfLocalRun } from "./recorded.ts";
import type { RunDirectory } from "./run-directory.ts";

export interface Finished {
  /** The request. */
  readonly asked: {
    /** SHA-256 of the input, hexadecimal. */
    readonly input: string;
    readonly kind: string;
    readonly output: string;
    readonly errors: string;
    readonly format: string;
    readonly order: string;
  };
  readonly done: number;
  readonly failed: number;
  readonly failedByClass: Readonly<Record<string, number>>;
  /** With which words; records of 0.1 have none. */
  readonly failureMessages?: readonly FailureMessage[];
  /** One that has failed, if one was seen. */
  readonly failedItem?: string | undefined;
}

type Asked = Finished["asked"];

const FILE = "finished.json";
const VERSION = 1;

/** The outcome of the very same request, if it is all still there. */
export async function readFinished(directory: RunDirectory, asked: Asked): Promise<Finished | undefined> {
  const text = await directory.read(FILE);
  const record = text === undefined ? undefined : parse(text);
  if (record === undefined || JSON.stringify(record.finished.asked) !== JSON.stringify(asked))
    return undefined;
  const lengths = await lengthsOf(asked);
  if (lengths[0] === null || (lengths[1] === null && record.finished.failed > 0)) return undefined;
  return JSON.stringify(lengths) === JSON.stringify(record.lengths) ? record.finished : undefined;
}

/** How many items of which input were done and failed, as a directory has it; undefined when no run there was complete. */
export async function readAccount(
  directory: string,
): Promise<{ readonly input: string; readonly done: number; readonly failed: number } | undefined> {
  const text = await readFile(join(directory, FILE), "utf8").catch(() => "");
  const { done, failed, asked } = parse(text)?.finished ?? {};
  return Number.isSafeInteger(done) && Number.isSafeInteger(failed)
    ? { input: asked?.input ?? "", done: Number(done), failed: Number(failed) }
    : undefined;
}

/** The files are whole. */
export async function writeFinished(directory: RunDirectory, finished: Finished): Promise<void> {
  const lengths = await lengthsOf(finished.asked);
  await directory.write(FILE, `${JSON.stringify({ version: VERSION, finished, lengths })}\n`);
}

/** To be called before anything may change in the database at `databasePath`. Nothing, where that is of no local run. */
export async function forgetFinished(databasePath: string): Promise<void> {
  if (!(await isOfLocalRun(databasePath))) return;
  const file = join(dirname(databasePath), FILE);
  await rm(file, { force: true }).catch((error: unknown) => {
    throw unwritable(file, error);
  });
}

/** Null for one that is not there. */
async function lengthsOf({ output, errors }: Asked): Promise<readonly (number | null)[]> {
  const lengthOf = (file: string): Promise<number | null> =>
    stat(file).then(
      ({ size }) => size,
      () => null,
    );
  return [await lengthOf(output), await lengthOf(errors)];
}

function parse(text: string): { readonly finished: Finished; readonly lengths: unknown } | undefined {
  try {
    const value = JSON.parse(text) as { version?: unknown; finished?: Finished; lengths?: unknown } | null;
    if (value?.version !== VERSION || value.finished === undefined) return undefined;
    return { finished: value.finished, lengths: value.lengths };
  } catch {
    return undefined;
  }
}
