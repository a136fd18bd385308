// `npm run mutate -- [--only ROOM,ROOM] [--every N] [--json]`: plants one mistake after the other into the charts, the ledger, the lease, the
// steal, the drain and the fence, and runs the tests that have to notice. A mutant that no test notices has survived: it is listed,
// unless scripts/mutation/survivors.json says why: it changes nothing that is promised, or processes of the built program notice it. Ends with 1 when one is listed. `--every 5` plants each fifth only.
//
// The file on the disk stays as it is: a loader changes the module as it is read. One process after the other, each of a lower priority.
import { spawn } from "node:child_process";
import { globSync, readFileSync } from "node:fs";
import { setPriority } from "node:os";
import { join, resolve } from "node:path";
import { parseArgs } from "node:util";
import { systemClock } from "../src/base/clock.ts";
import { mutantsOf } from "./mutation/mutants.ts";
import type { Mutant } from "./mutation/mutants.ts";
import { ROOMS } from "./mutation/rooms.ts";
import type { Room } from "./mutation/rooms.ts";

/** A mutant under which tests take so many times as long goes round for ever, and was noticed; never after less than a minute. */
const SLOWER_MAX = 10;
const LIMIT_MS_MIN = 60_000;
const LOWER_PRIORITY = 10;
const EXPLAINED_FILE = join(import.meta.dirname, "mutation/survivors.json");
const LOADER = join(import.meta.dirname, "mutation/mutant-loader.ts");
const MOCHA = "node_modules/mocha/bin/mocha.js";

interface Score {
  readonly room: string;
  mutants: number;
  killed: number;
  explained: number;
  readonly survivors: string[];
}

const { values } = parseArgs({
  options: {
    only: { type: "string" },
    every: { type: "string", default: "1" },
    json: { type: "boolean", default: false },
  },
});
const explained = JSON.parse(readFileSync(EXPLAINED_FILE, "utf8")) as Readonly<Record<string, string>>;
const wanted = values.only?.split(",");
const scores: Score[] = [];
for (const room of ROOMS.filter(({ name }) => wanted?.includes(name) ?? true)) {
  const score = await scoreOf(room);
  scores.push(score);
  console.log(values.json ? JSON.stringify(score) : lineOf(score));
}
process.exitCode = scores.some(({ survivors }) => survivors.length > 0) ? 1 : 0;

async function scoreOf(room: Room): Promise<Score> {
  const limitMs = await limitOf(room);
  const score: Score = { room: room.name, mutants: 0, killed: 0, explained: 0, survivors: [] };
  for (const file of globSync([...room.files]).toSorted()) {
    const source = readFileSync(file, "utf8");
    const mutants = mutantsOf(source, file.startsWith("machines/"));
    for (const mutant of mutants.filter((_, at) => at % Number(values.every) === 0)) {
      score.mutants++;
      const name = nameOf(file, source, mutant);
      if (await isKilled(room, file, mutant, limitMs)) score.killed++;
      else if (name in explained) score.explained++;
      else {
        score.survivors.push(name);
        console.error(`${file}:${mutant.line} survived: ${name}`);
      }
    }
  }
  return score;
}

/** The same for as long as the line reads the same. A place with a number is the second or a later one of its kind in the line. */
function nameOf(file: string, source: string, { start, line, change }: Mutant): string {
  const text = source.split("\n")[line - 1] ?? "";
  const column = start - (source.lastIndexOf("\n", start - 1) + 1);
  return `${file} | ${text.trim()} | ${change} | ${column - (text.length - text.trimStart().length)}`;
}

/** By how long its tests take. Where they fail without a mutant, every mutant would count as killed. */
async function limitOf({ name, tests }: Room): Promise<number> {
  const startMs = systemClock.monotonicMs();
  if (!(await passes(tests.flat(), {}, undefined)))
    throw new Error(`${name}: its tests fail before anything is planted`);
  return Math.max(LIMIT_MS_MIN, SLOWER_MAX * (systemClock.monotonicMs() - startMs));
}

async function isKilled(
  { tests }: Room,
  file: string,
  { start, end, text }: Mutant,
  limitMs: number,
): Promise<boolean> {
  const env = { ROLLOUT_MUTANT: JSON.stringify({ file: resolve(file), start, end, text }) };
  for (const files of tests) if (!(await passes(files, env, limitMs))) return true;
  return false;
}

function passes(
  files: readonly string[],
  env: Readonly<Record<string, string>>,
  limitMs: number | undefined,
): Promise<boolean> {
  const planted = "ROLLOUT_MUTANT" in env ? ["--import", LOADER] : [];
  const words = [...planted, MOCHA, "--bail", "--reporter", "dot", ...files];
  // In a group of its own, so that a process that a test has started does not outlive it.
  const child = spawn(process.execPath, words, {
    env: { ...process.env, ...env },
    stdio: "ignore",
    detached: true,
  });
  const { pid } = child;
  if (pid !== undefined) setPriority(pid, LOWER_PRIORITY);
  const end = (): void => {
    try {
      if (pid !== undefined) process.kill(-pid, "SIGKILL");
    } catch {
      // The group has ended.
    }
  };
  return new Promise((done) => {
    const timer = limitMs === undefined ? undefined : systemClock.after(limitMs, end);
    child.once("exit", (code) => {
      timer?.cancel();
      end();
      done(code === 0);
    });
  });
}

function lineOf({ room, mutants, killed, explained: known, survivors }: Score): string {
  const share = mutants === 0 ? 100 : (100 * (killed + known)) / mutants;
  return `${room}: ${mutants} mutants, ${killed} killed, ${known} explained, ${survivors.length} survived (${share.toFixed(1)} %)`;
}
