// One process of the built program, as a test sees it: its events, its log and its end. Every wait is for something that
// the process says or does, is bounded, and fails with what was seen instead.
import { spawn } from "node:child_process";
import type { ChildProcess } from "node:child_process";
import { readFileSync } from "node:fs";
import { createInterface } from "node:readline";
import type { Readable } from "node:stream";
import { fileURLToPath } from "node:url";
import type { EventPayloads, Topic } from "../../src/observe/events.ts";

/** Longer than anything takes on a busy machine: a wait that reaches it has failed. */
const PATIENCE_MS = 120_000;
/** How much of what was seen a failure shows. */
const SHOWN_LINES = 25;

const BUILT_PROGRAM = fileURLToPath(new URL("../../bin/run.js", import.meta.url));

interface EventHead<T extends Topic> {
  readonly topic: T;
  readonly ts: string;
  readonly run_id: string;
  readonly level: string;
}

export type DomainEvent<T extends Topic = Topic> = { [Each in T]: EventHead<Each> & EventPayloads[Each] }[T];

export type LogLine = Readonly<Record<string, unknown>> & {
  readonly level: string;
  readonly message: string;
};

export interface Ending {
  /** Null when a signal ended it. */
  readonly code: number | null;
  readonly signal: NodeJS.Signals | null;
}

export interface StartOptions {
  /** The script to run in place of the built program. */
  readonly program?: string;
  readonly cwd: string;
  readonly env?: Readonly<Record<string, string>>;
  /** Where standard output goes instead of to this test. */
  readonly stdout?: number;
  /** A command that starts the one behind it, such as `sh -c '… exec "$@"' sh`. */
  readonly wrapper?: readonly string[];
}

type Fields = Readonly<Record<string, unknown>>;

export class RolloutProcess {
  /** Every event since its start. */
  readonly events: DomainEvent[] = [];
  /** Lines of standard error that are log lines. */
  readonly log: LogLine[] = [];
  /** Standard error, line by line. */
  readonly stderr: string[] = [];
  /** Standard output, line by line. */
  readonly stdout: string[] = [];
  readonly #name: string;
  readonly #child: ChildProcess;
  readonly #listeners = new Set<() => void>();
  readonly #closed: Promise<void>;
  #ending: Ending | undefined;

  constructor(args: readonly string[], options: StartOptions) {
    const { wrapper: [command, ...words] = [] } = options;
    const before = command === undefined ? [] : [...words, process.execPath];
    this.#name = `rollout ${args.slice(0, 2).join(" ")}`;
    this.#child = spawn(command ?? process.execPath, [...before, options.program ?? BUILT_PROGRAM, ...args], {
      cwd: options.cwd,
      env: environmentFor(options.env),
      stdio: ["ignore", options.stdout ?? "pipe", "pipe"],
    });
    this.#read(this.#child.stdout, (line) => this.#takeOutput(line));
    this.#read(this.#child.stderr, (line) => this.#takeError(line));
    this.#closed = new Promise((resolve, reject) => {
      this.#child.once("error", reject);
      this.#child.once("close", (code, signal) => {
        this.#ending = { code, signal };
        this.#changed();
        resolve();
      });
    });
  }

  get pid(): number {
    const { pid } = this.#child;
    if (pid === undefined) throw new Error(`${this.#name} did not start`);
    return pid;
  }

  get isRunning(): boolean {
    return this.#ending === undefined;
  }

  /** Its end, when everything that it said has been read. */
  get ended(): Promise<Ending> {
    return this.until("its end", () => this.#ending);
  }

  /** Memory that it has in use, in bytes. */
  get residentBytes(): number {
    const kib = /^VmRSS:\s+(\d+) kB$/m.exec(readFileSync(`/proc/${this.pid}/status`, "utf8"))?.[1];
    return Number(kib) * 1_024;
  }

  /** The events of one topic so far that have these fields. */
  seen<T extends Topic>(topic: T, where: Partial<EventPayloads[T]> = {}): DomainEvent<T>[] {
    const found = this.events.filter((event) => event.topic === topic && hasFields({ ...event }, where));
    // The topic says which payload it is.
    return found as unknown as DomainEvent<T>[];
  }

  /** The first event of the topic with these fields, whether it was there before or is yet to come. */
  event<T extends Topic>(topic: T, where: Partial<EventPayloads[T]> = {}): Promise<DomainEvent<T>> {
    return this.until(`${topic} ${JSON.stringify(where)}`, () => this.seen(topic, where)[0]);
  }

  /** The next event of the topic with these fields: one that has not come yet. */
  nextEvent<T extends Topic>(topic: T, where: Partial<EventPayloads[T]> = {}): Promise<DomainEvent<T>> {
    const before = this.seen(topic, where).length;
    return this.until(`another ${topic} ${JSON.stringify(where)}`, () => this.seen(topic, where)[before]);
  }

  /** The first log line with these fields, whether it was there before or is yet to come. */
  logLine(where: Fields): Promise<LogLine> {
    const found = (): LogLine | undefined => this.log.find((line) => hasFields(line, where));
    return this.until(`a log line with ${JSON.stringify(where)}`, found);
  }

  /** Resolves with the first value that `look` gives; it is asked again at every line that the process says. */
  until<Value>(wanted: string, look: () => Value | undefined): Promise<Value> {
    return new Promise((resolve, reject) => {
      const fail = (why: string): void => {
        stop();
        reject(new Error(`${this.#name}, pid ${this.pid}, ${why} ${wanted}`));
      };
      const check = (): void => {
        const value = look();
        if (value !== undefined) {
          stop();
          resolve(value);
        } else if (this.#ending !== undefined) {
          fail("ended before");
        }
      };
      const stop = (): void => {
        clearTimeout(deadline);
        this.#listeners.delete(check);
      };
      const deadline = setTimeout(() => fail(`did not come to this in ${PATIENCE_MS} ms:`), PATIENCE_MS);
      this.#listeners.add(check);
      check();
    });
  }

  send(signal: NodeJS.Signals): void {
    this.#child.kill(signal);
  }

  /** `kill -9`, and it is gone. Idempotent; a stopped process too. */
  async kill(): Promise<void> {
    this.#child.kill("SIGKILL");
    await this.#closed.catch(() => undefined);
  }

  /** Sends SIGTERM and waits for the end. */
  async stop(): Promise<Ending> {
    this.send("SIGTERM");
    return this.ended;
  }

  /** As a reader that goes away does. */
  closeOutput(): void {
    this.#child.stdout?.destroy();
  }

  /** Its latest output, for the report of a failure. */
  describe(): string {
    const state = this.#ending === undefined ? "running" : `ended ${JSON.stringify(this.#ending)}`;
    const rare = this.stdout.filter((line) => !line.includes('"worker_heartbeat"'));
    const beats = this.stdout.length - rare.length;
    return [
      `${this.#name}, pid ${String(this.#child.pid)}, ${state}; ${beats} heartbeats not shown`,
      ...rare.slice(-SHOWN_LINES).map((line) => `  out | ${line}`),
      ...this.stderr.slice(-SHOWN_LINES).map((line) => `  err | ${line}`),
    ].join("\n");
  }

  #read(stream: Readable | null, take: (line: string) => void): void {
    if (stream === null) return;
    // A reader that the test closes is not an error.
    stream.on("error", () => undefined);
    createInterface({ input: stream }).on("line", (line) => {
      take(line);
      this.#changed();
    });
  }

  #takeOutput(line: string): void {
    this.stdout.push(line);
    const event = parseObject(line);
    if (event?.["kind"] === "domain") this.events.push(event as unknown as DomainEvent);
  }

  #takeError(line: string): void {
    this.stderr.push(line);
    const entry = parseObject(line);
    if (typeof entry?.["level"] === "string") this.log.push(entry as LogLine);
  }

  #changed(): void {
    for (const listener of [...this.#listeners]) listener();
  }
}

/**
 * The environment of a process of a test: enough to run, the mark by which what a run leaves behind is found, and where Node keeps
 * what it has compiled.
 */
export function environmentFor(more: Readonly<Record<string, string>> = {}): Record<string, string> {
  const kept = ["PATH", "HOME", "MOCHA_RUN", "NODE_COMPILE_CACHE"].flatMap((name) => {
    const value = process.env[name];
    return value === undefined ? [] : [[name, value] as const];
  });
  return { ...Object.fromEntries(kept), ...more };
}

function hasFields(object: Fields, where: Fields): boolean {
  return Object.entries(where).every(([name, value]) => object[name] === value);
}

function parseObject(line: string): Record<string, unknown> | undefined {
  try {
    const value: unknown = JSON.parse(line);
    return typeof value === "object" && value !== null ? { ...value } : undefined;
  } catch {
    return undefined;
  }
}
