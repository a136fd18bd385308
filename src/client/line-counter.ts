// How often each line has come before, in 16 bytes a line, however long lines are. Lines are known by 64 bits of their hash:
// of ten million, two different ones are taken for equal with a chance of one in a hundred thousand. That is for
// saying what would happen; what happens is counted by the coordinator over whole hashes.
import { createHash } from "node:crypto";

const CELLS_FIRST = 1_024;
const LOAD_MAX = 0.6;

export class LineCounter {
  /** Hash of each cell's line; 0 is none. */
  #hashes = new BigUint64Array(CELLS_FIRST);
  #counts = new Uint32Array(CELLS_FIRST);
  #lines = 0;

  /** How many equal lines were given before this one. */
  count(line: Uint8Array): number {
    if (this.#lines >= this.#hashes.length * LOAD_MAX) this.#grow();
    const hash = createHash("sha256").update(line).digest().readBigUInt64LE();
    const at = this.#cellOf(hash === 0n ? 1n : hash);
    const before = this.#counts[at] ?? 0;
    if (before === 0) this.#lines++;
    this.#counts[at] = before + 1;
    return before;
  }

  /** Where the line is, or may be put: the first free cell behind the one that it belongs to. */
  #cellOf(hash: bigint): number {
    const mask = this.#hashes.length - 1;
    let at = Number(hash & BigInt(mask));
    while (this.#hashes[at] !== 0n && this.#hashes[at] !== hash) at = (at + 1) & mask;
    this.#hashes[at] = hash;
    return at;
  }

  #grow(): void {
    const [hashes, counts] = [this.#hashes, this.#counts];
    this.#hashes = new BigUint64Array(hashes.length * 2);
    this.#counts = new Uint32Array(counts.length * 2);
    for (const [at, hash] of hashes.entries()) {
      if (hash !== 0n) this.#counts[this.#cellOf(hash)] = counts[at] ?? 0;
    }
  }
}
