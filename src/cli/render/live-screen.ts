// A block of text on a terminal that is redrawn in place: the cursor goes up over the last one and each line is overwritten
// and cleared to its end, so nothing flickers and what stood above stays.
import type { WriteStream } from "node:tty";

const UP = (lines: number): string => (lines === 0 ? "" : `\u001b[${lines}A`);
const CLEAR_TO_LINE_END = "\u001b[K";
const CLEAR_BELOW = "\u001b[J";

export class LiveScreen {
  readonly #stream: Pick<WriteStream, "write" | "columns" | "rows">;
  #drawnLines = 0;

  constructor(stream: Pick<WriteStream, "write" | "columns" | "rows">) {
    this.#stream = stream;
  }

  /** Replaces the block. What does not fit the terminal is cut, with a line that says how much. */
  draw(text: string): void {
    const { columns, rows } = this.#stream;
    const lines = text.trimEnd().split("\n");
    const room = Math.max(1, rows - 1);
    const shown =
      lines.length <= room ? lines : [...lines.slice(0, room - 1), `… ${lines.length - room + 1} more`];
    const body = shown.map((line) => `${cut(line, columns)}${CLEAR_TO_LINE_END}\n`).join("");
    this.#stream.write(`${UP(this.#drawnLines)}\r${body}${CLEAR_BELOW}`);
    this.#drawnLines = shown.length;
  }
}

/** The first `columns` characters that are seen. Colours take no room, and those that are cut away still end. */
function cut(line: string, columns: number): string {
  let room = columns;
  return line.replace(/\u001b\[[\d;]*m|./gsu, (part) =>
    part.startsWith("\u001b") || room-- > 0 ? part : "",
  );
}
