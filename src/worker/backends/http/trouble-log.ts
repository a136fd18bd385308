// The trouble with the server: said in the worker's log when it begins and when it is over, since the same trouble again is
// not news, however many items meet it; and kept, for beats.
import type { Clock } from "../../../base/clock.ts";
import type { Logger } from "../../../observe/log.ts";
import type { Trouble } from "./verdict.ts";

export interface KnownTrouble {
  readonly kind: Trouble["kind"];
  /** As the last request met it. */
  readonly reason: string;
  /** When the server was last in order, or asked for the first time; monotonic. */
  readonly sinceMs: number;
}

export class TroubleLog {
  readonly #log: Logger;
  readonly #clock: Clock;
  #known: KnownTrouble | undefined;
  #isThrottled = false;

  constructor(log: Logger, clock: Clock) {
    this.#log = log;
    this.#clock = clock;
  }

  /** Undefined when the server did its work when it was last asked. */
  get known(): KnownTrouble | undefined {
    return this.#known;
  }

  report(kind: Trouble["kind"], reason: string): void {
    const before = this.#known;
    this.#known = { kind, reason, sinceMs: before?.sinceMs ?? this.#clock.monotonicMs() };
    if (kind === before?.kind || (kind === "throttled" && this.#isThrottled)) return;
    if (kind === "throttled") this.#isThrottled = true;
    this.#log.warn("the server does not answer as it should; trying again", { trouble: kind, reason });
  }

  /** `isThrottled`: it answers, and refuses what is too much for it now and then: that is said once. */
  over(isThrottled: boolean): void {
    const wasThrottled = this.#isThrottled;
    this.#isThrottled &&= isThrottled;
    const isOver =
      this.#known === undefined
        ? wasThrottled && !isThrottled
        : this.#known.kind !== "throttled" || !isThrottled;
    if (isOver) this.#log.info("the server answers again");
    this.#known = undefined;
  }
}
