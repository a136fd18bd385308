// The findings of an examination: one line for each thing that was looked at, good ones included, so that a person sees what was
// not the cause; and how they are shown.
import { RolloutError } from "../../base/errors.ts";
import { printable } from "../../base/safe-text.ts";
import { configWords } from "../../cli/shell-words.ts";

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

const SIGNS = { good: "ok  ", warning: "warn", failure: "FAIL" } as const;

/** One line a finding, and what to do under it; then what it comes to. `config`: the configuration as the user has named it. */
export function findingsText(findings: readonly Finding[], config?: string): string {
  const columns = Math.max(...findings.map(({ subject }) => subject.length));
  const lines = findings.flatMap((finding) => {
    const { verdict, subject, detail } = finding;
    const hint = hintOf(finding, config);
    return [
      `${SIGNS[verdict]}  ${subject.padEnd(columns)}  ${printable(detail)}`,
      ...(hint === undefined ? [] : [`${" ".repeat(columns + 8)}→ ${printable(hint)}`]),
    ];
  });
  const count = (verdict: Finding["verdict"]): number =>
    findings.filter((finding) => finding.verdict === verdict).length;
  const [failures, warnings] = [count("failure"), count("warning")];
  const sum =
    failures + warnings === 0
      ? "everything is in place"
      : `${counted(failures, "error")}, ${counted(warnings, "warning")}`;
  return `${lines.join("\n")}\n\n${sum}\n`;
}

/** "0 errors", "1 warning" */
function counted(count: number, what: string): string {
  return `${count} ${what}${count === 1 ? "" : "s"}`;
}

export function findingObject(finding: Finding, config?: string): object {
  const { subject, verdict, detail, error } = finding;
  return { subject, verdict, detail, hint: hintOf(finding, config) ?? null, code: error?.code ?? null };
}

function hintOf({ hint, error }: Finding, config: string | undefined): string | undefined {
  return hint ?? error?.hintWith(configWords(config));
}
