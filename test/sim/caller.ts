// A worker that only makes calls and keeps nothing on a disk, as a program in another language does in few lines: it beats by a timer,
// and beside that asks, executes and reports. Some are strange: they ask late or never, or not again after an answer was lost.
//
// Keeps true: it begins nothing that may be somebody else's by now. It was heard a moment ago, and no answer was long on its way.
import { createHash } from "node:crypto";
import { create } from "@bufbuild/protobuf";
import { createClient } from "@connectrpc/connect";
import type { Transport } from "@connectrpc/connect";
import { sleep } from "../../src/base/clock.ts";
import { RolloutError } from "../../src/base/errors.ts";
import { itemIdText } from "../../src/coordinator/ledger/place.ts";
import type { Attempt } from "../../src/gen/rollout/v1/common_pb.ts";
import { WorkerState } from "../../src/gen/rollout/v1/common_pb.ts";
import { BeatVerdict, HeartbeatService } from "../../src/gen/rollout/v1/heartbeat_pb.ts";
import {
  HeldAttemptSchema,
  HeldPhase,
  OutcomeClass,
  ResultSchema,
  WorkService,
} from "../../src/gen/rollout/v1/work_pb.ts";
import type { Assignment, HeldAttempt, PullResponse, Result } from "../../src/gen/rollout/v1/work_pb.ts";
import type { Backend, Outcome } from "../../src/worker/backends/backend.ts";
import { heldDigestOf } from "../../src/worker/workload.ts";
import type { SimProcess } from "./process.ts";
import { between } from "./world.ts";
import { OUTPUT_MAX_BYTES } from "./workload.ts";

export interface CallerOptions {
  readonly process: SimProcess;
  readonly transport: Transport;
  /** As its certificate and its calls say. */
  readonly worker: { readonly workerId: Uint8Array; readonly incarnation: Uint8Array };
  readonly slots: number;
  readonly backend: Backend;
  /** How long it only beats; `Infinity`: it never asks. */
  readonly asksAfterMs: number;
  /** When an answer was lost it goes on beating, and asks for nothing more. */
  readonly givesUpAsking: boolean;
  /** Told of what is a bug. */
  readonly fail: (error: unknown) => void;
}

const BEAT_EVERY_MS = 500;
const WAIT_MS = 500;
const LOOK_EVERY_MS = 50;
const LOOKS_MAX = 40;
const AGAIN_MIN_MS = 50;
const AGAIN_MAX_MS = 300;
/** It begins nothing when it was not heard for so long. */
const SELF_FENCE_MS = 4_000;
/** An answer that was asked for so long ago is as good as lost: its beats had to say before that it has arrived. */
const ANSWER_MAX_MS = 2_000;

interface Having {
  readonly attempt: Attempt;
  readonly epoch: bigint;
  readonly unwanted: AbortController;
  isFinished: boolean;
}

export class Caller {
  readonly #options: CallerOptions;
  readonly #heart;
  readonly #work;
  readonly #having = new Map<string, Having>();
  #sequence = 0n;
  #calls = 0n;
  #ackedAssignment = 0n;
  #fencedAtMs = -Infinity;

  constructor(options: CallerOptions) {
    this.#options = options;
    this.#heart = createClient(HeartbeatService, options.transport);
    this.#work = createClient(WorkService, options.transport);
  }

  /** Until its process ends. Rejects when it is refused what it cannot do otherwise. */
  async live(): Promise<void> {
    const { process, asksAfterMs } = this.#options;
    this.#beat();
    if (asksAfterMs === Infinity) return process.say("beats, and never asks");
    while (this.#fencedAtMs === -Infinity) await sleep(process.clock, LOOK_EVERY_MS);
    await sleep(process.clock, asksAfterMs);
    while (await this.#ask()) await this.#haveRoom();
    process.say("goes on beating, and does not ask again");
  }

  /** One that is not answered is followed by the next. */
  #beat(): void {
    const { process, worker, slots, fail } = this.#options;
    const { clock } = process;
    const sentMs = clock.monotonicMs();
    const sequence = ++this.#sequence;
    const beat = {
      worker,
      slots,
      sequence,
      state: WorkerState.READY,
      ackedAssignment: this.#ackedAssignment,
      heldDigest: heldDigestOf([...this.#having.values()].map(({ attempt }) => attempt)),
    };
    const heard = (verdict?: BeatVerdict): void => {
      if (verdict === BeatVerdict.ACCEPTED)
        this.#fencedAtMs = Math.max(this.#fencedAtMs, sentMs + SELF_FENCE_MS);
    };
    this.#heart
      .beat({ beat })
      .then(({ ack }) => heard(ack?.verdict), expected)
      .catch(fail);
    clock.after(BEAT_EVERY_MS, () => this.#beat());
  }

  /** Asks once, and takes what comes. False when nothing has come and it has had enough. */
  async #ask(): Promise<boolean> {
    const { process, worker, slots, givesUpAsking } = this.#options;
    const { clock, random } = process;
    const askedMs = clock.monotonicMs();
    const asked = {
      ...{ worker, requestId: random.bytes(16), ackedAssignment: this.#ackedAssignment, waitMs: WAIT_MS },
      callNumber: ++this.#calls,
      ...{ credit: Math.max(0, slots - this.#having.size), held: this.#held },
    };
    const isLate = (): boolean => clock.monotonicMs() - askedMs > ANSWER_MAX_MS;
    while (!isLate()) {
      const answer = await this.#work.pull(asked).catch(expected);
      if (answer !== undefined && !isLate()) this.#take(answer);
      if (answer !== undefined) return true;
      if (!isLate()) await sleep(clock, between(random, AGAIN_MIN_MS, AGAIN_MAX_MS));
    }
    process.say("has lost an answer");
    return !givesUpAsking;
  }

  /** With full hands it asks only now and then, to hear what nobody wants any more. */
  async #haveRoom(): Promise<void> {
    const { process, slots } = this.#options;
    for (let looks = 0; looks < LOOKS_MAX && this.#having.size >= slots; looks++)
      await sleep(process.clock, LOOK_EVERY_MS);
  }

  get #held(): HeldAttempt[] {
    return [...this.#having.values()].map(({ attempt, epoch, isFinished }) =>
      create(HeldAttemptSchema, {
        attempt,
        epoch,
        phase: isFinished ? HeldPhase.FINISHED : HeldPhase.RUNNING,
      }),
    );
  }

  #take({ assignments: batch, drop, coordinator }: PullResponse): void {
    for (const attempt of drop?.dropped ?? []) {
      const name = nameOf(attempt);
      this.#having.get(name)?.unwanted.abort();
      this.#having.delete(name);
    }
    if (batch === undefined) return;
    this.#ackedAssignment = batch.firstNumber + BigInt(batch.assignments.length) - 1n;
    for (const assignment of batch.assignments)
      this.#execute(assignment, coordinator?.coordEpoch ?? 0n).catch(this.#options.fail);
  }

  async #execute(assignment: Assignment, epoch: bigint): Promise<void> {
    const { attempt, payload, checkpoint, alone } = assignment;
    if (attempt === undefined) return;
    const { process, backend } = this.#options;
    const unwanted = new AbortController();
    const having: Having = { attempt, epoch, unwanted, isFinished: false };
    this.#having.set(nameOf(attempt), having);
    const mayBegin = (): boolean => process.clock.monotonicMs() < this.#fencedAtMs;
    const offered = { ...attempt, payload, checkpoint, alone, mayBegin, env: {} };
    const outcome = await backend.execute(offered, unwanted.signal, () => undefined);
    if (unwanted.signal.aborted) return;
    having.isFinished = true;
    await this.#report(this.#resultOf(having, outcome));
    if (this.#having.get(nameOf(attempt)) === having) this.#having.delete(nameOf(attempt));
  }

  #resultOf({ attempt, epoch }: Having, outcome: Outcome): Result {
    const { incarnation } = this.#options.worker;
    const told = { attempt, epoch, incarnation };
    if (outcome.kind !== "success")
      return create(ResultSchema, { ...told, outcome: OUTCOME_CLASS[outcome.kind] });
    const { output } = outcome;
    if (output.length > OUTPUT_MAX_BYTES)
      return create(ResultSchema, { ...told, outcome: OutcomeClass.TOO_LARGE });
    const outputDigest = createHash("sha256").update(output).digest();
    return create(ResultSchema, { ...told, outcome: OutcomeClass.SUCCESS, output, outputDigest });
  }

  /** Again and again, until it is answered. */
  async #report(result: Result): Promise<void> {
    const { process, worker } = this.#options;
    const { clock, random } = process;
    const report = { worker, ackedAssignment: this.#ackedAssignment, results: [result] };
    while ((await this.#work.reportResults(report).catch(expected)) === undefined)
      await sleep(clock, between(random, AGAIN_MIN_MS, AGAIN_MAX_MS));
  }
}

const OUTCOME_CLASS: Readonly<Record<Outcome["kind"], OutcomeClass>> = {
  success: OutcomeClass.SUCCESS,
  error: OutcomeClass.ERROR,
  timeout: OutcomeClass.TIMEOUT,
  crash: OutcomeClass.CRASH,
  crash_shared: OutcomeClass.CRASH_SHARED,
  too_large: OutcomeClass.TOO_LARGE,
  preempted: OutcomeClass.PREEMPTED,
};

function nameOf({ itemId, attempt }: Attempt): string {
  return `${itemIdText(itemId)}#${attempt}`;
}

/** A call that came to nothing is made again, or another one. Throws what is a bug. */
function expected(error: unknown): undefined {
  if (!(error instanceof RolloutError)) throw error;
}
