// Processes of a peer: one that produces, and others that work. Each says when it is ready and how far it is, by messages.
import { fork } from "node:child_process";
import type { ChildProcess } from "node:child_process";
import { systemClock } from "../../../src/base/clock.ts";

/** Messages from a process. */
export type Said = "ready" | "produced" | { readonly done: number } | { readonly kept: number };
/** Orders to the producer: enqueue the items, or count the results that are kept. */
export type Asked = "produce" | "count";

export class Staff {
  readonly #children: ChildProcess[] = [];
  readonly #done = new Map<ChildProcess, number>();
  readonly #waiting = new Set<() => void>();
  #producer: ChildProcess | undefined;
  #failure: Error | undefined;
  #hasProduced = false;
  #kept: number | undefined;
  #lastMs = 0;

  /** Resolves with the pid of the producer, which waits for `produce`. */
  async startProducer(program: string, args: readonly string[]): Promise<number> {
    this.#producer = await this.#start(program, ["producer", ...args]);
    return this.#producer.pid ?? 0;
  }

  async startWorkers(program: string, args: readonly string[], count: number): Promise<readonly number[]> {
    const starts = Array.from({ length: count }, () => this.#start(program, ["worker", ...args]));
    return (await Promise.all(starts)).map(({ pid }) => pid ?? 0);
  }

  async produce(): Promise<void> {
    this.#ask("produce");
    await this.#until(() => this.#hasProduced);
  }

  /** As the producer finds them. */
  async countResults(): Promise<number> {
    this.#ask("count");
    await this.#until(() => this.#kept !== undefined);
    return this.#kept ?? 0;
  }

  /** Resolves with the moment at which the last of them was heard of. */
  async untilDone(count: number): Promise<number> {
    await this.#until(() => [...this.#done.values()].reduce((sum, some) => sum + some, 0) >= count);
    return this.#lastMs;
  }

  async end(): Promise<void> {
    for (const child of this.#children) {
      if (child.exitCode !== null || child.signalCode !== null) continue;
      child.removeAllListeners("exit");
      const exited = new Promise((resolve) => child.once("exit", resolve));
      child.kill("SIGKILL");
      await exited;
    }
  }

  #ask(asked: Asked): void {
    this.#producer?.send(asked);
  }

  async #start(program: string, args: readonly string[]): Promise<ChildProcess> {
    const child = fork(program, [...args], { stdio: ["ignore", "ignore", "inherit", "ipc"] });
    this.#children.push(child);
    let isReady = false;
    child.on("message", (said: Said) => {
      if (said === "ready") isReady = true;
      else if (said === "produced") this.#hasProduced = true;
      else if ("kept" in said) this.#kept = said.kept;
      else {
        this.#done.set(child, said.done);
        this.#lastMs = systemClock.monotonicMs();
      }
      this.#look();
    });
    child.on("exit", (code, signal) => {
      this.#failure ??= new Error(`${program} ended by itself with ${signal ?? code}`);
      this.#look();
    });
    await this.#until(() => isReady);
    return child;
  }

  #look(): void {
    for (const look of this.#waiting) look();
  }

  async #until(isSo: () => boolean): Promise<void> {
    await new Promise<void>((resolve, reject) => {
      const look = (): void => {
        if (this.#failure === undefined && !isSo()) return;
        this.#waiting.delete(look);
        if (this.#failure === undefined) resolve();
        else reject(this.#failure);
      };
      this.#waiting.add(look);
      look();
    });
  }
}
