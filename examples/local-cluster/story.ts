// What is shown: lines with the time since the start, and under them, on a terminal, a table that is redrawn in place. Into
// a pipe the table is printed at each pause instead.
import type { WriteStream } from "node:tty";
import type { Clock, Timer } from "../../src/base/clock.ts";
import { sleep } from "../../src/base/clock.ts";
import { LiveScreen } from "../../src/cli/render/live-screen.ts";

const REDRAW_MS = 200;
const STYLE = { dim: 2, bold: 1, red: 31, green: 32, yellow: 33, cyan: 36 } as const;
/** The words of the table that are worth a colour. */
const COLOURS = {
  alive: "green",
  ready: "green",
  suspected: "yellow",
  draining: "yellow",
  failed: "red",
} as const;

export class Story {
  readonly #stream: WriteStream;
  readonly #clock: Clock;
  readonly #table: () => string;
  readonly #startedAtMs: number;
  readonly #hasColour: boolean;
  #screen: LiveScreen | undefined;
  #redraw: Timer | undefined;
  readonly #ended = new AbortController();

  constructor(stream: WriteStream, clock: Clock, table: () => string) {
    this.#stream = stream;
    this.#clock = clock;
    this.#table = table;
    this.#startedAtMs = clock.monotonicMs();
    this.#hasColour = stream.isTTY && (process.env["NO_COLOR"] ?? "") === "";
  }

  begin(title: string, place: string): void {
    this.#stream.write(`${this.#paint("bold", title)}\n${this.#paint("dim", place)}\n\n`);
    if (!this.#stream.isTTY) return;
    this.#screen = new LiveScreen(this.#stream);
    this.#keepDrawing();
  }

  /** Something that happened. */
  tell(sentence: string): void {
    this.#line(this.#coloured(sentence));
  }

  /** Something that is done, as one would type it. */
  command(line: string, about?: string): void {
    const note = about === undefined ? "" : this.#paint("dim", `   # ${about}`);
    this.#line(`${this.#paint("cyan", `$ ${line}`)}${note}`);
  }

  /** What a command printed. */
  quote(text: string): void {
    for (const line of text.trimEnd().split("\n")) this.#line(this.#coloured(line), "");
  }

  /** Time to look at the table. */
  async pause(durationMs: number): Promise<void> {
    await sleep(this.#clock, durationMs, this.#ended.signal);
    if (!this.#stream.isTTY && !this.#ended.signal.aborted)
      this.#stream.write(`\n${indented(this.#table())}\n\n`);
  }

  /** The last words on what was seen: the table disappears, and nothing more is told. */
  end(text: string): void {
    this.#ended.abort();
    this.#redraw?.cancel();
    this.#redraw = undefined;
    // The empty line that the table leaves is the one before the last words.
    if (this.#screen === undefined) this.#stream.write("\n");
    this.#screen?.draw("");
    this.#screen = undefined;
    this.#stream.write(`${text}\n`);
  }

  farewell(text: string): void {
    this.#stream.write(`${text}\n`);
  }

  #line(text: string, time = seconds(this.#clock.monotonicMs() - this.#startedAtMs)): void {
    if (this.#ended.signal.aborted) return;
    const line = `${this.#paint("dim", time.padStart(7))}  ${text}`;
    if (this.#screen === undefined) {
      this.#stream.write(`${line}\n`);
      return;
    }
    // In place of the table; a new screen then begins below it, so the line stays.
    this.#screen.draw(line);
    this.#screen = new LiveScreen(this.#stream);
    this.#draw();
  }

  #keepDrawing(): void {
    this.#redraw = this.#clock.after(REDRAW_MS, () => {
      this.#draw();
      this.#keepDrawing();
    });
  }

  #draw(): void {
    this.#screen?.draw(`\n${this.#coloured(indented(this.#table()))}`);
  }

  #coloured(text: string): string {
    return text.replace(/\b(alive|ready|suspected|draining|failed)\b/g, (word) =>
      isColoured(word) ? this.#paint(COLOURS[word], word) : word,
    );
  }

  #paint(style: keyof typeof STYLE, text: string): string {
    return this.#hasColour ? `\u001b[${STYLE[style]}m${text}\u001b[0m` : text;
  }
}

function isColoured(word: string): word is keyof typeof COLOURS {
  return Object.hasOwn(COLOURS, word);
}

function indented(text: string): string {
  return text.trimEnd().replace(/^/gm, "  ");
}

function seconds(ms: number): string {
  return `${(ms / 1_000).toFixed(1)} s`;
}
