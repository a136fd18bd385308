// A block of text on a terminal that is redrawn in place: the cursor goes up over the last one and each line is overwritten
// and cleared to its end, so nothing flickers and what stood above stays. Each change is one write, and the cursor is never
// hidden: whatever ends the process, the terminal is as it was, with the cursor below the block. The terminal
// obeys nothing of the text but our own colours.
import { printableLines } from "../../base/safe-text.ts";

/** A terminal, as far as the screen needs it. */
export interface ScreenStream {
  readonly columns: number;
  readonly rows: number;
  write(text: string): boolean;
}

const UP = (lines: number): string => (lines === 0 ? "" : `\u001b[${lines}A`);
const COLUMNS_USUAL = 80;
const ROWS_USUAL = 24;
const CLEAR_TO_LINE_END = "\u001b[K";
const CLEAR_BELOW = "\u001b[J";
const COLOUR = /\u001b\[[\d;]*m/g;
/** As progress is painted (progress.ts). */
const OWN_COLOUR = /(\u001b\[(?:0|2|3[1-3])m)/;

export class LiveScreen {
  readonly #stream: ScreenStream;
  /** How many columns each line of the last block has. */
  #drawn: readonly number[] = [];

  constructor(stream: ScreenStream) {
    this.#stream = stream;
  }

  /**
   * Replaces the block. Lines that do not fit the terminal are cut, with a line that says how much. `above` is printed where the block
   * stood, to stay there: whole lines with their endings, which may be longer than the terminal is wide.
   */
  draw(text: string, above = ""): void {
    const { columns, rows } = sizeOf(this.#stream);
    const lines = safe(text).trimEnd().split("\n");
    const room = Math.max(1, rows - 1);
    const fitting =
      lines.length <= room ? lines : [...lines.slice(0, room - 1), `… ${lines.length - room + 1} more`];
    const shown = fitting.map((line) => cut(line, columns));
    const body = shown.map((line) => `${line}${CLEAR_TO_LINE_END}\n`).join("");
    this.#stream.write(
      `${this.#back()}${above === "" ? "" : CLEAR_BELOW}${safe(above)}${body}${CLEAR_BELOW}`,
    );
    this.#drawn = shown.map((line) => Array.from(line.replace(COLOUR, "")).length);
  }

  /** To the block's first line. A terminal that was made narrower has broken its lines: they take more rows now. */
  #back(): string {
    const { columns } = sizeOf(this.#stream);
    const rows = this.#drawn.reduce((sum, width) => sum + Math.max(1, Math.ceil(width / columns)), 0);
    return `${UP(rows)}\r`;
  }
}

/** One that does not know its own size, as some that are made by programs, says 0: it is taken for the smallest usual one. */
export function sizeOf({ columns, rows }: Pick<ScreenStream, "columns" | "rows">): {
  readonly columns: number;
  readonly rows: number;
} {
  return { columns: columns > 0 ? columns : COLUMNS_USUAL, rows: rows > 0 ? rows : ROWS_USUAL };
}

function safe(text: string): string {
  const parts = text.split(OWN_COLOUR);
  return parts.map((part, at) => (at % 2 === 1 ? part : printableLines(part))).join("");
}

/** The first `columns` characters that are seen. Colours take no room, and those that are cut away still end. */
function cut(line: string, columns: number): string {
  let room = columns;
  return line.replace(/\u001b\[[\d;]*m|./gsu, (part) =>
    part.startsWith("\u001b") || room-- > 0 ? part : "",
  );
}
