// `rollout run` from its input to its results: everything on this machine, in a directory of its own. Whenever it ends, and
// however, the same call goes on where it was: items are known by their content, and what is finished is not run again.
// Keeps true: what is refused has started nothing and leaves nothing behind.
import { realpath } from "node:fs/promises";
import { join, resolve } from "node:path";
import { newUlid } from "../../base/ids.ts";
import type { StoreId } from "../../base/ids.ts";
import { makeDirectory } from "../../base/make-directory.ts";
import { failure, RolloutError } from "../../base/errors.ts";
import { unwritable } from "../../base/system-reason.ts";
import { isFile } from "../../cli/results/outlet.ts";
import { silentLogger } from "../../observe/log.ts";
import { addWorkers } from "./added-workers.ts";
import { Course, writerOptionsOf } from "./course.ts";
import { readFinished } from "./finished-record.ts";
import type { Finished } from "./finished-record.ts";
import { checkInput, isReadOnce } from "./local-input.ts";
import type { CheckedInput } from "./local-input.ts";
import type { LocalRunPorts, LocalRunRequest, LocalRunSummary } from "./request.ts";
import { ResultsWriter } from "./results-writer.ts";
import { dropIfEmpty, HIDDEN, RunDirectory, runDirectoryOf } from "./run-directory.ts";
import { shownPath } from "./shown-path.ts";

const SPOOL = "input.spool";

/**
 * Throws input_refused, item_too_large, input_unreadable, input_changed, interrupted while the input is read, run_held,
 * other_run_task, run_directory_unusable, rows of results' files and of the file system. A failure of one of its processes is an end, not an error.
 */
export async function runLocally(request: LocalRunRequest, ports: LocalRunPorts): Promise<LocalRunSummary> {
  const isHidden = request.files.output === undefined && request.directory === undefined;
  let ahead: CheckedInput | undefined;
  try {
    // A file is looked at before anything is made. The content of a pipe decides about where the run is, if nothing else does.
    if (!(await isReadOnce(request.input))) ahead = await readInput(request, "", ports);
    else if (isHidden) ahead = await readInput(request, await hiddenSpool(ports), ports);
    return await runInDirectory(request, ports, ahead);
  } finally {
    ports.display.end();
    await ahead?.close();
    if (isHidden) await dropIfEmpty(HIDDEN);
  }
}

async function runInDirectory(
  request: LocalRunRequest,
  ports: LocalRunPorts,
  ahead: CheckedInput | undefined,
): Promise<LocalRunSummary> {
  const { clock, random } = ports;
  const startedAtMs = clock.monotonicMs();
  const { task, files } = request;
  const place = { directory: request.directory, output: files.output, digest: task.digest };
  const path = runDirectoryOf({ ...place, input: ahead === undefined ? "" : await knownBy(ahead) });
  const about = files.output === undefined ? path : shownPath(files.output);
  const own = { clock, random, log: silentLogger };
  const mode = "replace-if-nothing-came";
  const claimed = await RunDirectory.claim(path, about, task, own, mode).catch((error: unknown) => {
    const isHeld = error instanceof RolloutError && error.code === "run_held";
    if (!isHeld || request.asksForWorkers !== true || ahead === undefined) throw error;
    return { held: error, input: ahead };
  });
  if ("held" in claimed) return addWorkers(request, ports, { path, ...claimed });
  const directory = claimed;
  if (directory.formerTask !== undefined)
    ports.display.say(
      `nothing was recorded of ${directory.formerTask}: ${about} is of this command from now on`,
    );
  let input = ahead;
  let isStarted = false;
  try {
    input ??= await readInput(request, directory.file(SPOOL), ports);
    await ResultsWriter.check(writerOptionsOf(request, directory));
    const asked = await askedOf(request, input);
    const finished =
      asked === undefined || request.retryFailed ? undefined : await readFinished(directory, asked);
    if (finished !== undefined) {
      const elapsedMs = clock.monotonicMs() - startedAtMs;
      return { ...alreadyDone(finished, input.items), directory: path, elapsedMs };
    }
    isStarted = true;
    return await new Course(request, ports, directory, input).perform(asked);
  } finally {
    if (input !== ahead) await input?.close();
    await (isStarted ? directory.close() : directory.discard());
  }
}

async function hiddenSpool({ clock, random }: LocalRunPorts): Promise<string> {
  await makeDirectory(HIDDEN).catch((error: unknown) => {
    throw unwritable(HIDDEN, error);
  });
  return join(HIDDEN, `${newUlid<StoreId>(clock, random)}.spool`);
}

/** The other end of a pipe may never write: a signal ends the waiting for it. */
async function readInput(
  { input }: LocalRunRequest,
  spoolFile: string,
  { interrupted, clock, display }: LocalRunPorts,
): Promise<CheckedInput> {
  const interruption = interrupted.then((): never => {
    throw failure("interrupted", {});
  });
  return Promise.race([
    checkInput(input, spoolFile, { clock, say: (sentence) => display.say(sentence) }),
    interruption,
  ]);
}

/** A file by its place, so that it may be edited; what can be read only once by what it has. */
async function knownBy({ file, digest }: CheckedInput): Promise<string> {
  return file === undefined ? `content ${digest}` : `file ${await realpath(file).catch(() => resolve(file))}`;
}

/** Undefined where results are not kept: then they are to be written each time. */
async function askedOf(
  { files, input }: LocalRunRequest,
  { digest }: CheckedInput,
): Promise<Finished["asked"] | undefined> {
  const { output, errors, format, order } = files;
  if (output === undefined || !(await isFile(output))) return undefined;
  return { input: digest, kind: input.kind, output, errors: errors ?? "", format, order };
}

function alreadyDone(finished: Finished, items: number): Omit<LocalRunSummary, "directory" | "elapsedMs"> {
  const { done, failed, failedByClass, failureMessages = [], failedItem } = finished;
  return {
    end: { kind: "already" },
    counts: { pending: 0, running: 0, done, failed, failedByClass, failureMessages },
    submitted: { added: 0, known: items, duplicates: 0 },
    ...{ items, failedItem, reassigned: 0 },
  };
}
