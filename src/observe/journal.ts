// The last entries of something that goes on, for readers that ask what they have missed, and the following ones for readers that
// stay. Never in the way of the one who writes: a reader who is slow loses entries, which are counted.
import { assert } from "../base/assert.ts";

/** Entries that wait for one reader. */
const WAITING_MAX = 1_000;
/** Each reader costs memory. */
const READERS_MAX = 64;

export interface Page<Entry> {
  readonly entries: readonly Entry[];
  /** Entries that are missing before these. */
  readonly dropped: number;
}

export class Journal<Entry> {
  readonly readersMax: number = READERS_MAX;
  readonly #rememberedMax: number;
  #entries: Entry[] = [];
  #forgotten = 0;
  readonly #readers = new Set<JournalReader<Entry>>();

  constructor(rememberedMax: number) {
    this.#rememberedMax = rememberedMax;
  }

  get isRead(): boolean {
    return this.#readers.size > 0;
  }

  /** For readers, and remembered for later ones. */
  note(entry: Entry): void {
    this.#entries.push(entry);
    if (this.#entries.length > 2 * this.#rememberedMax) {
      this.#forgotten += this.#entries.length - this.#rememberedMax;
      this.#entries = this.#entries.slice(-this.#rememberedMax);
    }
    this.tell(entry);
  }

  /** For those who read now. */
  tell(entry: Entry): void {
    for (const reader of this.#readers) reader.take(entry);
  }

  /** The last entries, oldest first, and how many there were before them. */
  remembered(): Page<Entry> {
    const dropped = this.#forgotten + Math.max(0, this.#entries.length - this.#rememberedMax);
    return { entries: this.#entries.slice(-this.#rememberedMax), dropped };
  }

  /** Begins with what happens from now. Undefined when there are too many readers. */
  follow(): JournalReader<Entry> | undefined {
    if (this.#readers.size >= READERS_MAX) return undefined;
    const reader: JournalReader<Entry> = new JournalReader(() => this.#readers.delete(reader));
    this.#readers.add(reader);
    return reader;
  }
}

/** Somebody who stays. */
export class JournalReader<Entry> {
  readonly #onEnd: () => void;
  #waiting: Entry[] = [];
  #dropped = 0;
  #isOver = false;
  #wake: (() => void) | undefined;

  constructor(onEnd: () => void) {
    this.#onEnd = onEnd;
  }

  take(entry: Entry): void {
    if (this.#waiting.length < WAITING_MAX) this.#waiting.push(entry);
    else this.#dropped++;
    this.#wake?.();
  }

  /** Entries since the last call, and how many of them are lost; waits until there is something. */
  async next(): Promise<Page<Entry> | undefined> {
    assert(this.#wake === undefined, "a journal's reader is asked by one at a time");
    while (!this.#isOver && this.#waiting.length === 0 && this.#dropped === 0)
      await new Promise<void>((resolve) => (this.#wake = resolve));
    this.#wake = undefined;
    if (this.#isOver) return undefined;
    const page = { entries: this.#waiting, dropped: this.#dropped };
    this.#waiting = [];
    this.#dropped = 0;
    return page;
  }

  /** `next` is undefined from now on. Idempotent. */
  end(): void {
    this.#isOver = true;
    this.#onEnd();
    this.#wake?.();
  }
}
