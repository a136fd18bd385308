// Where a text that JSON.parse refuses stops being JSON: its own message says that only sometimes, and in words. Looked at once, when a
// line is refused: it need not be fast, but takes any text, however long or deep.

/** Counts UTF-16 units from 0; the length of the text when more should follow. Undefined when it finds nothing wrong. */
export function jsonFaultAt(text: string): number | undefined {
  const scan = new Scan(text);
  /** The closing sign of each container that is open. */
  const open: ("}" | "]")[] = [];
  for (;;) {
    if (!scan.takeBefore(open)) return scan.at;
    // A value is complete: containers that end behind it are too.
    scan.skip();
    while (scan.takes(open.at(-1) ?? "")) {
      open.pop();
      scan.skip();
    }
    if (open.length === 0) return scan.at === text.length ? undefined : scan.at;
    if (!scan.takes(",")) return scan.at;
    if (open.at(-1) === "}" && !scan.takesName()) return scan.at;
  }
}

class Scan {
  at = 0;
  readonly #text: string;

  constructor(text: string) {
    this.#text = text;
  }

  /** A value, or the beginning of containers up to the first value in them. False at what is none. */
  takeBefore(open: ("}" | "]")[]): boolean {
    for (;;) {
      this.skip();
      if (this.takes("[")) {
        this.skip();
        if (this.takes("]")) return true;
        open.push("]");
      } else if (this.takes("{")) {
        this.skip();
        if (this.takes("}")) return true;
        open.push("}");
        if (!this.takesName()) return false;
      } else {
        return this.#takesString() || this.#takesMatch(NUMBER) || this.#takesMatch(LITERAL);
      }
    }
  }

  /** The name of a field and its colon. */
  takesName(): boolean {
    this.skip();
    if (!this.#takesString()) return false;
    this.skip();
    return this.takes(":");
  }

  skip(): void {
    this.#takesMatch(SPACE);
  }

  takes(mark: string): boolean {
    if (mark === "" || this.#text[this.at] !== mark) return false;
    this.at++;
    return true;
  }

  /** At a fault within it, it stands at the fault. */
  #takesString(): boolean {
    if (!this.takes('"')) return false;
    do this.#takesMatch(PLAIN);
    while (this.#takesMatch(ESCAPE));
    return this.takes('"');
  }

  #takesMatch(pattern: RegExp): boolean {
    pattern.lastIndex = this.at;
    if (!pattern.test(this.#text)) return false;
    this.at = pattern.lastIndex;
    return true;
  }
}

const SPACE = /[ \t\r\n]+/y;
const PLAIN = /[^"\\\u0000-\u001f]+/y;
const ESCAPE = /\\(?:["\\/bfnrt]|u[0-9a-fA-F]{4})/y;
const NUMBER = /-?(?:0|[1-9]\d*)(?:\.\d+)?(?:[eE][+-]?\d+)?/y;
const LITERAL = /true|false|null/y;
