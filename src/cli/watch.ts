// Something that is looked at again and again, until it is over or the user has seen enough: drawn in place on a terminal, and
// elsewhere printed when it has changed. A look that fails for a while is repeated, and said.
import { sleep, systemClock } from "../base/clock.ts";
import { LiveScreen } from "./render/live-screen.ts";
import { PatientReader } from "./patient-reader.ts";

export interface Watched<Seen> {
  readonly look: () => Promise<Seen>;
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

const WATCH_INTERVAL_MS = 500;

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
    const seen = await reader.read(look);
    if (seen !== undefined) {
      text = textOf(seen);
      const key = keyOf(seen);
      if (screen !== undefined) screen.draw(text);
      else if (key !== shown) print(seen, text, shown === undefined);
      shown = key;
      if (isOver?.(seen) === true) return seen;
    }
    await sleep(systemClock, WATCH_INTERVAL_MS, signal);
  }
  return undefined;
}
