// How many items are to wait at a worker beside those that execute: as many as it gets through in a certain time at the rate at which
// it has lately ended some. Quick items wait by the hundred, so that no slot waits for the coordinator; of slow ones waits about one.
//
// Keeps true: what is wanted lies between the least and the most; time in which nothing executes does not count, so a worker that is
// out of work is not slow; nothing is too much that was not so for a while, with a turn of the loop in between.

export interface BacklogPaceOptions {
  /** How long what waits is to last. */
  readonly timeMs: number;
  readonly slots: number;
  /** The bounds of what is wanted; at least 1. */
  readonly least: number;
  readonly most: number;
}

/** The rate is that of so many times the time that the backlog is to last: a few items that end together are no higher rate. */
const REMEMBERED = 4;
/** No more is wanted than so many times what has ended lately: the first item may have been quick by chance. */
const TRUSTED = 2;
/** More than so many times what is wanted is too much: a rate is never quite even. */
const TOLERATED = 2;

export class BacklogPace {
  readonly #options: BacklogPaceOptions;
  /** Attempts that have ended, each weighed less the longer ago that was. */
  #ended = 0;
  /** Time in which something executed, weighed in the same way. */
  #passedMs = 0;
  /** Up to when time was counted, monotonic. */
  #countedToMs = 0;
  /** Time that was counted since the last end. */
  #sinceEndMs = 0;
  #wasTooMuch = false;

  constructor(options: BacklogPaceOptions) {
    this.#options = options;
  }

  /** How many are to wait, as of what this was last told. */
  get wanted(): number {
    const { timeMs, slots, least, most } = this.#options;
    const covering = (ended: number, inMs: number): number => (inMs > 0 ? (ended * timeMs) / inMs : Infinity);
    const wanted = Math.min(
      most,
      TRUSTED * this.#ended,
      covering(this.#ended, this.#passedMs),
      // All slots may have begun with the last end and end just now, and no more.
      covering(slots, this.#sinceEndMs),
    );
    return Math.max(least, Math.round(wanted));
  }

  /** How often it is to be looked whether too much waits. */
  get lookIntervalMs(): number {
    return this.#options.timeMs;
  }

  /** Something begins where nothing has executed. */
  resume(nowMs: number): void {
    this.#countedToMs = nowMs;
  }

  /** An attempt has ended. */
  end(nowMs: number): void {
    this.#count(nowMs);
    this.#ended++;
    this.#sinceEndMs = 0;
  }

  /**
   * So many wait: how many of them are to be handed back. None at the first look that finds too many: what has ended meanwhile may
   * not have been read yet, in a process that stood still.
   */
  surplus(nowMs: number, waiting: number, isExecuting: boolean): number {
    if (isExecuting) this.#count(nowMs);
    const { wanted } = this;
    const isTooMuch = waiting > TOLERATED * wanted;
    const isForAWhile = isTooMuch && this.#wasTooMuch;
    this.#wasTooMuch = isTooMuch;
    return isForAWhile ? waiting - wanted : 0;
  }

  #count(nowMs: number): void {
    const passedMs = nowMs - this.#countedToMs;
    this.#countedToMs = nowMs;
    this.#sinceEndMs += passedMs;
    if (passedMs <= 0) return;
    const rememberedMs = REMEMBERED * this.#options.timeMs;
    const weight = Math.exp(-passedMs / rememberedMs);
    this.#ended *= weight;
    this.#passedMs = this.#passedMs * weight + rememberedMs * (1 - weight);
  }
}
