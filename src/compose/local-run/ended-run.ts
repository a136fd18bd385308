// A local run that nobody runs any more, met by a command that looks for its coordinator: there is none, and at its address may
// be somebody else by now.
import { access } from "node:fs/promises";
import { basename, dirname, join } from "node:path";
import { number } from "../../cli/render/number.ts";
import { hintedLine } from "../../cli/shell-words.ts";
import { failure } from "../../base/errors.ts";
import type { RolloutError } from "../../base/errors.ts";
import { CONFIG_FILE_NAME } from "../../config/load.ts";
import { findLiveHolder } from "../../storage/level/holder-file.ts";
import { thisProcess } from "../../storage/level/process-identity.ts";
import { begunBy } from "./begun-by.ts";
import { readAccount } from "./finished-record.ts";
import { DATABASE, readRecorded, TASK_FILE } from "./recorded.ts";
import { LOCK } from "./run-directory.ts";
import { shownPath } from "./shown-path.ts";

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
  if (basename(configFile) !== CONFIG_FILE_NAME || !(await isThere(join(directory, TASK_FILE))))
    return undefined;
  const self = await thisProcess();
  for (const name of [LOCK, DATABASE])
    if ((await findLiveHolder(join(directory, name), self)) !== undefined) return undefined;
  const [shown, command] = [shownPath(directory), await begunBy(directory)];
  const account = await readAccount(directory);
  const { hasDatabase, done, failed, workers } = await readRecorded(directory);
  const wasNeverStarted = !hasDatabase && done + failed + workers === 0;
  const error = wasNeverStarted ? neverStarted(shown, command) : ended(shown, command, account);
  return { error, isOver: account !== undefined, wasNeverStarted };
}

function neverStarted(directory: string, command: string): RolloutError {
  const log = join(directory, "coordinator.log");
  const advice = `${command} starts it; where that has failed, ${log} may say why`;
  return failure("local_run_ended", { directory, state: "was never started", advice });
}

function ended(
  directory: string,
  command: string,
  account: Awaited<ReturnType<typeof readAccount>>,
): RolloutError {
  const state =
    account === undefined
      ? "is not going on"
      : `has ended, with ${number(account.done)} done and ${number(account.failed)} failed`;
  const coordinator = hintedLine(directory)("coordinator", "run");
  const look = `to look into it start \`${coordinator}\`, and ask again in another terminal`;
  return failure("local_run_ended", { directory, state, advice: `${look}; ${command} goes on with it` });
}

function isThere(file: string): Promise<boolean> {
  return access(file).then(
    () => true,
    () => false,
  );
}
