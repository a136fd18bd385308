// Results on their way. They are on the worker's disk before they are sent, in the batches in which they are sent, and stay
// there until the coordinator has them on its own: whichever of the two dies in between, they arrive.
//
// Keeps true: a batch that is sent was synced; numbers of an incarnation have no gap and are never given again; what is
// held in memory is bounded, by an executor that starts nothing while `isFull`; a result waits for others only while more are sure to
// come, and not for long.
import { create } from "@bufbuild/protobuf";
import type { Clock } from "../../base/clock.ts";
import type { IncarnationId } from "../../base/ids.ts";
import { ulidToBytes } from "../../base/ids.ts";
import { OutcomeClass, ResultBatchSchema } from "../../gen/rollout/v1/work_pb.ts";
import type { Result, ResultBatch } from "../../gen/rollout/v1/work_pb.ts";
import { decodeRecord, encodeRecord, okOrFailure } from "../../storage/codec.ts";
import { OUTBOX_PREFIX, outboxKey } from "../../storage/keys.ts";
import { pagesUnder } from "../../storage/records.ts";
import { prefixRange } from "../../storage/store.ts";
import type { Store } from "../../storage/store.ts";
import { attemptKey } from "./backlog.ts";
import type { Executed } from "./backlog.ts";
import { keyedBytes } from "./keyed-wire.ts";
import { resultBatchRecord, resultOf, tooLargeFor } from "./outbox-record.ts";
import type { Told } from "./outbox-record.ts";

export interface OutboxOptions {
  readonly store: Store;
  readonly incarnation: IncarnationId;
  readonly clock: Clock;
  /** Results that are not acknowledged: over this many, or this many bytes, nothing more is to be started. */
  readonly maxUnackedResults: number;
  readonly maxUnackedBytes: number;
  /** Whether items wait here behind those that execute: their results follow. None do, unless said. */
  readonly mayFollow?: () => boolean;
  /** There is a batch to send. */
  readonly onBatch: () => void;
  /** The store is broken: the process has to end. Items whose results were not synced are executed again. */
  readonly onFatal: (error: unknown) => void;
}

interface StoredBatch {
  readonly key: string;
  readonly message: ResultBatch;
  readonly bytes: number;
  /** The names of the attempts, in the order of the results. */
  readonly keys: readonly string[];
}

interface Pending {
  readonly key: string;
  readonly result: Result;
  readonly bytes: number;
  /** When it ended, monotonic. */
  readonly endedMs: number;
}

/** A frame holds one batch: well below the limit of a message, and enough for an fsync to be worth it. */
const BATCH_MAX_RESULTS = 1_024;
const BATCH_MAX_BYTES = 1_024 * 1_024;
/** With so many batches on their way, results gather until the first of these is acknowledged, or for so long. */
const BATCHES_UNDER_WAY = 2;
const GATHER_MS = 10;
/**
 * Ends that follow each other within so long share a batch, as long as items wait here: until there are so many, for so long at most. The
 * batch costs two syncs, two frames and a turn of the coordinator's, which is more than a short command does.
 */
const NEXT_END_MS = 50;
const COMPANY_MS = 200;
const COMPANY_RESULTS = 128;
/** The next item of a key waits for the result of the one before it. */
const KEYED_COMPANY_MS = 50;
/** An attempt that took longer would cost more to make again than its batch does: it waits for nobody. */
const QUICK_MS = 1_000;
/** The cost of a result beside its output, message, checkpoint and log. */
const RESULT_OVERHEAD_BYTES = 192;
const RESTORE_PAGE = 16;

export class Outbox {
  readonly #options: OutboxOptions;
  readonly #incarnation: Uint8Array;
  /** Finished attempts, those of earlier incarnations included, until they are acknowledged. */
  readonly #finished = new Map<string, Executed>();
  /** Finished attempts whose results the coordinator does not want. */
  readonly #dropped = new Set<string>();
  /** Not on the disk yet. */
  #pending: Pending[] = [];
  #pendingBytes = 0;
  /** All that is pending ended soon after another end, and was quick. */
  #isInCompany = false;
  /** How long the first of what is pending waits for company. */
  #companyMs = COMPANY_MS;
  #lastEndMs = -Infinity;
  /** Synced, in order of their numbers, without a gap. */
  #batches: StoredBatch[] = [];
  /** Keys of what was acknowledged and still stands in the store. */
  #deletable: string[] = [];
  #deletableSinceMs = 0;
  /** The number of the last batch that is synced; the one on its way to the disk is the next. */
  #lastNumber = 0;
  #unackedResults = 0;
  #unackedBytes = 0;
  #writing: Promise<void> | undefined;
  /** Ends the wait for more that could go with it; undefined while there is no such wait. */
  #endGathering: (() => void) | undefined;
  #isClosing = false;
  #whenFlushed: PromiseWithResolvers<void> | undefined;

  private constructor(options: OutboxOptions) {
    this.#options = options;
    this.#incarnation = ulidToBytes(options.incarnation);
  }

  /** With what earlier incarnations could not deliver, numbered anew. Throws store_corrupt or store_newer. */
  static async open(options: OutboxOptions): Promise<Outbox> {
    const outbox = new Outbox(options);
    const { store } = options;
    for await (const page of pagesUnder(store, OUTBOX_PREFIX, RESTORE_PAGE))
      for (const { key, value } of page) {
        const stored = okOrFailure(store.location, decodeRecord(resultBatchRecord, key, value));
        outbox.#restore(key, stored);
      }
    return outbox;
  }

  /** Takes the end of an attempt over. It is written with the others that end in the same turn of the loop, or soon after. */
  add(finished: Told): void {
    const { key } = finished.assigned;
    const endedMs = this.#options.clock.monotonicMs();
    const isInCompany = endedMs - this.#lastEndMs < NEXT_END_MS && finished.durationMs < QUICK_MS;
    this.#isInCompany = isInCompany && (this.#isInCompany || this.#pending.length === 0);
    this.#lastEndMs = endedMs;
    if (this.#pending.length === 0) this.#companyMs = COMPANY_MS;
    if (finished.assigned.keyed !== undefined) this.#hurry();
    const result = resultOf(finished, this.#incarnation);
    const bytes = sizeOf(result);
    this.#finished.set(key, { ...finished.assigned, payload: NO_BYTES, checkpoint: NO_BYTES });
    this.#pending.push({ key, result, bytes, endedMs });
    this.#pendingBytes += bytes;
    this.#unackedResults++;
    this.#unackedBytes += bytes;
    this.#write();
  }

  /** Results that are not acknowledged. */
  get counts(): { readonly results: number; readonly bytes: number } {
    return { results: this.#unackedResults, bytes: this.#unackedBytes };
  }

  get isFull(): boolean {
    const { maxUnackedResults, maxUnackedBytes } = this.#options;
    return this.#unackedResults >= maxUnackedResults || this.#unackedBytes >= maxUnackedBytes;
  }

  /** Attempts that this incarnation and those before have finished and nobody has acknowledged. */
  get finished(): Iterable<Executed> {
    return this.#finished.values();
  }

  has(key: string): boolean {
    return this.#finished.has(key);
  }

  /** The coordinator does not want its result. Unknown ones are ignored. */
  drop(key: string): void {
    if (this.#finished.has(key)) this.#dropped.add(key);
  }

  /**
   * The first batch after `number` that is not acknowledged; undefined when there is none yet. A larger output than the
   * coordinator takes would never arrive, so it is said that it is too large.
   */
  next(number: number, maxOutputBytes = Infinity): ResultBatch | undefined {
    const first = this.#firstNumber;
    const batch = this.#batches[Math.max(number + 1 - first, 0)];
    if (batch === undefined || (this.#dropped.size === 0 && batch.bytes <= maxOutputBytes))
      return batch?.message;
    const { message, keys } = batch;
    const results = message.results
      .filter((_, at) => !this.#dropped.has(keys[at] ?? ""))
      .map((result) =>
        result.output.length > maxOutputBytes ? tooLargeFor(result, maxOutputBytes) : result,
      );
    return create(ResultBatchSchema, { number: message.number, results });
  }

  /** Everything up to this batch is on the coordinator's disk. False when no such batch was ever made. */
  acknowledge(number: number): boolean {
    if (number > this.#lastNumber) return false;
    const acknowledged = this.#batches.splice(0, Math.max(number + 1 - this.#firstNumber, 0));
    for (const { key, message, bytes, keys } of acknowledged) {
      this.#deletable.push(key);
      this.#unackedResults -= message.results.length;
      this.#unackedBytes -= bytes;
      for (const finished of keys) {
        this.#finished.delete(finished);
        this.#dropped.delete(finished);
      }
    }
    if (acknowledged.length > 0) {
      this.#deletableSinceMs = this.#options.clock.monotonicMs();
      this.#write();
    }
    this.#noticeFlushed();
    return true;
  }

  /**
   * The states in a batch that is not acknowledged, but for those at the places that were left out. A batch from which results were
   * taken out, or that an earlier process has made, tells of none.
   */
  statesOf(number: number, leftOut: readonly number[]): { key: string; state: Uint8Array | undefined }[] {
    const batch = this.#batches[number - this.#firstNumber];
    if (batch === undefined || batch.keys.some((key) => this.#dropped.has(key))) return [];
    return batch.message.results.flatMap(({ keyed, outcome }, at) => {
      const key = this.#finished.get(batch.keys[at] ?? "")?.keyed?.key;
      const isNew = keyed !== undefined && (keyed.removed || keyed.state !== undefined);
      if (key === undefined || !isNew || outcome !== OutcomeClass.SUCCESS || leftOut.includes(at)) return [];
      return [{ key, state: keyed.state }];
    });
  }

  /** Resolves when everything that was added is acknowledged. */
  flushed(): Promise<void> {
    this.#whenFlushed ??= Promise.withResolvers();
    const { promise } = this.#whenFlushed;
    this.#noticeFlushed();
    return promise;
  }

  /** Waits for results on their way to the disk. Results that are there stay for the next start. */
  async close(): Promise<void> {
    this.#isClosing = true;
    this.#endGathering?.();
    await this.#writing;
  }

  get #firstNumber(): number {
    return this.#lastNumber - this.#batches.length + 1;
  }

  #restore(key: string, stored: ResultBatch): void {
    const number = BigInt(++this.#lastNumber);
    const message = create(ResultBatchSchema, { number, results: stored.results });
    const bytes = message.results.reduce((sum, result) => sum + sizeOf(result), 0);
    this.#unackedResults += message.results.length;
    this.#unackedBytes += bytes;
    this.#batches.push({ key, message, bytes, keys: message.results.map((result) => this.#recall(result)) });
  }

  /**
   * An earlier process has finished it: the coordinator is to wait for the result, which comes. By the version that was named a leader that
   * has never heard of the attempt knows one of the candidate.
   */
  #recall({ attempt, epoch = 0n, incarnation, pluginVersion, versionNamed }: Result): string {
    const { itemId = NO_BYTES, attempt: number = 0 } = attempt ?? {};
    const key = attemptKey(itemId, number, epoch);
    const nothing = {
      payload: NO_BYTES,
      checkpoint: NO_BYTES,
      priority: 0,
      alone: false,
      plugin: "",
      version: versionNamed ? pluginVersion : "",
      timeoutMs: 0,
    };
    this.#finished.set(key, { key, itemId, attempt: number, epoch, incarnation, ...nothing });
    return key;
  }

  /** Somebody waits for one of those that are pending: a wait that was for longer is counted anew. */
  #hurry(): void {
    this.#companyMs = KEYED_COMPANY_MS;
    this.#endGathering?.();
  }

  #write(): void {
    // After a failure it stays set, so that nothing more is written.
    this.#writing ??= this.#writeAll().catch(this.#options.onFatal);
    if (this.#waitMs <= 0) this.#endGathering?.();
  }

  async #writeAll(): Promise<void> {
    while (this.#pending.length > 0 || this.#deletable.length > 0) {
      await this.#gather();
      const batch = this.#nextBatch();
      const deletes = this.#deletable;
      this.#deletable = [];
      const puts =
        batch === undefined
          ? []
          : [{ key: batch.key, value: encodeRecord(resultBatchRecord, batch.key, batch.message) }];
      // A delete that is lost delivers a result twice, which changes nothing.
      const durability = puts.length > 0 ? "sync" : "flush";
      const outcome = await this.#options.store.commit({ puts, deletes, expect: [], durability });
      if (outcome.kind === "unknown") throw outcome.cause;
      if (batch === undefined) continue;
      this.#lastNumber++;
      this.#batches.push(batch);
      this.#options.onBatch();
    }
    this.#writing = undefined;
  }

  /** How much longer what there is may wait for more that goes with it. */
  get #waitMs(): number {
    const [first] = this.#pending;
    if (this.#isClosing || this.#pending.length >= BATCH_MAX_RESULTS || this.#pendingBytes >= BATCH_MAX_BYTES)
      return 0;
    const nowMs = this.#options.clock.monotonicMs();
    // There is only something to delete.
    if (first === undefined) return this.#deletableSinceMs + GATHER_MS - nowMs;
    const isFollowed = this.#isInCompany && this.#pending.length < COMPANY_RESULTS;
    if (isFollowed && this.#options.mayFollow?.() === true) return first.endedMs + this.#companyMs - nowMs;
    return this.#batches.length >= BATCHES_UNDER_WAY ? first.endedMs + GATHER_MS - nowMs : 0;
  }

  async #gather(): Promise<void> {
    const { clock } = this.#options;
    // All attempts that end in this turn of the loop share a batch.
    await new Promise<void>((resolve) => clock.nextTurn(resolve));
    for (let waitMs = this.#waitMs; waitMs > 0; waitMs = this.#waitMs)
      await new Promise<void>((resolve) => {
        // A millisecond at least: a time too short to be added to the clock's own would never be over.
        const timer = clock.after(Math.ceil(waitMs), resolve);
        this.#endGathering = () => {
          timer.cancel();
          resolve();
        };
      });
    this.#endGathering = undefined;
  }

  #nextBatch(): StoredBatch | undefined {
    let [count, bytes] = [0, 0];
    for (const pending of this.#pending) {
      if (count > 0 && (count >= BATCH_MAX_RESULTS || bytes + pending.bytes > BATCH_MAX_BYTES)) break;
      count++;
      bytes += pending.bytes;
    }
    if (count === 0) return undefined;
    const taken = this.#pending.splice(0, count);
    this.#pendingBytes -= bytes;
    const number = this.#lastNumber + 1;
    return {
      key: outboxKey(this.#options.incarnation, number),
      message: create(ResultBatchSchema, {
        number: BigInt(number),
        results: taken.map(({ result }) => result),
      }),
      bytes,
      keys: taken.map(({ key }) => key),
    };
  }

  #noticeFlushed(): void {
    if (this.#unackedResults > 0 || this.#whenFlushed === undefined) return;
    this.#whenFlushed.resolve();
    this.#whenFlushed = undefined;
  }
}

/** Whether results lie in the store of a worker that no coordinator has acknowledged. */
export async function hasUndelivered(store: Store): Promise<boolean> {
  return (await store.scan({ ...prefixRange(OUTBOX_PREFIX), limit: 1 })).length > 0;
}

const NO_BYTES = new Uint8Array(0);

function sizeOf({ output, errorMessage, response, checkpoint, log, keyed }: Result): number {
  const told = 3 * errorMessage.length + response.length + (keyed === undefined ? 0 : keyedBytes(keyed));
  return RESULT_OVERHEAD_BYTES + output.length + told + checkpoint.length + log.length;
}
