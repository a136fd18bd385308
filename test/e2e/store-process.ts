// The test's end of a store program: steps go in, answers come out, and it never outlives its test.
import { spawn } from "node:child_process";
import type { ChildProcessByStdio } from "node:child_process";
import { createInterface } from "node:readline";
import type { Readable, Writable } from "node:stream";
import { fileURLToPath } from "node:url";

export type StoreStep =
  | { readonly kind: "put"; readonly key: string; readonly text: string }
  | { readonly kind: "get"; readonly key: string }
  | { readonly kind: "keys" }
  | { readonly kind: "fill" }
  | { readonly kind: "close" };

export type StoreAnswer =
  | { readonly kind: "open"; readonly pid: number }
  | { readonly kind: "committed" | "conflict" | "closed" }
  | { readonly kind: "value"; readonly text: string | null }
  | { readonly kind: "keys"; readonly keys: readonly string[] }
  | { readonly kind: "acknowledged"; readonly number: number }
  | { readonly kind: "after_failure"; readonly outcome: string }
  | { readonly kind: "failed"; readonly code: string; readonly message: string };

export const STORE_PROGRAM = fileURLToPath(new URL("store-program.ts", import.meta.url));

export class StoreProcess {
  readonly #child: ChildProcessByStdio<Writable, Readable, null>;
  readonly #lines: AsyncIterator<string>;
  readonly #exited: Promise<number | null>;

  /** `wrapper`: a command that starts the one behind it, such as `sh -c '… exec "$@"' sh`. */
  constructor(path: string, wrapper: readonly string[] = []) {
    const [command, ...args] = [...wrapper, process.execPath, STORE_PROGRAM, path] as const;
    this.#child = spawn(command, args, { stdio: ["pipe", "pipe", "inherit"] });
    this.#lines = createInterface({ input: this.#child.stdout })[Symbol.asyncIterator]();
    this.#exited = new Promise((resolve, reject) => {
      this.#child.once("error", reject);
      this.#child.once("exit", resolve);
    });
  }

  /** The next answer. Throws when the program has ended without another. */
  async answer(): Promise<StoreAnswer> {
    const line = await this.#lines.next();
    if (line.done === true) throw new Error(`the store program ended with ${String(await this.#exited)}`);
    return JSON.parse(line.value) as StoreAnswer;
  }

  async ask(step: StoreStep): Promise<StoreAnswer> {
    this.#child.stdin.write(`${JSON.stringify(step)}\n`);
    return this.answer();
  }

  /** All answers to its end. */
  async rest(): Promise<StoreAnswer[]> {
    const answers: StoreAnswer[] = [];
    for (let line = await this.#lines.next(); line.done !== true; line = await this.#lines.next()) {
      answers.push(JSON.parse(line.value) as StoreAnswer);
    }
    return answers;
  }

  /** The exit code; null when a signal ended it. */
  exit(): Promise<number | null> {
    return this.#exited;
  }

  async kill(): Promise<void> {
    this.#child.kill("SIGKILL");
    await this.#exited.catch(() => undefined);
  }
}

/** To be called in a `describe`: starts programs, and kills what is left of them after each test. */
export function useStoreProcesses(): (path: string, wrapper?: readonly string[]) => StoreProcess {
  const started: StoreProcess[] = [];
  afterEach(async () => {
    await Promise.all(started.splice(0).map((process) => process.kill()));
  });
  return (path, wrapper) => {
    const process = new StoreProcess(path, wrapper);
    started.push(process);
    return process;
  };
}
