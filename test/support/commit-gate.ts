// Holds back the answers to commits until the test lets them through: a disk that is as slow as it has to be.
import type { Batch, CommitOutcome, Store } from "../../src/storage/store.ts";
import { DelegatingStore } from "./delegating-store.ts";

export class CommitGate {
  readonly #waiting: (() => void)[] = [];
  #isShut: boolean;

  constructor(start: "open" | "shut") {
    this.#isShut = start === "shut";
  }

  /** The store behind the gate. Commits take effect when they are made; only their answers wait. */
  readonly over = (inner: Store): Store => {
    const pass = (): Promise<void> =>
      this.#isShut ? new Promise((resolve) => this.#waiting.push(resolve)) : Promise.resolve();
    return new (class extends DelegatingStore {
      override async commit(batch: Batch): Promise<CommitOutcome> {
        const outcome = await super.commit(batch);
        await pass();
        return outcome;
      }
    })(inner);
  };

  get waiting(): number {
    return this.#waiting.length;
  }

  shut(): void {
    this.#isShut = true;
  }

  /** Lets the answer that has waited longest through. */
  letOneThrough(): void {
    this.#waiting.shift()?.();
  }

  open(): void {
    this.#isShut = false;
    for (const resolve of this.#waiting.splice(0)) resolve();
  }
}
