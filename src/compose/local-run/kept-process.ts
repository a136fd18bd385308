// A process that is there until it is told to end: one that dies is started again, after a wait that grows. Keeps true: what
// cannot work is not tried for ever, and never silently.
import type { Clock } from "../../base/clock.ts";
import { sleep } from "../../base/clock.ts";
import { EXIT } from "../../base/error-table.ts";
import { failure, RolloutError } from "../../base/errors.ts";
import type { ErrorCode } from "../../base/errors.ts";
import type { Member, MemberEnd, MemberError } from "./member.ts";

/** Why a process is not started again. */
export interface GivenUp {
  readonly who: string;
  readonly error: MemberError;
  /** The exit code that goes with it; undefined when the process did not choose one. */
  readonly exit: number | undefined;
}

export interface KeptOptions {
  /** For people: "worker 2". */
  readonly who: string;
  readonly launch: () => Member;
  readonly clock: Clock;
  readonly logFile: string;
  /** A sentence on each end that was not asked for. */
  readonly say: (sentence: string) => void;
  readonly onGivenUp: (reason: GivenUp) => void;
  /** Told of each end that was not asked for, before it is decided what to do about it. */
  readonly onDied?: (end: MemberEnd) => void;
}

/** A process that has lived for less has not worked. */
const QUICK_MS = 10_000;
/** So many quick deaths in a row are no accident. */
const QUICK_MAX = 4;
const BACKOFF = { baseMs: 100, ceilingMs: 3_000 };
/** Nothing will change by itself: a wrong setting, a damaged database, a bug. */
const HOPELESS: readonly (number | null)[] = [EXIT.usage, EXIT.storage, EXIT.bug];
/** But this: a command that looks into a database while nobody has it open (`doctor`, `results`) lets go of it before long. */
const HELD: ErrorCode = "store_held";
const HELD_PATIENCE_MS = 60_000;
const HELD_WAIT_MS = 500;

export class KeptProcess {
  readonly #options: KeptOptions;
  readonly #ending = new AbortController();
  #member: Member | undefined;
  #kept: Promise<void> | undefined;

  constructor(options: KeptOptions) {
    this.#options = options;
  }

  /** Undefined between two lives. */
  get member(): Member | undefined {
    return this.#member;
  }

  start(): void {
    this.#kept ??= this.#keep();
  }

  /** Has it leave, and starts it again then. */
  restart(): void {
    this.#member?.stop();
  }

  /** Has it leave in good order and resolves when it has, however long that takes. Idempotent. */
  async stop(): Promise<void> {
    this.#ending.abort();
    this.#member?.stop();
    await this.#kept;
  }

  /** At once. */
  kill(): void {
    this.#ending.abort();
    this.#member?.kill();
  }

  async #keep(): Promise<void> {
    const { who, clock, say, onDied, onGivenUp } = this.#options;
    const { signal } = this.#ending;
    let heldSinceMs: number | undefined;
    for (let quick = 0; !signal.aborted;) {
      const startedAtMs = clock.monotonicMs();
      const end = await this.#live();
      this.#member = undefined;
      if (this.#hasToEnd()) return;
      onDied?.(end);
      const wasHeld = heldSinceMs !== undefined;
      heldSinceMs = end.error?.code === HELD ? (heldSinceMs ?? clock.monotonicMs()) : undefined;
      if (heldSinceMs !== undefined && clock.monotonicMs() - heldSinceMs < HELD_PATIENCE_MS) {
        if (!wasHeld) say(`${who} ${describeEnd(end)}; it is started again when that is over`);
        await sleep(clock, HELD_WAIT_MS, signal);
        continue;
      }
      quick = clock.monotonicMs() - startedAtMs < QUICK_MS ? quick + 1 : 1;
      if (HOPELESS.includes(end.code) || quick >= QUICK_MAX) {
        onGivenUp(this.#reason(end));
        return;
      }
      say(`${who} ${describeEnd(end)}; it is started again`);
      await sleep(clock, Math.min(BACKOFF.ceilingMs, BACKOFF.baseMs * 4 ** (quick - 1)), signal);
    }
  }

  #hasToEnd(): boolean {
    return this.#ending.signal.aborted;
  }

  /** One life. A process that could not even be launched has ended as well. */
  async #live(): Promise<MemberEnd> {
    try {
      this.#member = this.#options.launch();
      return await this.#member.ended;
    } catch (error) {
      if (!(error instanceof RolloutError)) throw error;
      return { code: error.row.exit, signal: null, error };
    }
  }

  #reason(end: MemberEnd): GivenUp {
    const { who, logFile } = this.#options;
    const advice = `look at ${logFile}; run the same command to go on`;
    const reason = `it ${describeEnd(end)} again and again`;
    const error = end.error ?? failure("process_given_up", { who, reason, advice });
    return { who, error, exit: end.code === null || end.code === 0 ? undefined : end.code };
  }
}

/** "was killed (SIGKILL)" */
function describeEnd({ code, signal, error }: MemberEnd): string {
  if (error !== undefined) return `has ended: ${error.message}`;
  if (signal !== null) return `was killed (${signal})`;
  return code === 0 ? "has left in good order" : `has ended with code ${String(code)}`;
}
