// One run for all pages: one connection, one stream of its charts and, a second later at the earliest, a call for what the stream says has
// changed, and for all now and then, however many pages are open; none of it while nobody looks.
//
// Keeps true: a coordinator that goes away, comes back or is replaced is found again, for ever; pages are told that it is away, and why.
import { sleep } from "../base/clock.ts";
import type { Clock } from "../base/clock.ts";
import { RolloutError } from "../base/errors.ts";
import { backoffMs } from "../base/random.ts";
import type { Random } from "../base/random.ts";
import type { Logger } from "../observe/log.ts";
import type { NewsSource } from "./news-source.ts";
import type { PageNews } from "./page-messages.ts";
import { RunKnowledge } from "./run-knowledge.ts";
import type { RunSession, RunSource } from "./run-source.ts";

export interface HubPorts {
  readonly source: RunSource;
  readonly clock: Clock;
  readonly random: Random;
  readonly log: Logger;
}

const ROUND_MS = 1_000;
/** Ages of beats, loads, and the coordinators that stand by change without a word on the stream. */
const WHOLE_MS = 3_000;
/** The stream itself has the most important ones each second. */
const NUMBERS_MS = 2_000;

/** The numbers of the run alone, or workers and coordinators too. */
type Due = "whole" | "numbers";

/** The signs of the stream when it was looked last. */
interface Seen {
  readonly changes: number;
  readonly moves: number;
  readonly atMs: number;
}
const AGAIN = { baseMs: 250, ceilingMs: 2_000 };

export class Hub implements NewsSource {
  readonly #ports: HubPorts;
  readonly #known: RunKnowledge;
  #wholeAtMs = 0;

  constructor(ports: HubPorts) {
    this.#ports = ports;
    this.#known = new RunKnowledge(Math.round(ports.clock.wallMs()));
  }

  whole(): readonly PageNews[] {
    return this.#known.whole();
  }

  follow(told: (news: PageNews) => void): () => void {
    const leaving = new AbortController();
    void this.#keepAsking(leaving.signal, (news) => {
      // An answer that was on its way at the end is for nobody.
      if (!leaving.signal.aborted) for (const each of news) told(each);
    });
    return () => {
      leaving.abort();
      this.#known.linked("nobody has looked for a while", this.#nowMs());
    };
  }

  async #keepAsking(signal: AbortSignal, tell: (news: readonly PageNews[]) => void): Promise<void> {
    const { clock, random } = this.#ports;
    for (let tried = 1; !signal.aborted; tried++) {
      await this.#ask(signal, (news) => {
        tried = 0;
        tell(news);
      }).catch((error: unknown) => {
        if (!signal.aborted) tell(this.#known.linked(this.#reasonOf(error), this.#nowMs()));
      });
      await sleep(clock, backoffMs(AGAIN, Math.max(1, tried), random), signal);
    }
  }

  /** Until the connection breaks or the signal aborts. */
  async #ask(signal: AbortSignal, tell: (news: readonly PageNews[]) => void): Promise<void> {
    const session = await this.#ports.source.open();
    const broken = new AbortController();
    const either = AbortSignal.any([signal, broken.signal]);
    const ended = [this.#look(session, either, tell), this.#watch(session, either, tell)];
    try {
      await Promise.all(ended);
    } finally {
      broken.abort();
      session.close();
      await Promise.allSettled(ended);
    }
  }

  async #look(
    session: RunSession,
    signal: AbortSignal,
    tell: (news: readonly PageNews[]) => void,
  ): Promise<void> {
    for (let due: Due = "whole"; !signal.aborted;) {
      const seen = { changes: this.#known.changes, moves: this.#known.moves, atMs: this.#monotonicMs() };
      const look = await session.look({ whole: due === "whole" });
      if (isOver(signal)) return;
      tell([...this.#known.linked(null, this.#nowMs()), ...this.#known.looked(look, this.#nowMs())]);
      if (due === "whole") this.#wholeAtMs = seen.atMs;
      let next: Due | undefined;
      do {
        await sleep(this.#ports.clock, ROUND_MS, signal);
        next = this.#dueSince(seen);
      } while (next === undefined && !isOver(signal));
      due = next ?? "whole";
    }
  }

  #dueSince({ changes, moves, atMs }: Seen): Due | undefined {
    const nowMs = this.#monotonicMs();
    if (this.#known.moves !== moves || nowMs - this.#wholeAtMs >= WHOLE_MS) return "whole";
    return this.#known.changes !== changes && nowMs - atMs >= NUMBERS_MS ? "numbers" : undefined;
  }

  async #watch(
    session: RunSession,
    signal: AbortSignal,
    tell: (news: readonly PageNews[]) => void,
  ): Promise<void> {
    for await (const news of session.watch(signal)) {
      if (isOver(signal)) return;
      tell(this.#known.charted(news));
    }
  }

  #reasonOf(error: unknown): string {
    if (error instanceof RolloutError) return `${error.message} (${error.hint})`;
    this.#ports.log.error("the run could not be asked", { err: error });
    return "an error of this program: its log has it";
  }

  #monotonicMs(): number {
    return this.#ports.clock.monotonicMs();
  }

  #nowMs(): number {
    return Math.round(this.#ports.clock.wallMs());
  }
}

/** It may abort while something is awaited. */
function isOver({ aborted }: AbortSignal): boolean {
  return aborted;
}
