// `npm run house`: how large the house is. Hand-written files and lines of each folder, and words of the documents; generated ones and
// decisions are left out. The last line sums up.
import { globSync, readFileSync } from "node:fs";
import { dirname } from "node:path";

interface Size {
  readonly folder: string;
  readonly lines: number;
}

const TOTALS = {
  "src and machines": /^(src|machines)\b/,
  test: /^test\b/,
  "test/support": /^test\/support\b/,
};

const DOCUMENTS_LEFT_OUT = /^docs\/(adr\/|(CONFIGURATION|EVENTS|errors|MACHINES|plugins|metrics)\.md)/;

const sizes: readonly Size[] = globSync("{src,machines,test}/**/*.ts", { exclude: ["src/gen/**"] }).map(
  (file) => ({
    folder: dirname(file),
    lines: readFileSync(file, "utf8").split("\n").length - 1,
  }),
);

function summed(among: readonly Size[]): string {
  const lines = among.reduce((sum, size) => sum + size.lines, 0);
  return `${String(among.length).padStart(4)} files ${String(lines).padStart(6)} lines`;
}

for (const [folder, among] of Object.entries(Object.groupBy(sizes, (size) => size.folder)).toSorted())
  console.log(`${summed(among ?? [])}  ${folder}`);
const totals = Object.entries(TOTALS).map(
  ([name, pattern]) => `${summed(sizes.filter(({ folder }) => pattern.test(folder)))} in ${name}`,
);
const words = globSync(["README.md", "docs/**/*.md"])
  .filter((file) => !DOCUMENTS_LEFT_OUT.test(file))
  .reduce((sum, file) => sum + wordsIn(readFileSync(file, "utf8")), 0);
console.log([...totals, `${words} words in README and docs`].join(", ").replaceAll(/ +/g, " ").trim());

/** Words have a letter or a digit: the lines of a table have none. */
function wordsIn(text: string): number {
  return text.split(/\s+/).filter((word) => /[\p{L}\p{N}]/u.test(word)).length;
}
