// `rollout run` from its input to its results: everything on this machine, in a directory of its own. Whenever it ends, and
// however, the same call goes on where it was: items are known by their content, and what is finished is not run again.
// Keeps true: what is refused has started nothing and leaves nothing behind.
import { join } from "node:path";
import { newUlid } from "../../base/ids.ts";
import type { StoreId } from "../../base/ids.ts";
import { makeDirectory } from "../../base/file-system.ts";
import { failure, RolloutError } from "../../base/errors.ts";
import { asUnwritable } from "../../base/system-reason.ts";
import { isFile } from "../../cli/results/outlet.ts";
import { shownPath } from "../../cli/shell-words.ts";
import { addWorkers } from "./added-workers.ts";
import { Course } from "./course.ts";
import { Hosts } from "./hosts.ts";
import { isReadOnce, openInput } from "./local-input.ts";
import type { LocalInput } from "./local-input.ts";
import type { LocalRunPorts, LocalRunRequest, LocalRunSummary } from "./request.ts";
import { ResultsWriter } from "./result-files.ts";
import { dropIfEmpty, HIDDEN, RunDirectory, runDirectoryOf } from "./run-directory.ts";
import { finishedAs, readRecord } from "./run-record.ts";
import type { Finished, Request } from "./run-record.ts";

const SPOOL = "input.spool";

/**
 * Throws fleet_not_ready, input_refused, key_invalid, item_too_large, input_unreadable, input_changed, interrupted while the input is read, run_held,
 * other_run_task, run_directory_unusable, rows of results' files and of the file system. A failure of one of its processes is an end, not an error.
 */
export async function runLocally(request: LocalRunRequest, ports: LocalRunPorts): Promise<LocalRunSummary> {
  const isHidden = request.files.output === undefined && request.directory === undefined;
  let ahead: LocalInput | undefined;
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
  ahead: LocalInput | undefined,
): Promise<LocalRunSummary> {
  const { clock, random } = ports;
  const startedAtMs = clock.monotonicMs();
  const { task, files } = request;
  const place = { directory: request.directory, output: files.output, digest: task.digest };
  const path = runDirectoryOf({ ...place, input: ahead?.known ?? "" });
  const about = files.output === undefined ? path : shownPath(files.output);
  const mode = "replace-if-nothing-came";
  const keyedTask = { ...task, fields: request.input.fields };
  const claimed = await RunDirectory.claim(path, about, keyedTask, { clock, random }, mode).catch(
    (error: unknown) => {
      const isHeld = error instanceof RolloutError && error.code === "run_held";
      if (!isHeld || request.asksForWorkers !== true || ahead === undefined) throw error;
      return { held: error, input: ahead };
    },
  );
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
    await ResultsWriter.check({ files, directory });
    const asked = await requestOf(request);
    const finished = asked && !request.retryFailed ? await finishedBefore(path, asked, input) : undefined;
    if (finished !== undefined) {
      const elapsedMs = clock.monotonicMs() - startedAtMs;
      return { ...alreadyDone(finished), directory: path, elapsedMs };
    }
    if (request.hosts !== undefined)
      await new Hosts(request.hosts, ports).demand(directory.runId, (sentence) =>
        ports.display.say(sentence),
      );
    isStarted = true;
    return await new Course(request, ports, directory, input).perform(asked);
  } finally {
    if (input !== ahead) await input?.close();
    await (isStarted ? directory.close() : directory.discard());
  }
}

async function hiddenSpool({ clock, random }: LocalRunPorts): Promise<string> {
  await makeDirectory(HIDDEN).catch(asUnwritable(HIDDEN));
  return join(HIDDEN, `${newUlid<StoreId>(clock, random)}.spool`);
}

/** The other end of a pipe may never write: a signal ends the waiting for it. */
async function readInput(
  { input }: LocalRunRequest,
  spoolFile: string,
  { interrupted, clock, display }: LocalRunPorts,
): Promise<LocalInput> {
  const interruption = interrupted.then((): never => {
    throw failure("interrupted", {});
  });
  return Promise.race([
    openInput(input, spoolFile, { clock, say: (sentence) => display.say(sentence) }),
    interruption,
  ]);
}

/** Undefined where results are not kept: then they are to be written each time. */
async function requestOf({ files, input }: LocalRunRequest): Promise<Request | undefined> {
  const { output, errors, format, order } = files;
  if (output === undefined || !(await isFile(output))) return undefined;
  return { kind: input.kind, output, errors: errors ?? "", format, order };
}

/** The input is read for it where there is an outcome to compare it with, and nothing is started. */
async function finishedBefore(
  path: string,
  asked: Request,
  input: LocalInput,
): Promise<Finished | undefined> {
  // The input may have taken hours: a coordinator that somebody has started meanwhile has forgotten the outcome.
  const record = await readRecord(path);
  if (record?.finished === undefined) return undefined;
  return finishedAs(path, record, { input: await input.digest(), ...asked });
}

function alreadyDone(finished: Finished): Omit<LocalRunSummary, "directory" | "elapsedMs"> {
  const { done, failed, failedByClass, failureMessages = [], failedItem, failedInside } = finished;
  const { items = done + failed } = finished;
  return {
    end: { kind: "already" },
    counts: { pending: 0, running: 0, done, failed, failedByClass, failureMessages },
    submitted: { added: 0, known: items, duplicates: 0 },
    ...{ items, failedItem, failedInside, reassigned: 0 },
  };
}
