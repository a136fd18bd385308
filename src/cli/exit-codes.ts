// Which exit codes a command may end with, by its name. Their meaning is the same everywhere.
import { EXIT } from "../base/error-table.ts";
import type { ExitCode } from "../base/error-table.ts";

/**
 * The meaning of an exit code for a script, for docs/errors.md and for the help of commands.
 * @internal
 */
export const MEANING_OF_EXIT: Readonly<Record<ExitCode, string>> = {
  [EXIT.done]: "done",
  [EXIT.itemsFailed]: "over, and some items failed or were cancelled",
  [EXIT.usage]: "wrong usage or configuration; nothing was started",
  [EXIT.unreachable]: "the coordinator is not reachable, or refused",
  [EXIT.interrupted]: "interrupted; the same command goes on",
  [EXIT.paused]: "paused, by a limit of the run or by an operator",
  [EXIT.storage]: "a database or a file cannot be used or written",
  [EXIT.bug]: "a bug in rollout",
};

const { done, itemsFailed, usage, unreachable, interrupted, paused, storage, bug } = EXIT;

/** The codes of commands that ask a coordinator something. */
const ASKING = [done, usage, unreachable, interrupted] as const;
/** The codes of commands that need no coordinator. */
const LOCAL = [done, usage] as const;

const CODES: Readonly<Record<string, readonly ExitCode[]>> = {
  run: [done, itemsFailed, usage, unreachable, interrupted, paused, storage],
  init: LOCAL,
  completion: LOCAL,
  doctor: [done, usage, unreachable, storage],
  "ca:issue": LOCAL,
  "coordinator:run": [done, usage, unreachable, interrupted, storage],
  "machines:export": LOCAL,
  "machines:list": LOCAL,
  results: [done, itemsFailed, usage, unreachable, interrupted, storage],
  status: [done, itemsFailed, usage, unreachable, interrupted, paused],
  "worker:run": [done, usage, unreachable, interrupted, storage],
};

/** For the command's help, in order. `commandId` has its words apart by colons or, as help has them, by spaces. */
export function exitCodesOf(commandId: string): readonly (readonly [code: string, meaning: string])[] {
  return [...(CODES[commandId.replaceAll(" ", ":")] ?? ASKING), bug].map(
    (code) => [String(code), MEANING_OF_EXIT[code]] as const,
  );
}
