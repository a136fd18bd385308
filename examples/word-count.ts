// `make run`: what `rollout run` is for, on this machine and in less than a minute. The words of some texts are counted by a
// shell script; in the middle a worker is preempted and the coordinator is killed; and at the end it is counted, from a journal
// that each execution leaves a line in, what was lost and what was done twice. Both are nothing.
import { spawn } from "node:child_process";
import type { ChildProcess } from "node:child_process";
import { existsSync } from "node:fs";
import { mkdtemp, readdir, readFile, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { sleep, systemClock } from "../src/base/clock.ts";

const HERE = fileURLToPath(new URL("word-count/", import.meta.url));
const PROGRAM = fileURLToPath(new URL("../bin/run.js", import.meta.url));
const BUILT = fileURLToPath(new URL("../dist/src/cli/main.js", import.meta.url));
const TEXTS = join(HERE, "texts.txt");
const WORKERS = 3;
/** When what happens, as parts of all items. */
const PREEMPTION_AT = 0.25;
const KILL_AT = 0.55;
const POLL_MS = 50;

interface Result {
  readonly item: string;
  readonly ok: boolean;
  readonly output: unknown;
  readonly attempt: number;
}

class Show {
  readonly #directory: string;
  readonly #happened: string[] = [];
  #running: ChildProcess | undefined;
  #isInterrupted = false;

  constructor(directory: string) {
    this.#directory = directory;
  }

  get happened(): readonly string[] {
    return this.#happened;
  }

  get isInterrupted(): boolean {
    return this.#isInterrupted;
  }

  /** The command is told as well, unless the terminal has told it already: twice would mean at once. */
  interrupt(signal: "SIGINT" | "SIGTERM"): void {
    this.#isInterrupted = true;
    if (signal === "SIGTERM" || !process.stdin.isTTY) this.#running?.kill(signal);
  }

  /** Runs the command to its end; its progress is shown as it shows it itself. */
  async run(): Promise<number | null> {
    const script = join(HERE, "count.sh");
    const words = ["run", TEXTS, "--text", "-o", this.file("counts.jsonl"), "--workers", String(WORKERS)];
    say(`$ rollout ${[...words, "--", "sh", script].join(" ")}`);
    const own = Object.entries(process.env).filter(([name]) => !name.startsWith("ROLLOUT_"));
    const env = { ...Object.fromEntries(own), WORD_COUNT_JOURNAL: this.file("journal.txt") };
    const child = spawn(process.execPath, [PROGRAM, ...words, "--", "sh", script], {
      env,
      stdio: ["ignore", "inherit", "inherit"],
    });
    this.#running = child;
    return new Promise((resolve, reject) => {
      child.once("error", reject);
      child.once("close", resolve);
    });
  }

  /** The troubles of the cluster while it works. Ends when they have come, or `signal` aborts. */
  async disturb(items: number, signal: AbortSignal): Promise<void> {
    await this.#until(items * PREEMPTION_AT, signal);
    const [worker] = await this.#holders(join("counts.jsonl.rollout", "state", "workers"));
    if (worker !== undefined && !signal.aborted) {
      process.kill(worker, "SIGTERM");
      this.#happened.push(`a worker (pid ${worker}) was preempted when a quarter was done`);
    }
    await this.#until(items * KILL_AT, signal);
    const [coordinator] = await this.#holders("counts.jsonl.rollout", "rollout.db.lock");
    if (coordinator !== undefined && !signal.aborted) {
      process.kill(coordinator, "SIGKILL");
      this.#happened.push(`the coordinator (pid ${coordinator}) was killed by kill -9 when half was done`);
    }
  }

  /** The ids of items in the order in which executions of them came to their end. */
  async executed(): Promise<string[]> {
    const journal = await readFile(this.file("journal.txt"), "utf8").catch(() => "");
    return journal.split("\n").flatMap((line) => line.split(" ", 1)[0] || []);
  }

  async results(): Promise<Result[]> {
    const text = await readFile(this.file("counts.jsonl"), "utf8");
    return linesOf(text).map((line) => JSON.parse(line) as Result);
  }

  file(name: string): string {
    return join(this.#directory, name);
  }

  async #until(executions: number, signal: AbortSignal): Promise<void> {
    while (!signal.aborted && (await this.executed()).length < executions)
      await sleep(systemClock, POLL_MS, signal);
  }

  /** Processes that hold a database there: `<database>.lock` beside it says so. */
  async #holders(folder: string, name?: string): Promise<number[]> {
    const names = name === undefined ? await readdir(this.file(folder)) : [name];
    const locks = names.filter((each) => each.endsWith(".lock")).sort();
    const texts = await Promise.all(locks.map((lock) => readFile(join(this.file(folder), lock), "utf8")));
    return texts.map((text) => (JSON.parse(text) as { pid: number }).pid);
  }
}

/** Whether nothing was lost and nothing was done twice; says what was found. */
async function report(show: Show, texts: readonly string[], tookMs: number): Promise<boolean> {
  const [results, executed] = [await show.results(), await show.executed()];
  const finished = new Set(results.filter(({ ok }) => ok).map(({ item }) => item));
  const words = results.reduce((sum, { output }) => sum + Number(output), 0);
  const expected = texts.reduce((sum, text) => sum + text.trim().split(/\s+/).length, 0);
  const repeated = executed.length - new Set(executed).size;
  const lost = texts.length - finished.size;
  const attempts = results.reduce((sum, { attempt }) => sum + attempt, 0);
  say("");
  for (const sentence of show.happened) say(`- ${sentence}`);
  say(`- ${texts.length} texts, ${attempts} attempts, ${executed.length} executions that came to their end`);
  say(
    `- ${lost} lost, ${repeated} executed twice, ${results.length - finished.size} results twice or failed`,
  );
  say(`- ${words} words counted, ${expected} there are`);
  say(`- ${(tookMs / 1_000).toFixed(1)} s`);
  return lost === 0 && repeated === 0 && results.length === finished.size && words === expected;
}

async function perform(show: Show): Promise<number> {
  const texts = linesOf(await readFile(TEXTS, "utf8"));
  say(
    `Counting the words of ${texts.length} texts with ${WORKERS} workers. One will be preempted, and the coordinator killed.`,
  );
  const startedAtMs = systemClock.monotonicMs();
  const over = new AbortController();
  const disturbing = show.disturb(texts.length, over.signal);
  const code = await show.run();
  over.abort();
  await disturbing;
  if (show.isInterrupted) return 4;
  if (code !== 0) throw new Error(`\`rollout run\` ended with ${String(code)}`);
  const isRight = await report(show, texts, systemClock.monotonicMs() - startedAtMs);
  if (!isRight || show.happened.length < 2) throw new Error("that is not what was promised");
  say("\nThe same command once more:");
  const again = await show.run();
  if (again !== 0) throw new Error(`the second time it ended with ${String(again)}`);
  return 0;
}

function linesOf(text: string): string[] {
  return text.split("\n").filter((line) => line.trim() !== "");
}

function say(sentence: string): void {
  process.stdout.write(`${sentence}\n`);
}

/** The exit code. */
async function main(): Promise<number> {
  if (!existsSync(BUILT)) {
    console.error("error: nothing is built (run `make run`, or `make build` first)");
    return 2;
  }
  const directory = await mkdtemp(join(tmpdir(), "rollout-word-count-"));
  const show = new Show(directory);
  for (const signal of ["SIGINT", "SIGTERM"] as const) process.on(signal, () => show.interrupt(signal));
  process.stdout.on("error", () => show.interrupt("SIGTERM"));
  try {
    return await perform(show);
  } catch (error) {
    if (!show.isInterrupted) say(`It went wrong: ${error instanceof Error ? error.message : String(error)}`);
    return show.isInterrupted ? 4 : 1;
  } finally {
    await rm(directory, { recursive: true, force: true });
    say("Every process has ended, and the directory is gone.");
  }
}

process.exitCode = await main();
