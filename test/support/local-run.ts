// `rollout run` in a directory of its own: an input, a script that executes an item and leaves a line in a journal at its end,
// and the processes that it has started, by the databases that they hold.
import { readFileSync, rmSync, writeFileSync } from "node:fs";
import { readdir, readFile } from "node:fs/promises";
import { join } from "node:path";
import { eventually } from "./eventually.ts";
import { pace, paced } from "./pace.ts";
import { environmentFor, RolloutProcess } from "./rollout-process.ts";
import { runProgram } from "./run-program.ts";
import type { ProgramResult } from "./run-program.ts";
import { withProcesses } from "./temporary-directory.ts";

/**
 * An execution that comes to its end leaves its item's id in the journal, and then gives the item's number back. It does not come to its end
 * while there is a file `held`, but for items up to the number in that.
 */
const SCRIPT = `
item=$(cat)
sleep "\${SECONDS_EACH:-0.02}"
n=\${item##*'"n":'}
n=\${n%%[!0-9]*}
while [ -e held ] && [ "\${n:-1}" -gt "0$(cat held 2>/dev/null)" ]; do sleep 0.02; done
if [ -e broken ]; then echo "it is broken" >&2; exit 3; fi
echo "$ROLLOUT_ITEM_ID" >> journal
echo "$item"
`;
const STATE = "out.jsonl.rollout";
/** Silence is noticed in one and a half seconds, on a quiet machine. */
const QUICK = {
  ROLLOUT_LIVENESS_HEARTBEAT_INTERVAL: "200ms",
  ROLLOUT_LIVENESS_CLOCK_SKEW_BUDGET: "150ms",
  ROLLOUT_LIVENESS_WORKER_SELF_FENCE_TIMEOUT: "1200ms",
  ROLLOUT_LIVENESS_COORDINATOR_FAILURE_TIMEOUT: "1500ms",
};

export interface ResultLine {
  readonly item: string;
  readonly id: string | null;
  readonly ok: boolean;
  readonly output?: unknown;
  readonly error?: { readonly class: string; readonly message: string };
}

export interface PlaceParts {
  readonly secondsEach?: number;
  /** Each is a process to start; one will do where it does not matter. */
  readonly workers?: number;
  /** More for the environment of its processes. */
  readonly env?: Readonly<Record<string, string>>;
}

export class LocalRunPlace {
  readonly directory: string;
  readonly #workers: number;
  readonly #env: Readonly<Record<string, string>>;
  readonly #started: RolloutProcess[] = [];

  constructor(directory: string, { workers, secondsEach, env }: Required<PlaceParts>) {
    this.directory = directory;
    this.#workers = workers;
    // Commands beside it take longer on a busy machine: so do its items.
    this.#env = environmentFor({ ...paced(QUICK), SECONDS_EACH: String(secondsEach * pace()), ...env });
  }

  file(name: string): string {
    return join(this.directory, name);
  }

  /** The items 1 to `count`, each with an id of its own. */
  writeInput(count: number, name = "in.jsonl"): void {
    const lines = Array.from({ length: count }, (_, at) => `{"id":"n${at + 1}","n":${at + 1}}\n`);
    writeFileSync(this.file(name), lines.join(""));
  }

  /** No item after this one ends until all are let go. */
  hold(after = 0): void {
    writeFileSync(this.file("held"), String(after));
  }

  letGo(): void {
    rmSync(this.file("held"));
  }

  /** The environment of its processes, with more in it. */
  environment(more: Readonly<Record<string, string>>): Record<string, string> {
    return { ...this.#env, ...more };
  }

  /** The words of the command, with more flags. */
  words(...flags: string[]): string[] {
    const workers = ["--workers", String(this.#workers)];
    return ["run", "in.jsonl", "-o", "out.jsonl", ...workers, ...flags, "--", "sh", "work.sh"];
  }

  start(...flags: string[]): RolloutProcess {
    return this.launch(this.words(...flags));
  }

  /** `wrapper`: as in `StartOptions`. */
  launch(words: readonly string[], wrapper: readonly string[] = []): RolloutProcess {
    const started = new RolloutProcess(words, { cwd: this.directory, env: this.#env, wrapper });
    this.#started.push(started);
    return started;
  }

  /** The command to its end. */
  run(...flags: string[]): Promise<ProgramResult> {
    return this.runWords(this.words(...flags));
  }

  runWords(words: readonly string[], input?: string): Promise<ProgramResult> {
    const options = { cwd: this.directory, env: this.#env };
    return runProgram("bin/run.js", words, input === undefined ? options : { ...options, input });
  }

  /** The command to its end, which has to be this code. */
  runTo(code: number, ...flags: string[]): Promise<ProgramResult> {
    return this.wordsTo(code, this.words(...flags));
  }

  async wordsTo(code: number, words: readonly string[], input?: string): Promise<ProgramResult> {
    const ended = await this.runWords(words, input);
    if (ended.code === code) return ended;
    throw new Error(`it ended with ${String(ended.code)}, not with ${code}:\n${ended.stdout}${ended.stderr}`);
  }

  /** Some items are done, and the command has left. */
  async begin(): Promise<void> {
    this.hold(2);
    const first = this.start();
    await this.untilResults(2);
    first.send("SIGINT");
    await first.until("its answer", () => first.stderr.find((line) => line.includes("stopping")));
    this.letGo();
    const { code } = await first.ended;
    if (code !== 4) throw new Error(`it ended with ${String(code)}`);
  }

  /** A coordinator of this command, which leads. */
  async lead(words: readonly string[]): Promise<RolloutProcess> {
    const coordinator = this.launch(words);
    await coordinator.event("coordinator_leading");
    return coordinator;
  }

  async results(name = "out.jsonl"): Promise<ResultLine[]> {
    const text = await readFile(this.file(name), "utf8").catch(() => "");
    return text
      .split("\n")
      .slice(0, -1)
      .map((line) => JSON.parse(line) as ResultLine);
  }

  /** Ids of items, one for each execution that came to its end. */
  async journal(): Promise<string[]> {
    const text = await readFile(this.file("journal"), "utf8").catch(() => "");
    return text.split("\n").filter((line) => line !== "");
  }

  /** Results in the output: there are this many or more. */
  async untilResults(count: number): Promise<ResultLine[]> {
    const enough = async (): Promise<ResultLine[] | false> => {
      const results = await this.results();
      return results.length >= count && results;
    };
    return eventually(`${count} results`, enough);
  }

  get coordinatorPid(): number {
    return holderOf(this.file(join(STATE, "rollout.db.lock")));
  }

  async workerPids(): Promise<number[]> {
    const folder = this.file(join(STATE, "state", "workers"));
    const names = (await readdir(folder).catch(() => [] as string[])).filter((name) =>
      name.endsWith(".lock"),
    );
    return names.map((name) => holderOf(join(folder, name)));
  }

  /** All workers have joined. */
  async untilWorkersWork(): Promise<void> {
    const all = async (): Promise<boolean> => (await this.workerPids()).length === this.#workers;
    await eventually(`${this.#workers} workers`, all);
  }

  /** Processes of it that live, whoever their parent is; with this word on their command lines. */
  async processes(word = ""): Promise<number[]> {
    const pids = (await readdir("/proc")).filter((name) => /^\d+$/.test(name));
    const lines = await Promise.all(
      pids.map((pid) => readFile(`/proc/${pid}/cmdline`, "utf8").catch(() => "")),
    );
    const isOfIt = (line = ""): boolean => line.includes(this.file(STATE)) && line.split("\0").includes(word);
    return pids.filter((_, at) => isOfIt(lines[at])).map(Number);
  }

  async untilNobodyIsLeft(): Promise<void> {
    const gone = async (): Promise<boolean> => (await this.processes()).length === 0;
    await eventually("the end of every process", gone);
  }

  async end(): Promise<void> {
    for (const each of this.#started) await each.kill();
    for (const pid of await this.processes()) killIfThere(pid);
    await this.untilNobodyIsLeft();
  }

  describe(): string {
    return this.#started.map((each) => each.describe()).join("\n");
  }
}

/** Gives `use` a place with an input of so many items, and takes everything away at the end. */
export async function withLocalRun(
  { items, secondsEach = 0.02, workers = 1, env = {} }: PlaceParts & { readonly items: number },
  use: (place: LocalRunPlace) => Promise<void>,
): Promise<void> {
  const parts = { secondsEach, workers, env };
  const open = (directory: string): LocalRunPlace => new LocalRunPlace(directory, parts);
  await withProcesses(open, async (place) => {
    place.writeInput(items);
    writeFileSync(place.file("work.sh"), SCRIPT);
    await use(place);
  });
}

function holderOf(lockFile: string): number {
  return (JSON.parse(readFileSync(lockFile, "utf8")) as { pid: number }).pid;
}

export function killIfThere(pid: number): void {
  try {
    process.kill(pid, "SIGKILL");
  } catch {
    // It has ended by itself.
  }
}
