// Golden files stand beside this one, a kind of thing in each. `npm run golden` writes them anew.
import { readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { expect } from "chai";

const LINES_SHOWN = 40;

/** Sections with their titles, in order of the titles. */
export function sectionsText(sections: Readonly<Record<string, string>>): string {
  return Object.entries(sections)
    .toSorted(([one], [other]) => (one < other ? -1 : 1))
    .map(([title, text]) => `## ${title}\n${text.trimEnd()}\n`)
    .join("\n");
}

/** Fails with the lines that differ from the golden file; `GOLDEN=write` in the environment writes the file instead. */
export function expectGolden(name: string, text: string): void {
  const file = join(import.meta.dirname, name);
  if (process.env["GOLDEN"] === "write") return writeFileSync(file, text);
  const golden = readFileSync(file, "utf8");
  if (text === golden) return;
  const differing = [...linesMissing(golden, text, "-"), ...linesMissing(text, golden, "+")];
  const shown = differing.length === 0 ? ["lines are in another order"] : differing.slice(0, LINES_SHOWN);
  const advice = "programs and people rely on this; if the change is wanted, `npm run golden` writes it";
  expect.fail([`${name} is not what it was: ${advice}`, ...shown].join("\n"));
}

/** Lines of `text` that `other` has fewer of. */
function linesMissing(text: string, other: string, sign: string): string[] {
  const there = new Map<string, number>();
  for (const line of other.split("\n")) there.set(line, (there.get(line) ?? 0) + 1);
  return text.split("\n").flatMap((line) => {
    const left = there.get(line) ?? 0;
    there.set(line, left - 1);
    return left > 0 ? [] : [`${sign} ${line}`];
  });
}
