// Pulls at the desk over the reactor with its ledger: nothing is heard before `run`, and time is moved by hand.
import assert from "node:assert/strict";
import type { StoreId } from "../../src/base/ids.ts";
import { epoch, parseUlid } from "../../src/base/ids.ts";
import { LIMITS } from "../../src/config/limits.ts";
import type { Input } from "../../src/coordinator/turn/input.ts";
import type { Leader } from "../../src/coordinator/rpc/leader.ts";
import { envelopeOf } from "../../src/coordinator/rpc/messages.ts";
import type { Pull, PullAnswer } from "../../src/coordinator/rpc/pull-call.ts";
import { PullDesk } from "../../src/coordinator/rpc/pull-desk.ts";
import type { AssignedItem, HeldClaim } from "../../src/coordinator/turn/session-frame.ts";
import { LedgerHarness } from "./ledger-harness.ts";
import type { LedgerHarnessOptions } from "./ledger-harness.ts";
import type { LedgerWorker } from "./ledger-worker.ts";
import { settle } from "./settle.ts";
import { VirtualClock } from "./virtual-clock.ts";

export interface StartedPull {
  answer: PullAnswer | undefined;
  error: unknown;
  /** The client hangs up. */
  readonly cancel: () => void;
}

const STORE = parseUlid<StoreId>("01STE000000000000000000000");

export class PullRig {
  readonly harness: LedgerHarness;
  readonly clock = new VirtualClock();
  /** Inputs beyond it are refused. */
  inboxMax = 1_000;
  #inbox: Input[] = [];
  #desk: PullDesk;
  readonly #rememberedBytesMax: number | undefined;
  #requests = 0;

  private constructor(harness: LedgerHarness, rememberedBytesMax: number | undefined) {
    this.harness = harness;
    this.#rememberedBytesMax = rememberedBytesMax;
    this.#desk = this.#newDesk();
  }

  static async start(
    options: LedgerHarnessOptions & { readonly rememberedBytesMax?: number } = {},
  ): Promise<PullRig> {
    return new PullRig(await LedgerHarness.start(options), options.rememberedBytesMax);
  }

  /** Another process leads over the same store; who waited for the one before waits for ever. */
  async restart(): Promise<void> {
    this.#inbox = [];
    await this.harness.lead();
    this.#desk = this.#newDesk();
  }

  /** Asks, with a request id of its own unless said otherwise. Nothing is answered before `run`. */
  start({ id: workerId, incarnation }: LedgerWorker, parts: Partial<Pull> = {}): StartedPull {
    const requestId = `request ${++this.#requests}`;
    const asked = {
      requestId,
      held: [],
      released: [],
      ackedAssignment: 0,
      callNumber: 0,
      credit: 0,
      waitMs: 0,
    };
    const cancelled = new AbortController();
    const started: StartedPull = { answer: undefined, error: undefined, cancel: () => cancelled.abort() };
    this.#desk.pull({ workerId, incarnation, ...asked, ...parts }, cancelled.signal).then(
      (answer) => (started.answer = answer),
      (error: unknown) => (started.error = error),
    );
    return started;
  }

  /** Everything that was said is heard, turn by turn, until nobody says anything more. */
  async run(): Promise<void> {
    await settle();
    while (this.#inbox.length > 0) {
      await this.harness.step(...this.#inbox.splice(0));
      await this.harness.settle();
      await settle();
    }
  }

  /** A pull and its answer. */
  async pull(worker: LedgerWorker, parts: Partial<Pull> = {}): Promise<PullAnswer> {
    const started = this.start(worker, parts);
    await this.run();
    if (started.error instanceof Error) throw started.error;
    assert(started.answer !== undefined, "the pull is answered");
    return started.answer;
  }

  /** As a worker says that it has it. */
  claims(items: readonly AssignedItem[], isFinished = false): HeldClaim[] {
    return items.map(({ id, attempt }) => ({ id, attempt, epoch: this.harness.state.epoch, isFinished }));
  }

  #newDesk(): PullDesk {
    assert(STORE !== undefined);
    const leader: Leader = {
      envelope: envelopeOf(epoch(this.harness.state.epoch), STORE),
      workersMax: 10,
      inboxMax: this.inboxMax,
      limits: LIMITS,
      address: "nowhere:1",
      onHigherEpoch: () => {},
      stopping: new AbortController().signal,
      push: (input) => this.#inbox.length < this.inboxMax && this.#inbox.push(input) > 0,
    };
    return new PullDesk(leader, this.clock, this.#rememberedBytesMax);
  }
}

/** Items of a batch, each with its attempt: `["a", 1]`. */
export function textsOf({ assignments }: PullAnswer): string[] {
  return (assignments?.items ?? []).map(({ payload }) => Buffer.from(payload).toString());
}
