// A process that dies, for tests that have to try every moment to die in. A life counts the steps between the code under
// test and the world; at the chosen one it ends: nothing that belongs to it ever answers again, nor has any effect.
import type { Batch, CommitOutcome, Entry, ScanRange, Store } from "../../../src/storage/store.ts";
import { DelegatingStore } from "../../support/delegating-store.ts";

export class Life {
  readonly #lastStep: number;
  readonly #death: PromiseWithResolvers<void> = Promise.withResolvers();
  #steps = 0;

  /** Ends at step number `lastStep`, counted from 1; never, when it is left out. */
  constructor(lastStep = Infinity) {
    this.#lastStep = lastStep;
  }

  get steps(): number {
    return this.#steps;
  }

  get isOver(): boolean {
    return this.#steps >= this.#lastStep;
  }

  /** A moment at which the process can die. Resolves at once, or never. */
  async step(): Promise<void> {
    if (!this.isOver) this.#steps++;
    if (!this.isOver) return;
    this.#death.resolve();
    await new Promise(() => {});
  }

  /** Lives `story` to its end, or dies: then undefined. */
  async live<T>(story: () => Promise<T>): Promise<T | undefined> {
    return Promise.race([story(), this.#death.promise.then(() => undefined)]);
  }
}

/** The store as one life sees it. It can die before each call is carried out, and after it before it hears of that. */
export class MortalStore extends DelegatingStore {
  readonly #life: Life;

  constructor(inner: Store, life: Life) {
    super(inner);
    this.#life = life;
  }

  override get(key: string): Promise<Uint8Array | undefined> {
    return this.#call(() => super.get(key));
  }

  override scan(range: ScanRange): Promise<Entry[]> {
    return this.#call(() => super.scan(range));
  }

  override commit(batch: Batch): Promise<CommitOutcome> {
    return this.#call(() => super.commit(batch));
  }

  async #call<T>(call: () => Promise<T>): Promise<T> {
    await this.#life.step();
    const answer = await call();
    await this.#life.step();
    return answer;
  }
}
