// `make proto-baseline WHY="…"`: takes proto/ as it is for the wire contract that later changes are held against, and
// says so in the changelog. Nothing else changes the baseline.
import { execFileSync } from "node:child_process";
import { readFileSync, writeFileSync } from "node:fs";
import { BASELINE, baselineDigest, CHANGELOG } from "./baseline.ts";

const UNRELEASED = "## [Unreleased]";
const HEADING = "### Wire contract";

/** The changelog with one more line under "Wire contract" of what is not released yet. */
function withLine(changelog: string, line: string): string {
  const [before, after] = changelog.split(`${UNRELEASED}\n`);
  if (before === undefined || after === undefined) throw new Error(`${CHANGELOG} has no "${UNRELEASED}"`);
  const end = after.search(/^## \[/m);
  const section = end === -1 ? after : after.slice(0, end);
  const rest = end === -1 ? "" : after.slice(end);
  const changed = section.includes(`${HEADING}\n\n`)
    ? section.replace(`${HEADING}\n\n`, `${HEADING}\n\n${line}\n`)
    : `${section.trimEnd()}\n\n${HEADING}\n\n${line}\n${rest === "" ? "" : "\n"}`;
  return `${before}${UNRELEASED}\n${changed}${rest}`;
}

const why = process.argv.slice(2).join(" ").trim();
if (why === "") {
  console.error('say what changes and why, for the changelog: make proto-baseline WHY="…"');
  process.exitCode = 2;
} else {
  execFileSync("buf", ["build", "--exclude-source-info", "--output", BASELINE], { stdio: "inherit" });
  const digest = baselineDigest();
  const changelog = readFileSync(CHANGELOG, "utf8");
  if (!changelog.includes(digest)) {
    writeFileSync(CHANGELOG, withLine(changelog, `- Baseline \`${digest}\`: ${why}`));
    execFileSync("oxfmt", [CHANGELOG], { stdio: "inherit" });
  }
  console.log(`baseline ${digest}`);
}
