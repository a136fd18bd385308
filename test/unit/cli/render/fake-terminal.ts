// A terminal that understands what live screens write: lines, carriage returns, going up, clearing, colours, and the breaking of
// lines that are too long. The picture that a person would see is in `screen`; each write is kept as it came.
import { EventEmitter } from "node:events";

const SEQUENCE = /\u001b\[([\d;?]*)([A-Za-z])|[\s\S]/gu;

export class FakeTerminal extends EventEmitter {
  readonly isTTY = true;
  columns: number;
  rows: number;
  readonly writes: string[] = [];
  /** Everything since the start, what has scrolled away included. */
  #lines: string[] = [""];
  #row = 0;
  #column = 0;

  constructor(columns: number, rows: number) {
    super();
    this.columns = columns;
    this.rows = rows;
  }

  /** Lines as they stand, without spaces at their ends and the empty one below the last. */
  get screen(): string[] {
    const lines = this.#lines.map((line) => line.trimEnd());
    while (lines.at(-1) === "") lines.pop();
    return lines;
  }

  /** In which line the cursor is. */
  get cursorRow(): number {
    return this.#row;
  }

  write(text: string): boolean {
    this.writes.push(text);
    for (const [part, , letter] of text.matchAll(SEQUENCE)) {
      if (letter === undefined) this.#print(part);
      else this.#obey(letter, part);
    }
    return true;
  }

  /** As terminals do that break the lines which are there anew. */
  resize(columns: number): void {
    const before = this.#lines;
    this.#lines = before.flatMap((line) => pieces(line.trimEnd(), columns));
    this.#row = before.slice(0, this.#row).flatMap((line) => pieces(line.trimEnd(), columns)).length;
    this.columns = columns;
    this.emit("resize");
  }

  #print(character: string): void {
    if (character === "\n") return this.#goTo(this.#row + 1, 0);
    if (character === "\r") return this.#goTo(this.#row, 0);
    if (this.#column === this.columns) this.#goTo(this.#row + 1, 0);
    const characters = Array.from((this.#lines[this.#row] ?? "").padEnd(this.#column));
    characters[this.#column] = character;
    this.#lines[this.#row] = characters.join("");
    this.#column++;
  }

  #obey(letter: string, sequence: string): void {
    const count = Number(/\d+/.exec(sequence)?.[0] ?? 1);
    if (letter === "A") this.#goTo(Math.max(0, this.#row - count), this.#column);
    else if (letter === "K") this.#clearLine();
    else if (letter === "J") {
      this.#clearLine();
      this.#lines = this.#lines.slice(0, this.#row + 1);
    } else if (letter !== "m") throw new Error(`this terminal does not know ${JSON.stringify(sequence)}`);
  }

  #clearLine(): void {
    this.#lines[this.#row] = Array.from(this.#lines[this.#row] ?? "")
      .slice(0, this.#column)
      .join("");
  }

  #goTo(row: number, column: number): void {
    while (this.#lines.length <= row) this.#lines.push("");
    [this.#row, this.#column] = [row, column];
  }
}

function pieces(line: string, columns: number): string[] {
  const characters = Array.from(line);
  const found: string[] = [];
  for (let at = 0; at < Math.max(1, characters.length); at += columns)
    found.push(characters.slice(at, at + columns).join(""));
  return found;
}
