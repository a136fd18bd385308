// Something that is looked at each time there is news of it, until it is over or the user has seen enough: drawn in place on a terminal, and
// elsewhere printed when it has changed. A look that fails for a while is repeated, and said.
import { sleep, systemClock } from "../base/clock.ts";
import { RolloutError } from "../base/errors.ts";
import { LiveScreen } from "./render/live-screen.ts";

export interface Watched<Seen> {
  /** Waits for news: what is seen first comes at once. */
  readonly look: (signal: AbortSignal) => Promise<Seen>;
  /** As a person is shown it. */
  readonly textOf: (seen: Seen) => string;
  /** Equal for two that are not worth printing one after the other. */
  readonly keyOf: (seen: Seen) => string;
  readonly isOver?: (seen: Seen) => boolean;
  /** For what is no terminal, or for programs. */
  readonly print: (seen: Seen, text: string, isFirst: boolean) => void;
  readonly tell: (sentence: string) => void;
  readonly isForPrograms: boolean;
}

/** Numbers that change more often are shown so often. */
export const WATCH_INTERVAL_MS = 500;

/** The last sight when it is over; undefined when the signal came first. */
export async function watch<Seen>(watched: Watched<Seen>, signal: AbortSignal): Promise<Seen | undefined> {
  const { look, textOf, keyOf, isOver, print, tell, isForPrograms } = watched;
  const screen = process.stdout.isTTY && !isForPrograms ? new LiveScreen(process.stdout) : undefined;
  let text = "";
  const reader = new PatientReader((sentence) =>
    screen === undefined ? tell(sentence) : screen.draw(`${text}${sentence}\n`),
  );
  let shown: string | undefined;
  while (!signal.aborted) {
    const seen = await reader.read(() => look(signal)).catch(unlessAborted(signal));
    if (seen === undefined) {
      await sleep(systemClock, WATCH_INTERVAL_MS, signal);
      continue;
    }
    text = textOf(seen);
    const key = keyOf(seen);
    if (screen !== undefined) screen.draw(text);
    else if (key !== shown) print(seen, text, shown === undefined);
    shown = key;
    if (isOver?.(seen) === true) return seen;
  }
  return undefined;
}

/** A look that is broken off has seen nothing. */
function unlessAborted(signal: AbortSignal): (error: unknown) => undefined {
  return (error) => {
    if (!signal.aborted) throw error;
  };
}

/**
 * Reads the same again and again: a coordinator that is killed and started again is waited for, and its absence is said once.
 * One that has never answered is an error like any other.
 */
export class PatientReader {
  readonly #tell: (sentence: string) => void;
  #hasAnswered = false;
  #isAway = false;

  constructor(tell: (sentence: string) => void) {
    this.#tell = tell;
  }

  /** Undefined while the coordinator is away. Throws what waiting does not help. */
  async read<T>(ask: () => Promise<T>): Promise<T | undefined> {
    try {
      const answer = await ask();
      if (this.#isAway) this.#tell("The coordinator answers again.");
      [this.#hasAnswered, this.#isAway] = [true, false];
      return answer;
    } catch (error) {
      if (!this.#hasAnswered || !(error instanceof RolloutError) || error.row.retry === "never") throw error;
      if (!this.#isAway) this.#tell(`Waiting: ${error.message}.`);
      this.#isAway = true;
      return undefined;
    }
  }
}
