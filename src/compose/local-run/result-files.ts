// Which files a local run writes its results to. Keeps true: none of them is another, or something that the run reads; what
// cannot be gone on with is written only where the run is kept elsewhere.
import { stat } from "node:fs/promises";
import { dirname, parse, format as formatPath, resolve } from "node:path";
import { errnoOf } from "../../base/errors.ts";
import { isFile, isSameFile } from "../../cli/results/outlet.ts";
import type { FormatName } from "../../cli/results/format.ts";
import type { ResultsOrder } from "../../client/results.ts";

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
  return stat(file).then(
    (found) => found.isDirectory(),
    () => false,
  );
}
