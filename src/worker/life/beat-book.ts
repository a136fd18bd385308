// Beats that were sent and not yet answered, and what their answers prove. A worker knows that its coordinator counts it as
// alive until the failure timeout after the moment it *sent* the last beat that was answered; so its own deadline counts
// from there, on its own monotonic clock.

interface SentBeat {
  readonly sequence: number;
  readonly sentAtMs: number;
}

export class BeatBook {
  #sequence = 0;
  #unanswered: SentBeat[] = [];
  /** Starting counts as having been heard: nothing was given to this process yet. */
  #provenAtMs: number;
  #answers = 0;

  constructor(nowMs: number) {
    this.#provenAtMs = nowMs;
  }

  /** Numbers a beat that is about to be sent. */
  send(nowMs: number): number {
    this.#sequence++;
    this.#unanswered.push({ sequence: this.#sequence, sentAtMs: nowMs });
    return this.#sequence;
  }

  /** An answer came. Answers are in order, so it covers the beats before as well. Undefined when that was known, else when it was sent. */
  answered(sequence: number): number | undefined {
    const answered = this.#unanswered.find((beat) => beat.sequence === sequence);
    if (answered === undefined) return undefined;
    this.#answers++;
    this.#provenAtMs = answered.sentAtMs;
    this.#unanswered = this.#unanswered.filter((beat) => beat.sequence > sequence);
    return answered.sentAtMs;
  }

  /** The stream broke: what was not answered on it will not be. */
  forget(): void {
    this.#unanswered = [];
  }

  get lastSequence(): number {
    return this.#sequence;
  }

  /** How many beats were answered. */
  get answers(): number {
    return this.#answers;
  }

  /** When the last answered beat was sent. */
  get provenAtMs(): number {
    return this.#provenAtMs;
  }

  /** How long the oldest unanswered beat has waited; 0 when every beat was answered. */
  waitingMs(nowMs: number): number {
    const [oldest] = this.#unanswered;
    return oldest === undefined ? 0 : nowMs - oldest.sentAtMs;
  }
}
