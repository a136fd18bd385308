// One process of the smoke: what it says, as events and log lines, and its end. Every wait ends with the process.
import { createInterface } from "node:readline";
import type { Readable } from "node:stream";
import type { EventPayloads, Topic } from "../../src/observe/events.ts";
import type { Started } from "./launcher.ts";

type Line = Readonly<Record<string, unknown>>;

const LAST_WORDS = 12;
const SHOWN_CHARACTERS = 240;

export class Member {
  readonly name: string;
  /** Everything on its standard output that is an event. */
  readonly events: Line[] = [];
  readonly #started: Started;
  readonly #said: string[] = [];
  readonly #log: Line[] = [];
  readonly #listeners = new Set<() => void>();
  readonly #ended = Promise.withResolvers<number | null>();
  #isOver = false;

  constructor(name: string, started: Started) {
    this.name = name;
    this.#started = started;
    this.#read(started.child.stdout, this.events);
    this.#read(started.child.stderr, this.#log);
    started.child.once("error", (error) => void this.#said.push(String(error)));
    started.child.once("close", (code) => {
      this.#isOver = true;
      this.#ended.resolve(code);
      this.#changed();
    });
  }

  /** Undefined when it could not be started. */
  get pid(): number | undefined {
    return this.#started.child.pid;
  }

  get isRunning(): boolean {
    return !this.#isOver;
  }

  /** Null when a signal ended it. */
  get ended(): Promise<number | null> {
    return this.#ended.promise;
  }

  /** The events of this topic so far. */
  seen<T extends Topic>(topic: T): readonly EventPayloads[T][] {
    return this.events.filter((event) => event["topic"] === topic) as unknown as EventPayloads[T][];
  }

  /** The first event of the topic that fits, whether it was there before or is yet to come. */
  event<T extends Topic>(
    topic: T,
    fits: (event: EventPayloads[T]) => boolean = () => true,
  ): Promise<EventPayloads[T]> {
    return this.#until(topic, () => this.seen(topic).find(fits));
  }

  /** The first that is yet to come. */
  nextEvent<T extends Topic>(
    topic: T,
    fits: (event: EventPayloads[T]) => boolean,
  ): Promise<EventPayloads[T]> {
    const before = this.seen(topic).length;
    return this.#until(topic, () => this.seen(topic).slice(before).find(fits));
  }

  /** Its id, as its first log line says it. */
  workerId(): Promise<string> {
    return this.#until("its identity", () => {
      const id = this.#log.find(({ incarnation }) => incarnation !== undefined)?.["worker_id"];
      return typeof id === "string" ? id : undefined;
    });
  }

  /** Asks it to leave. */
  terminate(): Promise<void> {
    return this.#started.signal("SIGTERM");
  }

  /** In good order. Throws when it does not end well. */
  async stop(): Promise<void> {
    await this.terminate();
    const code = await this.ended;
    if (code !== 0) throw new Error(`${this.name} was told to stop, and ended with ${String(code)}`);
  }

  /** By force, and at once. Idempotent. */
  async kill(): Promise<void> {
    if (this.#isOver) return;
    await this.#started.signal("SIGKILL").catch(() => undefined);
    this.#started.child.kill("SIGKILL");
    await this.ended;
  }

  /** Its latest lines, but for heartbeats. */
  get lastWords(): string {
    return this.#said
      .slice(-LAST_WORDS)
      .map((line) => `  ${this.name} | ${line.slice(0, SHOWN_CHARACTERS)}`)
      .join("\n");
  }

  #until<Value>(wanted: string, look: () => Value | undefined): Promise<Value> {
    return new Promise((resolve, reject) => {
      const check = (): void => {
        const value = look();
        if (value === undefined && !this.#isOver) return;
        this.#listeners.delete(check);
        if (value === undefined) reject(new Error(`${this.name} has ended before ${wanted}`));
        else resolve(value);
      };
      this.#listeners.add(check);
      check();
    });
  }

  #read(stream: Readable | null, lines: Line[]): void {
    if (stream === null) return;
    createInterface({ input: stream }).on("line", (text) => {
      const line = parsed(text);
      if (line?.["topic"] !== "worker_heartbeat") this.#said.push(text);
      if (line !== undefined) lines.push(line);
      this.#changed();
    });
  }

  #changed(): void {
    for (const listener of [...this.#listeners]) listener();
  }
}

function parsed(text: string): Line | undefined {
  try {
    const value: unknown = JSON.parse(text);
    return typeof value === "object" && value !== null ? { ...value } : undefined;
  } catch {
    return undefined;
  }
}
