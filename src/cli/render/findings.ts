// The findings of `doctor`, for a person and for a program.
import type { RolloutError } from "../../base/errors.ts";
import { printable } from "../../base/safe-text.ts";
import { configWords } from "../shell-words.ts";

/** A finding of src/compose/doctor, which stands above this layer. */
interface ShownFinding {
  readonly subject: string;
  readonly verdict: "good" | "warning" | "failure";
  readonly detail: string;
  readonly hint?: string;
  readonly error?: RolloutError;
}

const SIGNS = { good: "ok  ", warning: "warn", failure: "FAIL" } as const;

/** One line a finding, and what to do under it; then what it comes to. `config`: the configuration as the user has named it. */
export function findingsText(findings: readonly ShownFinding[], config?: string): string {
  const columns = Math.max(...findings.map(({ subject }) => subject.length));
  const lines = findings.flatMap((finding) => {
    const { verdict, subject, detail } = finding;
    const hint = hintOf(finding, config);
    return [
      `${SIGNS[verdict]}  ${subject.padEnd(columns)}  ${printable(detail)}`,
      ...(hint === undefined ? [] : [`${" ".repeat(columns + 8)}→ ${printable(hint)}`]),
    ];
  });
  const count = (verdict: ShownFinding["verdict"]): number =>
    findings.filter((finding) => finding.verdict === verdict).length;
  const [failures, warnings] = [count("failure"), count("warning")];
  const sum =
    failures + warnings === 0 ? "everything is in order" : `${failures} to mend, ${warnings} to mind`;
  return `${lines.join("\n")}\n\n${sum}\n`;
}

export function findingObject(finding: ShownFinding, config?: string): object {
  const { subject, verdict, detail, error } = finding;
  return { subject, verdict, detail, hint: hintOf(finding, config) ?? null, code: error?.code ?? null };
}

function hintOf({ hint, error }: ShownFinding, config: string | undefined): string | undefined {
  return hint ?? error?.hintWith(configWords(config));
}
