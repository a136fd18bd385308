// The output of a child on its way and its end in words, for backends, which make an outcome of it.
import type { Readable } from "node:stream";
import type { Clock } from "../../base/clock.ts";
import { isDoneWithin } from "../../base/clock.ts";
import { printable, redactSecrets } from "../../base/safe-text.ts";
import type { ChildEnd } from "./child.ts";

const LINE_MAX_CHARACTERS = 500;
/** How much of a line that does not end is looked at. */
const REST_MAX_BYTES = 4_096;
const NEWLINE = 0x0a;

/** Passes on what a child writes to its standard error, and remembers the last line of it that says something. */
export class ErrorOutput {
  readonly #hide: (line: string) => string;
  #rest: Buffer = Buffer.alloc(0);
  #line = "";

  /** `onChunk` gets each piece as it comes, `hide` each whole line: it returns the line without the secrets that the caller knows. */
  constructor(stream: Readable, onChunk: (chunk: Uint8Array) => void, hide = (line: string): string => line) {
    this.#hide = hide;
    stream.on("data", (chunk: Buffer) => {
      this.#read(chunk);
      onChunk(chunk);
    });
  }

  /** "" when there is none. Fit to be shown. */
  get lastLine(): string {
    return this.#textOf(this.#rest.toString()) || this.#line;
  }

  #read(chunk: Buffer): void {
    const end = chunk.lastIndexOf(NEWLINE);
    const whole = end < 0 ? Buffer.alloc(0) : Buffer.concat([this.#rest, chunk.subarray(0, end)]);
    for (const line of whole.subarray(-REST_MAX_BYTES).toString().split("\n"))
      this.#line = this.#textOf(line) || this.#line;
    const rest = end < 0 ? Buffer.concat([this.#rest, chunk]) : Buffer.from(chunk.subarray(end + 1));
    this.#rest = rest.length > REST_MAX_BYTES ? Buffer.from(rest.subarray(-REST_MAX_BYTES)) : rest;
  }

  /** The secrets go before the line is cut, so that no part of one is left. */
  #textOf(line: string): string {
    const shown = printable(this.#hide(redactSecrets(line.trim())));
    return shown.slice(0, LINE_MAX_CHARACTERS).toWellFormed();
  }
}

/**
 * Resolves when the streams have ended, or `patienceMs` from now: a process that left the group of a child may hold them open
 * for as long as it likes. They are not read after that.
 */
export async function endOfStreams(
  streams: readonly Readable[],
  patienceMs: number,
  clock: Clock,
): Promise<void> {
  const open = streams.filter(({ closed }) => !closed);
  if (open.length === 0) return;
  const closed = open.map((stream) => new Promise<void>((resolve) => void stream.once("close", resolve)));
  await isDoneWithin(clock, patienceMs, Promise.all(closed));
}

const SIGNAL_OF_CODE: Readonly<Record<number, string>> = {
  134: "SIGABRT",
  137: "SIGKILL",
  139: "SIGSEGV",
  143: "SIGTERM",
};
const OUT_OF_MEMORY = "perhaps the machine ran out of memory";

/** Nobody knows how it ended: no item is charged for it. */
export function isUnknown({ code, signal }: ChildEnd): boolean {
  return code === null && signal === null;
}

/** How it ended, in words: for `error` and `crash`. */
export function describeEnd(end: ChildEnd, lastLine: string): string {
  const { code, signal } = end;
  if (isUnknown(end)) return "it was ended because the process that had started it died";
  const said = lastLine === "" ? "" : `: ${lastLine}`;
  if (signal !== null)
    return `killed by ${signal}${signal === "SIGKILL" ? ` (${OUT_OF_MEMORY})` : ""}${said}`;
  const inner = SIGNAL_OF_CODE[code ?? 0];
  const hint =
    inner === undefined
      ? ""
      : ` (a shell's word for ${inner}${inner === "SIGKILL" ? `; ${OUT_OF_MEMORY}` : ""})`;
  return `exit code ${code}${hint}${said}`;
}

/** The bytes that a child writes to its standard output, up to a limit. */
export class BoundedOutput {
  readonly #limit: number;
  #chunks: Buffer[] = [];
  #bytes = 0;
  #isOver = false;

  /** `onOver` is called once, as soon as it is clear; nothing is kept then. */
  constructor(stream: Readable, limit: number, onOver: () => void) {
    this.#limit = limit;
    stream.on("data", (chunk: Buffer) => {
      if (this.#isOver) return;
      this.#chunks.push(chunk);
      this.#bytes += chunk.length;
      // One byte more may be the newline that is no part of it.
      if (this.#bytes <= limit + 1) return;
      this.#isOver = true;
      this.#chunks = [];
      onOver();
    });
  }

  get isOver(): boolean {
    return this.#isOver || this.bytes().length > this.#limit;
  }

  /** All of it, without the one newline with which programs end what they print. */
  bytes(): Uint8Array {
    if (this.#chunks.length !== 1) this.#chunks = [Buffer.concat(this.#chunks)];
    const [all = Buffer.alloc(0)] = this.#chunks;
    return all.at(-1) === NEWLINE ? all.subarray(0, -1) : all;
  }
}
