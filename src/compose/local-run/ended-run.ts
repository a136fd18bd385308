// A local run that nobody runs any more, met by a command that looks for its coordinator: there is none, and at its address may
// be somebody else by now.
import { basename, dirname, join } from "node:path";
import { number } from "../../cli/render/quantities.ts";
import { hintedLine, shellWords, shownPath } from "../../cli/shell-words.ts";
import { failure } from "../../base/errors.ts";
import type { RolloutError } from "../../base/errors.ts";
import { CONFIG_FILE_NAME } from "../../config/load.ts";
import { findLiveHolder } from "../../storage/level/holder-file.ts";
import { thisProcess } from "../../storage/level/process-identity.ts";
import { DATABASE, LOCK, isOfLocalRun, knownParts, readRecorded } from "./run-record.ts";
import type { Ends, RunRecord } from "./run-record.ts";

/**
 * Throws local_run_ended when the configuration is that of a local run which neither a `rollout run` nor a coordinator of its own has
 * open. `configFile` is where the configuration was read.
 */
export async function refuseEndedRun(configFile: string): Promise<void> {
  const ended = await findEndedRun(configFile);
  if (ended !== undefined) throw ended.error;
}

export interface EndedRun {
  readonly error: RolloutError;
  /** It is known what it has come to. */
  readonly isOver: boolean;
  /** No coordinator has ever had a database there. */
  readonly wasNeverStarted: boolean;
}

/** The same for who looks. */
export async function findEndedRun(configFile: string): Promise<EndedRun | undefined> {
  const directory = dirname(configFile);
  if (basename(configFile) !== CONFIG_FILE_NAME || !(await isOfLocalRun(join(directory, DATABASE))))
    return undefined;
  const self = await thisProcess();
  for (const name of [LOCK, DATABASE])
    if ((await findLiveHolder(join(directory, name), self)) !== undefined) return undefined;
  const parts = await knownParts(directory);
  const { begunBy, finished, cancelled } = parts;
  const [shown, command] = [shownPath(directory), commandOf(begunBy)];
  const { hasDatabase, done, failed, workers } = await readRecorded(directory);
  const wasNeverStarted = !hasDatabase && done + failed + workers === 0;
  const error = wasNeverStarted ? neverStarted(shown, command) : ended(shown, command, parts);
  return { error, isOver: (finished ?? cancelled) !== undefined, wasNeverStarted };
}

function neverStarted(directory: string, command: string): RolloutError {
  const log = join(directory, "coordinator.log");
  const advice = `${command} starts it; where that has failed, ${log} may say why`;
  return failure("local_run_ended", { directory, state: "was never started", advice });
}

function ended(directory: string, command: string, parts: Ends): RolloutError {
  const { cancelled, paused } = parts;
  const state = stateOf(parts);
  const coordinator = hintedLine(directory)("coordinator", "run");
  const look = `to look into it start \`${coordinator}\`, and ask again in another terminal`;
  if (paused !== undefined)
    return failure("local_run_ended", { directory, state, advice: `${command} resumes it; ${look}` });
  const advice = cancelled === undefined ? `${look}; ${command} goes on with it` : look;
  return failure("local_run_ended", { directory, state, advice });
}

function stateOf({ finished, cancelled, paused }: Ends): string {
  const outcome = finished ?? cancelled ?? paused;
  if (outcome === undefined) return "is not going on";
  const counts = `with ${number(outcome.done)} done and ${number(outcome.failed)} failed`;
  if (finished !== undefined) return `has ended, ${counts}`;
  return paused === undefined ? `was cancelled, ${counts}` : `is paused (${paused.reason}), ${counts}`;
}

/** The command as it is typed here, in backquotes; in other words where it was not written down, as for a program's own cluster. */
function commandOf(begunBy: RunRecord["begunBy"]): string {
  if (begunBy?.command === undefined) return "the command that began it";
  const { workingDirectory, command } = begunBy;
  const isHere = workingDirectory === process.cwd();
  return isHere ? `\`${command}\`` : `\`${command}\` in ${shellWords([workingDirectory])}`;
}
