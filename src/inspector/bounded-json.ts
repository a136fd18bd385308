// A value as JSON for a person, never longer than asked for: what does not fit is left out, and a mark says so. The value may be deep, wide
// or of another program's making; no more of it is looked at than is shown.

const MORE = "…";
const DEPTH_MAX = 8;

export function boundedJson(value: unknown, charactersMax: number): string {
  const writer = new BoundedWriter(charactersMax);
  writer.write(value, 0);
  return writer.text;
}

class BoundedWriter {
  text = "";
  #isFull = false;
  readonly #max: number;

  constructor(max: number) {
    this.#max = max;
  }

  write(value: unknown, depth: number): void {
    if (typeof value === "string") return this.#add(JSON.stringify(value.slice(0, this.#max)));
    if (typeof value !== "object" || value === null) return this.#add(String(value));
    if (depth === DEPTH_MAX) return this.#add(Array.isArray(value) ? `[${MORE}]` : `{${MORE}}`);
    if (Array.isArray(value)) return this.#writeList(value, depth);
    let isFirst = true;
    this.#add("{");
    // Not by entries: there may be a million.
    for (const key in value) {
      if (this.#isFull) return;
      if (!Object.hasOwn(value, key)) continue;
      this.#add(`${isFirst ? "" : ","}${JSON.stringify(key.slice(0, this.#max))}:`);
      this.write((value as Readonly<Record<string, unknown>>)[key], depth + 1);
      isFirst = false;
    }
    this.#add("}");
  }

  #writeList(list: readonly unknown[], depth: number): void {
    this.#add("[");
    for (const [at, one] of list.entries()) {
      if (this.#isFull) return;
      if (at > 0) this.#add(",");
      this.write(one, depth + 1);
    }
    this.#add("]");
  }

  #add(part: string): void {
    if (this.#isFull) return;
    this.#isFull = this.text.length + part.length > this.#max;
    this.text += this.#isFull ? part.slice(0, this.#max - this.text.length - MORE.length) + MORE : part;
  }
}
