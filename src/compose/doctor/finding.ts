// The findings of an examination: one line for each thing that was looked at, good ones included, so that a person sees what was
// not the cause.
import { RolloutError } from "../../base/errors.ts";

export interface Finding {
  /** The thing that was looked at: `coordinator`, `database`. */
  readonly subject: string;
  /** `warning`: it works, and may soon not. `failure`: something that is needed will not work. */
  readonly verdict: "good" | "warning" | "failure";
  readonly detail: string;
  /** Advice, where it is not that of the row. */
  readonly hint?: string;
  /** The row behind a failure, which says with which exit code a command would have ended. */
  readonly error?: RolloutError;
}

export function good(subject: string, detail: string): Finding {
  return { subject, verdict: "good", detail };
}

export function warning(subject: string, detail: string, hint: string): Finding {
  return { subject, verdict: "warning", detail, hint };
}

/** Findings of the look, or the row that it threw as a finding. Anything else is a bug and goes on. */
export async function examined(
  subject: string,
  look: () => Promise<readonly Finding[]>,
): Promise<readonly Finding[]> {
  try {
    return await look();
  } catch (error) {
    if (!(error instanceof RolloutError)) throw error;
    return [{ subject, verdict: "failure", detail: error.message, error }];
  }
}
