// Reads server-sent events: bytes in, the data of whole events out. What is not data is passed over.
//
// Keeps true: an event that does not end is not kept beyond the limit.

export class EventStream {
  readonly #onData: (data: string) => void;
  readonly #limit: number;
  readonly #decoder = new TextDecoder();
  #rest = "";
  #data: string[] = [];
  #size = 0;

  /** `limit`: characters of one event. */
  constructor(limit: number, onData: (data: string) => void) {
    this.#limit = limit;
    this.#onData = onData;
  }

  /** False when an event is over the limit: nothing more can be read. */
  write(chunk: Uint8Array): boolean {
    const text = this.#rest + this.#decoder.decode(chunk, { stream: true });
    let from = 0;
    for (let at = text.indexOf("\n"); at !== -1; at = text.indexOf("\n", from)) {
      this.#line(text.slice(from, text[at - 1] === "\r" && at > from ? at - 1 : at));
      from = at + 1;
    }
    this.#rest = text.slice(from);
    return this.#size + this.#rest.length <= this.#limit;
  }

  #line(line: string): void {
    if (line === "") return this.#dispatch();
    const data = /^data(?::\s?|$)/.exec(line);
    if (data === null) return;
    this.#data.push(line.slice(data[0].length));
    this.#size += line.length;
  }

  #dispatch(): void {
    if (this.#data.length > 0) this.#onData(this.#data.join("\n"));
    this.#data = [];
    this.#size = 0;
  }
}
