// A block of text on a terminal that is redrawn in place: the cursor goes up over the last one and each line is overwritten
// and cleared to its end, so nothing flickers and what stood above stays. Each change is one write, and the cursor is never
// hidden: whatever ends the process, the terminal is as it was, with the cursor below the block.

/** What is needed of a terminal. */
export interface ScreenStream {
  readonly columns: number;
  readonly rows: number;
  write(text: string): boolean;
}

const UP = (lines: number): string => (lines === 0 ? "" : `\u001b[${lines}A`);
const CLEAR_TO_LINE_END = "\u001b[K";
const CLEAR_BELOW = "\u001b[J";
const COLOUR = /\u001b\[[\d;]*m/g;

export class LiveScreen {
  readonly #stream: ScreenStream;
  /** How many columns each line of the last block has. */
  #drawn: readonly number[] = [];

  constructor(stream: ScreenStream) {
    this.#stream = stream;
  }

  /**
   * Replaces the block. What does not fit the terminal is cut, with a line that says how much. `above` is printed where the block
   * stood, to stay there: whole lines with their endings, which may be longer than the terminal is wide.
   */
  draw(text: string, above = ""): void {
    const { columns, rows } = this.#stream;
    const lines = text.trimEnd().split("\n");
    const room = Math.max(1, rows - 1);
    const fitting =
      lines.length <= room ? lines : [...lines.slice(0, room - 1), `… ${lines.length - room + 1} more`];
    const shown = fitting.map((line) => cut(line, columns));
    const body = shown.map((line) => `${line}${CLEAR_TO_LINE_END}\n`).join("");
    this.#stream.write(`${this.#back()}${above === "" ? "" : CLEAR_BELOW}${above}${body}${CLEAR_BELOW}`);
    this.#drawn = shown.map((line) => Array.from(line.replace(COLOUR, "")).length);
  }

  /** To the block's first line. A terminal that was made narrower has broken its lines: they take more rows now. */
  #back(): string {
    const { columns } = this.#stream;
    const rows = this.#drawn.reduce((sum, width) => sum + Math.max(1, Math.ceil(width / columns)), 0);
    return `${UP(rows)}\r`;
  }
}

/** The first `columns` characters that are seen. Colours take no room, and those that are cut away still end. */
function cut(line: string, columns: number): string {
  let room = columns;
  return line.replace(/\u001b\[[\d;]*m|./gsu, (part) =>
    part.startsWith("\u001b") || room-- > 0 ? part : "",
  );
}
