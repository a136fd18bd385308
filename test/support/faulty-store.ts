// A store that goes wrong once, at a call that the test chooses.
import { failure } from "../../src/base/errors.ts";
import type { RolloutError } from "../../src/base/errors.ts";
import type { Batch, CommitOutcome, Entry, ScanRange, Store } from "../../src/storage/store.ts";
import { DelegatingStore } from "./delegating-store.ts";

export interface Fault {
  /** A commit, unless said; `get` is one of many keys too. A read that fails throws, and a commit answers `unknown`. */
  readonly at?: "get" | "scan" | "commit";
  /** Which of them, counted from 1; the first, unless said. */
  readonly nth?: number;
  /** Whether the call is carried out all the same; a read that fails never is. */
  readonly kind: "fail_before" | "fail_after";
  /**
   * The handle's state from then on. `broken`, as on LevelDB: every later commit is `unknown` and not executed, every read
   * throws. `usable`, unless said, as on a database behind a network: the next call goes well.
   */
  readonly afterFailure?: "broken" | "usable";
}

export class FaultyStore extends DelegatingStore {
  readonly #fault: Fault;
  #calls = 0;
  #broken: RolloutError | undefined;

  constructor(inner: Store, fault: Fault) {
    super(inner);
    this.#fault = fault;
  }

  override async get(key: string): Promise<Uint8Array | undefined> {
    this.#failRead("get", key);
    return super.get(key);
  }

  override async getMany(keys: readonly string[]): Promise<readonly (Uint8Array | undefined)[]> {
    this.#failRead("get", keys[0] ?? "");
    return super.getMany(keys);
  }

  override async scan(range: ScanRange): Promise<Entry[]> {
    this.#failRead("scan", range.from);
    return super.scan(range);
  }

  override async commit(batch: Batch): Promise<CommitOutcome> {
    if (this.#broken !== undefined) return { kind: "unknown", cause: this.#broken };
    if (!this.#isTime("commit")) return super.commit(batch);
    const cause = failure("store_write_failed", {
      path: this.location,
      reason: "injected: the write failed",
    });
    if (this.#fault.afterFailure === "broken") this.#broken = cause;
    if (this.#fault.kind === "fail_after") await super.commit(batch);
    return { kind: "unknown", cause };
  }

  #failRead(operation: "get" | "scan", key: string): void {
    if (this.#broken !== undefined) throw this.#broken;
    if (this.#isTime(operation))
      throw failure("store_corrupt", { path: this.location, key, reason: "injected: the read failed" });
  }

  #isTime(operation: "get" | "scan" | "commit"): boolean {
    const { at = "commit", nth = 1 } = this.#fault;
    return operation === at && ++this.#calls === nth;
  }
}
