// The waits of a leader that has been fenced: each step of its end is waited for so long, and then the next one is taken without it.

export interface FencePatience {
  /** For the lease of the later leader, so that the last event can say who leads now. */
  readonly lookMs: number;
  /** For the main thread's last word, before the watchdog has it. With the deadline of the lease this stays under 5 s. */
  readonly wordMs: number;
  /** For the coordinator's own disk: a fenced leader is gone within 5 s of knowing it, whatever that does. */
  readonly abortMs: number;
}

export const FENCE_PATIENCE: FencePatience = { lookMs: 200, wordMs: 500, abortMs: 2_000 };
