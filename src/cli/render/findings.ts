// What `doctor` has found, for a person and for a program.
import { printable } from "../../base/safe-text.ts";

/** Of src/compose/doctor, which stands above this layer. */
interface ShownFinding {
  readonly subject: string;
  readonly verdict: "good" | "warning" | "failure";
  readonly detail: string;
  readonly hint?: string;
  readonly error?: { readonly code: string };
}

const SIGNS = { good: "ok  ", warning: "warn", failure: "FAIL" } as const;

/** One line a finding, and what to do under it; then what it comes to. */
export function findingsText(findings: readonly ShownFinding[]): string {
  const columns = Math.max(...findings.map(({ subject }) => subject.length));
  const lines = findings.flatMap(({ verdict, subject, detail, hint }) => [
    `${SIGNS[verdict]}  ${subject.padEnd(columns)}  ${printable(detail)}`,
    ...(hint === undefined ? [] : [`${" ".repeat(columns + 8)}→ ${printable(hint)}`]),
  ]);
  const count = (verdict: ShownFinding["verdict"]): number =>
    findings.filter((finding) => finding.verdict === verdict).length;
  const [failures, warnings] = [count("failure"), count("warning")];
  const sum =
    failures + warnings === 0 ? "everything is in order" : `${failures} to mend, ${warnings} to mind`;
  return `${lines.join("\n")}\n\n${sum}\n`;
}

export function findingObject({ subject, verdict, detail, hint, error }: ShownFinding): object {
  return { subject, verdict, detail, hint: hint ?? null, code: error?.code ?? null };
}
