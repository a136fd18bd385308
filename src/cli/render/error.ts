// An error as a person reads it, and as a program does.
import type { RolloutError } from "../../base/errors.ts";
import { printable, redactSecrets } from "../../base/safe-text.ts";
import { configWords } from "../shell-words.ts";

const RED = 31;

/**
 * `error: message (hint)`: one line, without its ending, whatever is in the error. `config` is the configuration as the user has
 * named it.
 */
export function errorLine(error: RolloutError, colour: boolean, config?: string): string {
  const label = colour ? `\u001b[${RED}merror:\u001b[0m` : "error:";
  return `${label} ${safe(error.message)} (${safe(error.hintWith(configWords(config)))})`;
}

/** The object that `--json` prints for it, fit for a terminal. */
export function errorObject(error: RolloutError, config?: string): object {
  const hint = safe(error.hintWith(configWords(config)));
  return { error: { code: error.code, message: safe(error.message), hint } };
}

function safe(text: string): string {
  return printable(redactSecrets(text));
}
