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
import { readAccount } from "./finished-record.ts";
import { DATABASE, TASK_FILE } from "./recorded.ts";
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

/** The same for who looks. `isOver`: it is known what it has come to. */
export async function findEndedRun(
  configFile: string,
): Promise<{ readonly error: RolloutError; readonly isOver: boolean } | undefined> {
  const directory = dirname(configFile);
  if (basename(configFile) !== CONFIG_FILE_NAME || !(await isThere(join(directory, TASK_FILE))))
    return undefined;
  const self = await thisProcess();
  for (const name of [LOCK, DATABASE])
    if ((await findLiveHolder(join(directory, name), self)) !== undefined) return undefined;
  const shown = shownPath(directory);
  const account = await readAccount(directory);
  const error = failure("local_run_ended", {
    directory: shown,
    state:
      account === undefined
        ? "is not going on"
        : `has ended, with ${number(account.done)} done and ${number(account.failed)} failed`,
    coordinator: hintedLine(shown)("coordinator", "run"),
  });
  return { error, isOver: account !== undefined };
}

function isThere(file: string): Promise<boolean> {
  return access(file).then(
    () => true,
    () => false,
  );
}
