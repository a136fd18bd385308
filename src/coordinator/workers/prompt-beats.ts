// Answers to beats that do not wait for the disk: a disk that stalls for longer than workers wait would fence every one of them,
// although their leader lives (docs/adr/0024).
//
// Keeps true (C2): such an answer says that this leader leads and has heard this process of the worker, and nothing that a turn has
// decided; it leaves only if the store, read after the beat had come, names no later leader.
import { verdictOf } from "./beat.ts";
import type { Answer, Beat, BeatAnswer, Input } from "../turn/input.ts";
import type { CoordinatorState } from "../turn/state.ts";
import { workerStateOf } from "../turn/state.ts";

export interface PromptBeatsOptions {
  readonly state: CoordinatorState;
  readonly mayAct: () => boolean;
  /** Whether the store names this leader, read after the call. Never rejects. */
  readonly leads: () => Promise<boolean>;
}

type BeatInput = Extract<Input, { readonly kind: "beat" }>;

interface Waiting {
  readonly sequence: number;
  readonly answer: Answer<BeatAnswer>;
}

export class PromptBeats {
  readonly #options: PromptBeatsOptions;
  /** Those whose turns are not committed. No more than there are inputs (C8). */
  readonly #waiting = new Set<Waiting>();
  #isAsking = false;
  #isOver = false;

  constructor(options: PromptBeatsOptions) {
    this.#options = options;
  }

  /** The input for its turn. It is answered once: by its turn, or before it. */
  admit(input: BeatInput): BeatInput {
    const { beat, answer } = input;
    if (this.#isOver || !isForNow(this.#options.state, beat)) return input;
    const waiting: Waiting = { sequence: beat.sequence, answer };
    this.#waiting.add(waiting);
    void this.#answer();
    return {
      ...input,
      answer: (given) => {
        if (this.#waiting.delete(waiting)) answer(given);
      },
    };
  }

  /** Nothing more is answered before its turn. */
  end(): void {
    this.#isOver = true;
  }

  async #answer(): Promise<void> {
    if (this.#isAsking) return;
    this.#isAsking = true;
    const { leads, mayAct } = this.#options;
    while (this.#waiting.size > 0) {
      const asked = [...this.#waiting];
      // The next beat asks again.
      if (!(await leads()) || !mayAct() || this.#isOver) break;
      for (const waiting of asked)
        if (this.#waiting.delete(waiting))
          waiting.answer({ sequence: waiting.sequence, verdict: "accepted" });
    }
    this.#isAsking = false;
  }
}

/**
 * Whether the process is known and has nothing to be told. A goodbye is on disk before it is answered, and so is whatever else
 * a worker acts upon: that it is superseded, that it is to drain.
 */
function isForNow({ workers }: CoordinatorState, { workerId, incarnation, state }: Beat): boolean {
  const row = workers.get(workerId);
  if (row === undefined || state === "Gone" || row.chart.context.incarnation !== incarnation) return false;
  return workerStateOf(row).lifecycle !== "Gone" && verdictOf(row) === "accepted";
}
