// An error as a person reads it, and as a program does.
import type { RolloutError } from "../../base/errors.ts";
import { printable, redactSecrets } from "../../base/safe-text.ts";

const RED = 31;

/** `error: message (hint)`: one line, without its ending, whatever is in the error. */
export function errorLine(error: RolloutError, colour: boolean): string {
  const label = colour ? `\u001b[${RED}merror:\u001b[0m` : "error:";
  return `${label} ${safe(error.message)} (${safe(error.hint)})`;
}

/** What `--json` prints for it: one that a terminal may be shown. */
export function errorObject(error: RolloutError): object {
  return { error: { code: error.code, message: safe(error.message), hint: safe(error.hint) } };
}

function safe(text: string): string {
  return printable(redactSecrets(text));
}
