// A coordinator or a worker as a process of its own: its events as they come, and its end.
import { spawn } from "node:child_process";
import type { ChildProcess } from "node:child_process";
import { createInterface } from "node:readline";
import { systemClock } from "../../src/base/clock.ts";

/** A line of the event stream: `topic`, and what docs/EVENTS.md says of it. */
export type ClusterEvent = Readonly<Record<string, unknown>>;

/** Nothing here takes half as long. */
const PATIENCE_MS = 20_000;
const STOP_PATIENCE_MS = 8_000;

export class Member {
  readonly #name: string;
  readonly #child: ChildProcess;
  readonly #events: ClusterEvent[] = [];
  readonly #listeners = new Set<(event: ClusterEvent) => void>();
  readonly #ended: Promise<void>;
  #lastWords = "";
  #isToEnd = false;

  constructor(
    program: string,
    words: readonly string[],
    place: { readonly cwd: string; readonly env: NodeJS.ProcessEnv },
  ) {
    this.#name = `rollout ${words.join(" ")}`;
    this.#child = spawn(process.execPath, [program, ...words], {
      ...place,
      stdio: ["ignore", "pipe", "pipe"],
    });
    const { stdout, stderr } = this.#child;
    if (stdout !== null) createInterface({ input: stdout }).on("line", (line) => this.#take(line));
    if (stderr !== null)
      createInterface({ input: stderr }).on("line", (line) => {
        this.#lastWords = line;
      });
    this.#ended = new Promise((resolve) => {
      this.#child.once("error", () => resolve());
      this.#child.once("exit", () => resolve());
    });
  }

  get pid(): number {
    return this.#child.pid ?? 0;
  }

  onEvent(listener: (event: ClusterEvent) => void): void {
    this.#listeners.add(listener);
  }

  /** The first event of the topic, of this worker when one is named, whether it was there before or is yet to come. */
  event(topic: string, workerId?: string): Promise<ClusterEvent> {
    const matches = (event: ClusterEvent): boolean =>
      event["topic"] === topic && (workerId === undefined || event["worker_id"] === workerId);
    const known = this.#events.find(matches);
    return known === undefined ? this.#await(topic, matches) : Promise.resolve(known);
  }

  /** The next event of the topic, from now on. */
  nextEvent(topic: string): Promise<ClusterEvent> {
    return this.#await(topic, (event) => event["topic"] === topic);
  }

  /** Rejects when the process ends although nobody has told it to. Never resolves. */
  get untimelyEnd(): Promise<never> {
    return this.#ended.then(() => {
      if (this.#isToEnd) return new Promise<never>(() => undefined);
      throw new Error(`\`${this.#name}\` has ended; its last words: ${this.#lastWords}`);
    });
  }

  /** `kill -9` */
  kill(): void {
    this.#isToEnd = true;
    this.#child.kill("SIGKILL");
  }

  /** In good order if it will, and else by force. Idempotent. */
  async stop(): Promise<void> {
    if (!this.#isToEnd) this.#child.kill("SIGTERM");
    this.#isToEnd = true;
    const force = systemClock.after(STOP_PATIENCE_MS, () => this.#child.kill("SIGKILL"));
    await this.#ended;
    force.cancel();
  }

  #take(line: string): void {
    const event = JSON.parse(line) as ClusterEvent;
    if (event["topic"] !== "worker_heartbeat") this.#events.push(event);
    for (const listener of [...this.#listeners]) listener(event);
  }

  #await(topic: string, matches: (event: ClusterEvent) => boolean): Promise<ClusterEvent> {
    const found = new Promise<ClusterEvent>((resolve, reject) => {
      const giveUp = (): void => {
        this.#listeners.delete(listen);
        reject(new Error(`\`${this.#name}\` said nothing of ${topic} for ${PATIENCE_MS / 1_000} s`));
      };
      const deadline = systemClock.after(PATIENCE_MS, giveUp, { background: true });
      const listen = (event: ClusterEvent): void => {
        if (!matches(event)) return;
        deadline.cancel();
        this.#listeners.delete(listen);
        resolve(event);
      };
      this.#listeners.add(listen);
    });
    return Promise.race([found, this.untimelyEnd]);
  }
}
