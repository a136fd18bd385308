// A store that fails by plan, around any other: tests see with it what callers do with `unknown`, with reads that throw and with
// a slow disk. A plan is a function of the call's number and kind: the same plan over the same calls does the same again.
//
// Keeps true: what it executes, it executes in the order of the calls and answers in that order; without faults it is
// the inner store.
import { sleep } from "../../src/base/clock.ts";
import type { Clock } from "../../src/base/clock.ts";
import { failure } from "../../src/base/errors.ts";
import type { RolloutError } from "../../src/base/errors.ts";
import { assertBatch, assertKey, assertOpen, assertRange } from "../../src/storage/preconditions.ts";
import type { Batch, CommitOutcome, Entry, ScanRange, Store } from "../../src/storage/store.ts";
import { DelegatingStore } from "./delegating-store.ts";

export type Operation = "get" | "scan" | "commit";

export type Fault =
  /** A read throws; a commit is not executed and answers `unknown`. */
  | { readonly kind: "fail_before" }
  /** The call is executed. A commit then answers `unknown`; a read throws, as nothing else could have come of it. */
  | { readonly kind: "fail_after" }
  /** The call is executed when the time has passed. Later commits wait behind it: order holds. */
  | { readonly kind: "delay"; readonly delayMs: number };

/** `undefined`: this call goes well. `nth` counts the calls of that operation, from 1. Asked once per call, in order. */
export type FaultPlan = (operation: Operation, nth: number) => Fault | undefined;

export const noFaults: FaultPlan = () => undefined;

export interface ScriptedFault {
  readonly operation: Operation;
  readonly nth: number;
  readonly fault: Fault;
}

/** Exactly these faults. */
export function scriptedFaults(script: readonly ScriptedFault[]): FaultPlan {
  return (operation, nth) => script.find((line) => line.operation === operation && line.nth === nth)?.fault;
}

export interface FaultyStoreOptions {
  readonly plan: FaultPlan;
  readonly clock: Clock;
  /**
   * The handle's state after a commit that failed. `broken`, as on LevelDB: every later commit is `unknown` and not
   * executed, every read throws. `usable`, as on a database behind a network: the next call may go well.
   */
  readonly afterFailure: "broken" | "usable";
}

export class FaultyStore extends DelegatingStore {
  readonly #options: FaultyStoreOptions;
  readonly #calls: Record<Operation, number> = { get: 0, scan: 0, commit: 0 };
  /** The end of the line of commits: each waits for the one before it. */
  #tail: Promise<unknown> = Promise.resolve();
  #broken: RolloutError | undefined;
  #closing: Promise<void> | undefined;

  constructor(inner: Store, options: FaultyStoreOptions) {
    super(inner);
    this.#options = options;
  }

  override async get(key: string): Promise<Uint8Array | undefined> {
    assertOpen(this.#closing === undefined, this.location);
    assertKey(key);
    return this.#read(this.#next("get"), key, () => super.get(key));
  }

  override async getMany(keys: readonly string[]): Promise<readonly (Uint8Array | undefined)[]> {
    assertOpen(this.#closing === undefined, this.location);
    keys.forEach(assertKey);
    return this.#read(this.#next("get"), keys[0] ?? "", () => super.getMany(keys));
  }

  override async scan(range: ScanRange): Promise<Entry[]> {
    assertOpen(this.#closing === undefined, this.location);
    assertRange(range);
    return this.#read(this.#next("scan"), range.from, () => super.scan(range));
  }

  override async commit(batch: Batch): Promise<CommitOutcome> {
    assertOpen(this.#closing === undefined, this.location);
    assertBatch(batch);
    const fault = this.#next("commit");
    const outcome = this.#tail.then(() => this.#commit(fault, batch));
    this.#tail = outcome;
    return outcome;
  }

  override close(): Promise<void> {
    this.#closing ??= this.#tail.then(() => super.close());
    return this.#closing;
  }

  #next(operation: Operation): Fault | undefined {
    return this.#options.plan(operation, ++this.#calls[operation]);
  }

  async #commit(fault: Fault | undefined, batch: Batch): Promise<CommitOutcome> {
    if (this.#broken !== undefined) return { kind: "unknown", cause: this.#broken };
    if (fault?.kind === "fail_before") return this.#fail();
    if (fault?.kind === "delay") await sleep(this.#options.clock, fault.delayMs);
    const outcome = await super.commit(batch);
    return fault?.kind === "fail_after" ? this.#fail() : outcome;
  }

  async #read<T>(fault: Fault | undefined, key: string, read: () => Promise<T>): Promise<T> {
    if (this.#broken !== undefined) throw this.#broken;
    if (fault?.kind === "delay") await sleep(this.#options.clock, fault.delayMs);
    if (fault?.kind === "fail_before" || fault?.kind === "fail_after") {
      throw failure("store_corrupt", { path: this.location, key, reason: "injected: the read failed" });
    }
    return read();
  }

  #fail(): CommitOutcome {
    const cause = failure("store_write_failed", {
      path: this.location,
      reason: "injected: the write failed",
    });
    if (this.#options.afterFailure === "broken") this.#broken = cause;
    return { kind: "unknown", cause };
  }
}
