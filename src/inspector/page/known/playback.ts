// The last moves of an actor, live or held: a person pauses, and goes back and forth among them while new ones come.

export interface Move {
  readonly number: number;
  readonly atMs: number;
  /** For the log. */
  readonly event: string;
  /** The event by which its transition is found. */
  readonly cause: string;
  /** Whether a chart took a transition; else it only heard of something. */
  readonly isMove: boolean;
  /** Names of states. */
  readonly from: string;
  readonly to: string;
  readonly detail: string;
}

/** The sight of a chart after one of its moves, or before all of them. */
export interface Sight {
  /** The name of its state; null where nothing is known. */
  readonly state: string | null;
  readonly taken: Move | null;
}

export class Playback {
  /** The moves when it was paused; null while it is live. */
  #held: readonly Move[] | null = null;
  /** How many of the held ones have happened. */
  #happened = 0;

  get isLive(): boolean {
    return this.#held === null;
  }

  /** How many of the moves that are shown have happened. */
  happened(live: readonly Move[]): number {
    return this.#held === null ? live.length : this.#happened;
  }

  moves(live: readonly Move[]): readonly Move[] {
    return this.#held ?? live;
  }

  /** How many have come since it was paused. */
  newer(live: readonly Move[]): number {
    const last = this.#held?.at(-1)?.number;
    if (this.#held === null) return 0;
    return last === undefined ? live.length : live.filter(({ number }) => number > last).length;
  }

  pause(live: readonly Move[]): void {
    if (this.#held !== null) return;
    this.#held = [...live];
    this.#happened = live.length;
  }

  resume(): void {
    this.#held = null;
  }

  back(live: readonly Move[]): void {
    this.pause(live);
    this.#happened = Math.max(0, this.#happened - 1);
  }

  forward(): void {
    if (this.#held !== null) this.#happened = Math.min(this.#held.length, this.#happened + 1);
  }

  /** To right after this move. */
  goTo(live: readonly Move[], number: number): void {
    this.pause(live);
    const at = this.#held?.findIndex((move) => move.number === number) ?? -1;
    if (at >= 0) this.#happened = at + 1;
  }

  /** `now`: the state of the actor by the last that was heard of it. */
  sight(live: readonly Move[], now: string | null): Sight {
    const moves = this.moves(live);
    const happened = this.happened(live);
    const taken = moves[happened - 1] ?? null;
    if (this.isLive) return { state: now ?? taken?.to ?? null, taken };
    return { state: taken === null ? (moves[0]?.from ?? now) : taken.to, taken };
  }
}
