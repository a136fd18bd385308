// Pulls at the desk over the reactor with its ledger: nothing is heard before `run`, and time is moved by hand.
import assert from "node:assert/strict";
import type { Input } from "../../../../src/coordinator/turn/input.ts";
import type { Pull, PullAnswer } from "../../../../src/coordinator/rpc/pull.ts";
import { PullDesk } from "../../../../src/coordinator/rpc/pull.ts";
import type { AssignedItem, HeldClaim } from "../../../../src/coordinator/turn/session-frame.ts";
import { World } from "../../../support/world.ts";
import type { WorldOptions } from "../../../support/world.ts";
import type { WorldWorker } from "../../../support/world-worker.ts";
import { settle } from "../../../support/settle.ts";
import { VirtualClock } from "../../../support/virtual-clock.ts";

export interface StartedPull {
  answer: PullAnswer | undefined;
  error: unknown;
  /** The client hangs up. */
  readonly cancel: () => void;
}

export class PullRig {
  readonly world: World;
  readonly clock = new VirtualClock();
  /** Inputs beyond it are refused. */
  inboxMax = 1_000;
  #inbox: Input[] = [];
  #desk: PullDesk;
  readonly #rememberedBytesMax: number | undefined;
  #requests = 0;

  private constructor(world: World, rememberedBytesMax: number | undefined) {
    this.world = world;
    this.#rememberedBytesMax = rememberedBytesMax;
    this.#desk = this.#newDesk();
  }

  static async start(
    options: WorldOptions & { readonly rememberedBytesMax?: number } = {},
  ): Promise<PullRig> {
    return new PullRig(await World.start(options), options.rememberedBytesMax);
  }

  /** Another process leads over the same store; who waited for the one before waits for ever. */
  async restart(): Promise<void> {
    this.#inbox = [];
    await this.world.lead();
    this.#desk = this.#newDesk();
  }

  /** Asks, with a request id of its own unless said otherwise. Nothing is answered before `run`. */
  start({ id: workerId, incarnation }: WorldWorker, parts: Partial<Pull> = {}): StartedPull {
    const requestId = `request ${++this.#requests}`;
    const asked = {
      requestId,
      held: [],
      handedBack: [],
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
      await this.world.step(...this.#inbox.splice(0));
      await this.world.settle();
      await settle();
    }
  }

  /** A pull and its answer. */
  async pull(worker: WorldWorker, parts: Partial<Pull> = {}): Promise<PullAnswer> {
    const started = this.start(worker, parts);
    await this.run();
    if (started.error instanceof Error) throw started.error;
    assert(started.answer !== undefined, "the pull is answered");
    return started.answer;
  }

  /** As a worker says that it has it. */
  claims(items: readonly AssignedItem[], isFinished = false): HeldClaim[] {
    return items.map(({ id, attempt }) => ({ id, attempt, epoch: this.world.state.epoch, isFinished }));
  }

  #newDesk(): PullDesk {
    const push = (input: Input): boolean => this.#inbox.length < this.inboxMax && this.#inbox.push(input) > 0;
    const leader = this.world.leader(push, { inboxMax: this.inboxMax });
    return new PullDesk(leader, this.clock, this.#rememberedBytesMax);
  }
}

/** Items of a batch, each with its attempt: `["a", 1]`. */
export function textsOf({ assignments }: PullAnswer): string[] {
  return (assignments?.items ?? []).map(({ payload }) => Buffer.from(payload).toString());
}
