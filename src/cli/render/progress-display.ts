// Where progress is shown: on a terminal a block that is redrawn in place, into a pipe a line now and then, for a program not
// at all. Sentences are printed above the block and stay. Keeps true: a terminal is written to ten times a second at most,
// beside the sentences.
import type { Clock, Timer } from "../../base/clock.ts";
import { printableLines } from "../../base/safe-text.ts";
import { LiveScreen, sizeOf } from "./live-screen.ts";
import { progressBlock, progressLine, progressMessages } from "./progress.ts";
import type { Palette, ProgressView } from "./progress.ts";

export interface ProgressDisplay {
  /** Shows this from now on. */
  update(view: ProgressView): void;
  /** A sentence that stays, without its ending. */
  say(sentence: string): void;
  /** The last call: shows the last view, on a terminal for good. Idempotent. */
  end(): void;
}

/** Standard error, as far as the display needs it. */
export interface DisplayStream {
  readonly isTTY: boolean;
  readonly columns: number;
  readonly rows: number;
  write(text: string): boolean;
  on(event: "resize", listener: () => void): unknown;
  off(event: "resize", listener: () => void): unknown;
}

const REDRAW_MS = 100;
const LINE_MS = 10_000;
const LINE_SHARE = 0.1;

export function openDisplay(stream: DisplayStream, clock: Clock, palette: Palette): ProgressDisplay {
  return stream.isTTY ? new TerminalDisplay(stream, clock, palette) : new LineDisplay(stream, clock);
}

/** For `--json`: neither progress nor sentences. */
export const silentDisplay: ProgressDisplay = {
  update: () => undefined,
  say: () => undefined,
  end: () => undefined,
};

class TerminalDisplay implements ProgressDisplay {
  readonly #stream: DisplayStream;
  readonly #clock: Clock;
  readonly #palette: Palette;
  readonly #screen: LiveScreen;
  #view: ProgressView | undefined;
  #drawnAtMs = -Infinity;
  #redraw: Timer | undefined;

  constructor(stream: DisplayStream, clock: Clock, palette: Palette) {
    this.#stream = stream;
    this.#clock = clock;
    this.#palette = palette;
    this.#screen = new LiveScreen(stream);
    stream.on("resize", this.#onResize);
  }

  update(view: ProgressView): void {
    this.#view = view;
    const waitMs = this.#drawnAtMs + REDRAW_MS - this.#clock.monotonicMs();
    if (waitMs <= 0) this.#draw();
    else this.#redraw ??= this.#clock.after(waitMs, () => this.#draw(), { background: true });
  }

  say(sentence: string): void {
    const line = `${printableLines(sentence)}\n`;
    if (this.#view === undefined) this.#stream.write(line);
    else this.#draw(line);
  }

  end(): void {
    this.#draw();
    this.#redraw?.cancel();
    this.#view = undefined;
    this.#stream.off("resize", this.#onResize);
  }

  readonly #onResize = (): void => {
    if (this.#view !== undefined) this.update(this.#view);
  };

  #draw(above = ""): void {
    this.#redraw?.cancel();
    this.#redraw = undefined;
    if (this.#view === undefined) return;
    this.#drawnAtMs = this.#clock.monotonicMs();
    // A line that fills its row leaves the cursor where terminals disagree about it.
    const columns = Math.max(1, sizeOf(this.#stream).columns - 1);
    this.#screen.draw(progressBlock(this.#view, columns, this.#palette), above);
  }
}

class LineDisplay implements ProgressDisplay {
  readonly #stream: DisplayStream;
  readonly #clock: Clock;
  #last:
    | { readonly atMs: number; readonly share: number; readonly situation: string | undefined }
    | undefined;
  #unsaid: ProgressView | undefined;
  #messages = "";

  constructor(stream: DisplayStream, clock: Clock) {
    this.#stream = stream;
    this.#clock = clock;
  }

  update(view: ProgressView): void {
    const atMs = this.#clock.monotonicMs();
    const { counts, total, situation } = view;
    const share = total === 0 ? 0 : (counts.done + counts.failed) / total;
    const last = this.#last;
    const isDue =
      last === undefined ||
      atMs - last.atMs >= LINE_MS ||
      share - last.share >= LINE_SHARE ||
      situation !== last.situation;
    this.#unsaid = isDue || share === last.share ? undefined : view;
    if (!isDue) return;
    this.#last = { atMs, share, situation };
    this.#tell(view);
  }

  /** Why items fail is told again when it is not what was told before. */
  #tell(view: ProgressView): void {
    this.say(progressLine(view));
    const messages = progressMessages(view)
      .map((line) => `  ${line}`)
      .join("\n");
    if (messages !== "" && messages !== this.#messages) this.say(messages);
    this.#messages = messages;
  }

  say(sentence: string): void {
    this.#stream.write(`${printableLines(sentence)}\n`);
  }

  end(): void {
    if (this.#unsaid !== undefined) this.#tell(this.#unsaid);
    this.#unsaid = undefined;
  }
}
