// The history of a simulated world, one line per event, and one number for all of it: two runs that differ anywhere
// differ in it. Only the last lines are kept.

const KEPT = 4_000;
const HASH_SEED = 0x811c9dc5;
const HASH_FACTOR = 0x01000193;

export class Trace {
  #lines: string[] = [];
  #count = 0;
  #hash = HASH_SEED;

  /** `what` in one line. */
  add(atMs: number, who: string, what: string): void {
    const line = `${atMs.toFixed(3).padStart(11)} ${who.padEnd(4)} ${what}`;
    this.#count++;
    for (let at = 0; at < line.length; at++)
      this.#hash = Math.imul(this.#hash ^ line.charCodeAt(at), HASH_FACTOR);
    this.#lines.push(line);
    if (this.#lines.length >= 2 * KEPT) this.#lines = this.#lines.slice(-KEPT);
  }

  /** How many lines there were. */
  get count(): number {
    return this.#count;
  }

  /** Over every line (FNV-1a, 32 bits). */
  get hash(): string {
    return (this.#hash >>> 0).toString(16).padStart(8, "0");
  }

  tail(lines: number): readonly string[] {
    return this.#lines.slice(-lines);
  }
}
