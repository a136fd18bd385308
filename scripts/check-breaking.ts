// `buf breaking` against the committed baseline. While proto/STABILITY says `unstable` a break is told, once it says
// `stable` it fails. A baseline that CHANGELOG.md does not name fails always.
import { spawnSync } from "node:child_process";
import { readFileSync } from "node:fs";
import { BASELINE, baselineDigest, CHANGELOG } from "./baseline.ts";

const STABILITY = "proto/STABILITY";

function stability(): "stable" | "unstable" {
  const [word] = readFileSync(STABILITY, "utf8").split("\n");
  if (word === "stable" || word === "unstable") return word;
  throw new Error(`the first line of ${STABILITY} is "stable" or "unstable", not ${JSON.stringify(word)}`);
}

/** buf's own exit code for "there are findings"; any other is trouble with buf. */
const FINDINGS = 100;

const buf = spawnSync("buf", ["breaking", "--against", BASELINE], { encoding: "utf8" });
const breaks = buf.stdout.trim().split("\n").filter(Boolean);
const digest = baselineDigest();
const isNamed = readFileSync(CHANGELOG, "utf8").includes(digest);
const hasTrouble = buf.status !== 0 && buf.status !== FINDINGS;
const isStable = stability() === "stable";

for (const line of breaks) console.log(line);
if (hasTrouble) console.log(buf.stderr);
if (!isNamed)
  console.log(`${CHANGELOG} does not name the baseline ${digest}: change it with \`make proto-baseline\``);
console.log(
  `${breaks.length} breaks against baseline ${digest}${isStable ? "" : ", allowed while unstable"}`,
);
process.exitCode = hasTrouble || !isNamed || (isStable && breaks.length > 0) ? 1 : 0;
