// Actors under random doings, beside a shadow of what they have to be: they send, wait, invoke, begin others, stop them and end, while
// workers die, attempts fail, leaders change and time passes.
import assert from "node:assert/strict";
import { seededRandom } from "../../../../src/base/random.ts";
import type { Random } from "../../../../src/base/random.ts";
import type { Asks } from "../../../../src/coordinator/ledger/asks.ts";
import { NO_ASKS } from "../../../../src/coordinator/ledger/asks.ts";
import { planSubmission } from "../../../../src/coordinator/rpc/submissions.ts";
import type { ReportedOutcome } from "../../../../src/coordinator/turn/session-frame.ts";
import { isPlace } from "../../../../src/coordinator/ledger/place.ts";
import { failedRecord } from "../../../../src/coordinator/ledger/records.ts";
import { decodeRecord, okOrFailure, recordChecksum } from "../../../../src/storage/codec.ts";
import { FAILED_PREFIX } from "../../../../src/storage/keys.ts";
import type { Store } from "../../../../src/storage/store.ts";
import { linesOf, World } from "../../../support/world.ts";
import { ShadowActors } from "./shadow-actors.ts";
import { successOf } from "../../../support/world-worker.ts";
import type { HeldItem, WorldWorker } from "../../../support/world-worker.ts";

const KEYS = ["x/1", "x/2", "y/1"];
const IDS = ["p", "q"];
const PARTITIONS = 4;
const WORKERS = 2;

export class ActorRun {
  readonly world: World;
  readonly shadow = new ShadowActors();
  readonly #random: Random;
  readonly #workers: WorldWorker[] = [];
  #tokens = 0;
  #incarnations = 10;
  /** Nothing more is asked for that goes on for ever. */
  #isEnding = false;

  private constructor(world: World, random: Random) {
    this.world = world;
    this.#random = random;
  }

  static async start(seed: number, store?: Store): Promise<ActorRun> {
    // Few virtual nodes: each replay measures those of all members again.
    const keys = { totalPartitions: PARTITIONS, virtualNodes: 16 };
    const options = { seed, keys, budgets: { maxAttempts: 2, maxLost: 9 } };
    const world = await World.start({ ...options, ...(store && { store }) });
    const run = new ActorRun(world, seededRandom(seed));
    for (let number = 1; number <= WORKERS; number++)
      run.#workers.push(await world.worker(number, { slots: 3, credit: 6 }));
    return run;
  }

  get #steadyMs(): number {
    return this.world.nowMs + (this.world.state.steadyOffsetMs ?? 0);
  }

  #below(limit: number): number {
    return Math.floor(this.#random.unit() * limit);
  }

  #pick<T>(list: readonly T[]): T {
    const one = list[this.#below(list.length)];
    assert(one !== undefined);
    return one;
  }

  #token(): Buffer {
    return Buffer.from(`t${++this.#tokens}`);
  }

  async step(): Promise<void> {
    const drawn = this.#random.unit();
    const worker = this.#pick(this.#workers);
    if (drawn < 0.12) await this.#submit();
    else if (drawn < 0.66) await this.#report(worker);
    else if (drawn < 0.72) await worker.ask(2);
    else if (drawn < 0.76) await this.#restart();
    else if (drawn < 0.8) await this.#die(worker);
    else await this.#pass(this.#pick([1, 50, 400, 3_000]));
    assert.deepEqual(this.world.fatal, [], "a store that is whole is not called damaged");
    this.#forgetDropped();
  }

  async #submit(): Promise<void> {
    const text = `${this.#pick(KEYS)} ${this.#token().toString()}`;
    const submission = `01SVBM1SS10N${String(this.#tokens).padStart(14, "0")}`;
    const keyOf = (line: string): string => line.split(" ")[0] ?? "";
    const planned = await planSubmission(this.world.store, linesOf([text], { submission, keyOf }));
    assert(planned.kind === "planned");
    const { batch } = planned;
    this.shadow.submitted(keyOf(text));
    await this.world.step({ kind: "submit", batch, answer: () => undefined });
    await this.world.settle();
  }

  async #report(worker: WorldWorker): Promise<void> {
    const item = worker.held[this.#below(worker.held.length)];
    if (item === undefined) return;
    const drawn = this.#random.unit();
    if (drawn < 0.12) await this.#fail(worker, item);
    else await this.#succeed(worker, item);
    this.#forgetDropped();
    await worker.ask(1);
  }

  /** One that fails for good ends an invocation; any other is retried by an operator. */
  async #fail(worker: WorldWorker, item: HeldItem): Promise<void> {
    const { keyed, text } = item;
    const before = this.world.state.ledger.tally.count("failed");
    await worker.report([item], { kind: "error", message: `no ${text}` });
    if (this.world.state.ledger.tally.count("failed") === before) return;
    if (keyed?.origin?.kind === "invocation") return this.shadow.laneEnded(keyed.origin, text, `no ${text}`);
    for (const { key, value } of await this.world.rowsUnder(FAILED_PREFIX)) {
      const record = okOrFailure("", decodeRecord(failedRecord, key, value));
      const place = key.slice(FAILED_PREFIX.length);
      assert(isPlace(place));
      if (Buffer.compare(record.id, item.id) !== 0) continue;
      const checksum = recordChecksum(value);
      const failed = [{ ...record, place, checksum, key: keyed?.key ?? "" }];
      await this.world.ask((answer) => ({ kind: "retry", failed, answer }));
      await this.world.settle();
    }
  }

  async #succeed(worker: WorldWorker, item: HeldItem): Promise<void> {
    const { keyed, text } = item;
    assert(keyed !== undefined);
    const { key, origin, commit } = keyed;
    const done = this.#done();
    const success = successOf(item);
    if (key.includes("\0")) {
      await worker.report([item], success);
      assert(origin !== undefined);
      if (this.#done() > done) this.shadow.laneEnded(origin, text, text.toUpperCase());
      return;
    }
    const asks = this.#asks(key);
    const before = keyed.state === null ? "" : Buffer.from(keyed.state).toString();
    assert.deepEqual(
      before.split("|").filter(Boolean),
      this.shadow.folded(key),
      `the state of ${key} is the fold of its events`,
    );
    const state = Buffer.from(`${before}|${text}`);
    const nowMs = this.#steadyMs;
    const outcome: ReportedOutcome = { ...success, keyed: { basedOn: commit, state, asks } };
    this.shadow.passed(nowMs);
    await worker.report([item], outcome);
    if (this.#done() > done) this.shadow.recorded({ key, origin, payload: text, asks, nowMs });
    else assert.fail(`the result of ${text} of ${key} is not recorded: ${this.#lastFailure()}`);
  }

  #lastFailure(): string {
    return JSON.stringify(this.world.state.ledger.failureMessages.top(3).map(({ message }) => message));
  }

  #done(): number {
    return this.world.state.ledger.tally.count("done");
  }

  /** As a machine could ask for it in a state that the shadow knows. */
  #asks(key: string): Asks {
    const maybe = <T>(chance: number, make: () => T[]): T[] => (this.#random.unit() < chance ? make() : []);
    const scale = this.#isEnding ? 0 : 1;
    const isRoot = KEYS.includes(key);
    const depth = key.split("/").length;
    const [live, armed] = [this.shadow.liveOf(key), this.shadow.timersOf(key)];
    const stopped = live.filter(() => this.#random.unit() < 0.3);
    const free = IDS.filter((id) => !live.includes(id) || stopped.includes(id));
    const started = free.filter(() => this.#random.unit() < 0.35 * scale);
    const isChild = started.map(() => depth < 4 && this.#random.unit() < 0.5);
    const starts = started.map((id) => ({ id, source: "s", input: this.#token() }));
    const sendable = [...KEYS, key, ...live.map((id) => `${key}/${id}`)];
    const parent = key.slice(0, key.lastIndexOf("/"));
    return {
      ...NO_ASKS,
      stopped,
      cancelled: armed.filter(() => this.#random.unit() < 0.3),
      timers: maybe(0.3 * scale, () => [
        {
          id: this.#pick(["t", "u"]),
          delayMs: this.#pick([0, 20, 300, 5_000]),
          event: this.#token(),
          to: this.#pick(["", "", this.#pick(KEYS)]),
          isOptional: false,
        },
      ]),
      invocations: starts.filter((_, at) => isChild[at] !== true),
      children: starts.filter((_, at) => isChild[at] === true),
      sends: [
        ...maybe(0.4 * scale, () => [{ to: this.#pick(KEYS), event: this.#token(), isOptional: false }]),
        ...maybe(0.3 * scale, () => [{ to: this.#pick(sendable), event: this.#token(), isOptional: true }]),
        ...maybe(isRoot ? 0 : 0.3 * scale, () => [{ to: parent, event: this.#token(), isOptional: true }]),
      ],
      actions: maybe(0.2 * scale, () => [{ type: "print", params: this.#token() }]),
      final:
        !isRoot && this.#random.unit() < (this.#isEnding ? 1 : 0.2)
          ? { output: this.#token(), error: undefined, idleTtlMs: undefined }
          : undefined,
    };
  }

  #forgetDropped(): void {
    for (const worker of this.#workers) {
      const dropped = worker.framesOf("drop").flatMap(({ attempts }) => attempts);
      const names = new Set(
        dropped.map(({ id, attempt }) => `${Buffer.from(id).toString("hex")} ${attempt}`),
      );
      worker.forget(
        worker.held.filter(({ id, attempt }) => names.has(`${Buffer.from(id).toString("hex")} ${attempt}`)),
      );
    }
  }

  async #restart(): Promise<void> {
    await this.world.lead();
    for (const worker of this.#workers) {
      await worker.reconnect();
      await worker.ask(6);
    }
  }

  async #die(worker: WorldWorker): Promise<void> {
    await worker.startAnew(++this.#incarnations);
    await worker.ask(6);
  }

  async #pass(byMs: number): Promise<void> {
    await this.world.watch(byMs, this.#workers);
    this.shadow.passed(this.#steadyMs);
  }

  /** Nothing new is begun, and everything comes to its end. */
  async finish(): Promise<void> {
    this.#isEnding = true;
    await this.world.seal();
    for (let round = 0; ; round++) {
      assert(round < 300, "every item is final in the end");
      for (const worker of this.#workers) {
        await worker.ask(6);
        for (const item of [...worker.held])
          if (worker.held.includes(item)) {
            await this.#succeed(worker, item);
            this.#forgetDropped();
          }
      }
      const { ledger, keys } = this.world.state;
      const isOver = ledger.tally.pending + ledger.tally.count("running") + keys.timers.armed === 0;
      if (isOver) break;
      await this.#pass(5_000);
    }
    await this.world.settle();
    this.shadow.finished();
    assert.equal((await this.world.view()).state, "Complete");
    assert.equal(
      [...this.world.state.keys.table].filter(({ isLane }) => isLane).length,
      0,
      "no lane is left",
    );
  }
}
