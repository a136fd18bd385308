// Metadata servers that do not answer as they should: the lines that a worker says of one, and how long it waits for one. The worker
// works on, and may be preempted without a notice.
import type { Logger } from "../../observe/log.ts";
import type { Cloud } from "./compute-hint.ts";

/** One line when the trouble begins or becomes something else, and one when it is over. */
export class MetadataTrouble {
  readonly #log: Logger;
  #known: string | undefined;

  constructor(log: Logger, cloud: Cloud) {
    this.#log = log.child({ cloud });
  }

  /** `isSilent`: there was no answer in time, however long that was. */
  report(reason: string, isSilent = false): void {
    const kind = isSilent ? "silent" : reason;
    if (kind === this.#known) return;
    this.#known = kind;
    this.#log.warn(
      "the metadata server cannot be used, so a preemption may come without notice; trying again",
      {
        reason,
      },
    );
  }

  over(): void {
    if (this.#known !== undefined) this.#log.info("the metadata server answers again");
    this.#known = undefined;
  }
}

/** A server that takes longer than this is of no use: the shortest notice has 30 s. */
export const PATIENCE_MAX_MS = 10_000;
const GROWTH = 2;

/**
 * How long a question may take. Short at first, so that a server that hangs hides a notice for a moment only; longer, step by step,
 * while the server is silent, so that one that is slow is heard in the end.
 */
export class MetadataPatience {
  readonly #quickMs: number;
  #timeoutMs: number;

  /** `isSlow`: the server is known to be. */
  constructor(quickMs: number, isSlow: boolean) {
    this.#quickMs = quickMs;
    this.#timeoutMs = isSlow ? PATIENCE_MAX_MS : quickMs;
  }

  get timeoutMs(): number {
    return this.#timeoutMs;
  }

  /** There was no answer in that time. */
  tooShort(): void {
    this.#timeoutMs = Math.min(this.#timeoutMs * GROWTH, PATIENCE_MAX_MS);
  }

  /** There was one, after so long. */
  answered(afterMs: number): void {
    if (afterMs <= this.#quickMs) this.#timeoutMs = this.#quickMs;
  }
}
