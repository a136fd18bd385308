// The room of a worker's life. state-directory.ts gives the process its id and its store, worker-records.ts is kept in that store;
// certificate.ts enrols and renews; heartbeat.ts and its beat-book.ts keep the worker known and fence it; stay.ts says when it
// leaves of its own accord, and drain.ts ends it.
//
// Here is its side of being alive: one stream of beats, opened again with jittered backoff for as long as the worker
// lives. Says what is wrong once when it changes, in one line, and never gives up by itself: a coordinator that restarts
// finds its workers again.
import type { MessageInitShape } from "@bufbuild/protobuf";
import type { Client } from "@connectrpc/connect";
import { AsyncQueue } from "../../base/async-queue.ts";
import type { Clock, Timer } from "../../base/clock.ts";
import { sleep } from "../../base/clock.ts";
import { RolloutError } from "../../base/errors.ts";
import type { Random } from "../../base/random.ts";
import { BeatVerdict } from "../../gen/rollout/v1/heartbeat_pb.ts";
import type {
  BeatAck,
  BeatSchema,
  BeatStreamRequestSchema,
  HeartbeatService,
} from "../../gen/rollout/v1/heartbeat_pb.ts";
import type { Logger } from "../../observe/log.ts";
import type { EpochGuard } from "../link/epoch-guard.ts";
import type { Conversed, Ending } from "../link/reconnect.ts";
import { stayConnected, absenceAfterMs, Trouble } from "../link/reconnect.ts";
import { BeatBook } from "./beat-book.ts";

export interface HeartbeatOptions {
  readonly client: Pick<Client<typeof HeartbeatService>, "beatStream">;
  readonly clock: Clock;
  readonly random: Random;
  readonly log: Logger;
  /** The addresses that are tried, for a person. */
  readonly address: string;
  readonly guard: EpochGuard;
  readonly heartbeatIntervalMs: number;
  readonly selfFenceTimeoutMs: number;
  /** Without an answer for so long, the stream is given up and a new one opened. */
  readonly answerTimeoutMs: number;
  /** The worker's words about itself now; the sequence is the heart's to add. */
  readonly describe: () => Omit<MessageInitShape<typeof BeatSchema>, "sequence" | "$typeName">;
  readonly onAccepted: (ack: {
    readonly sequence: number;
    /** The epoch of the partitions of keys; undefined while the run has none. */
    readonly assignmentEpoch: bigint | undefined;
  }) => void;
  /** A beat was answered so long after it was sent. */
  readonly onAnswered?: (afterMs: number) => void;
  /**
   * The self-fence begins: nothing may be started, and what runs may soon be others'. The last beat that was answered was sent then.
   * Called once for each.
   */
  readonly onFenced?: (provenAtMs: number) => void;
  /** The answer that comes now ends a self-fence: what this worker had may be others' by now. Called before `onAccepted`. */
  readonly onFenceLifted?: () => void;
  /** An operator wants this worker to drain. May be called with each answer. */
  readonly onDrainAsked?: () => void;
  /** The coordinator that is connected does not answer, or its answers may not be obeyed. Whether there is another one to ask. */
  readonly onDoubt?: () => boolean;
  /** No coordinator was reached for so long. */
  readonly onAbsent?: (forMs: number) => void;
  /** The stream failed for a reason of the table. It is tried again all the same. */
  readonly onFailed: (error: RolloutError) => void;
  /** A newer process of this worker was seen: this one has to end. Called once, and no beat is sent after it. */
  readonly onSuperseded: () => void;
}

/** One stream. */
interface Conversation {
  readonly outgoing: AsyncQueue<MessageInitShape<typeof BeatStreamRequestSchema>>;
  readonly cutOff: AbortController;
  /** Nothing was answered for too long. */
  isSilent: boolean;
}

const OUTGOING_MAX = 64;

export class Heartbeat {
  readonly #options: HeartbeatOptions;
  readonly #book: BeatBook;
  readonly #ending = new AbortController();
  readonly #trouble: Trouble;
  #conversation: Conversation | undefined;
  #fenced = false;
  #ticking: Timer | undefined;
  #fencing: Timer | undefined;
  #onAnswer: ((sequence: number) => void) | undefined;
  #ended: Promise<void> | undefined;

  constructor(options: HeartbeatOptions) {
    this.#options = options;
    this.#book = new BeatBook(options.clock.monotonicMs());
    const { log, clock, address, answerTimeoutMs, onAbsent } = options;
    const afterMs = absenceAfterMs(answerTimeoutMs);
    this.#trouble = new Trouble(log, { clock, address, afterMs, onAbsent });
  }

  start(): void {
    this.#tick();
    this.#ended = this.#keepConnected();
  }

  /**
   * Whether the coordinator may by now have given this worker's items to others. Checked at use: a timer would be late by
   * as much as the process was stopped.
   */
  isFenced(): boolean {
    return this.#options.clock.monotonicMs() - this.#book.provenAtMs > this.#options.selfFenceTimeoutMs;
  }

  /** The number of the last beat that was sent. */
  get lastSequence(): number {
    return this.#book.lastSequence;
  }

  /** How many beats of this process were answered: with the first one a coordinator knows it. */
  get answers(): number {
    return this.#book.answers;
  }

  /** Sends a beat now instead of at the next tick: the worker has news. Without a stream the next one begins with a beat. */
  beatNow(): void {
    const conversation = this.#conversation;
    if (conversation === undefined) return;
    const { clock, describe, answerTimeoutMs } = this.#options;
    const nowMs = clock.monotonicMs();
    if (this.#book.waitingMs(nowMs) > answerTimeoutMs) {
      conversation.isSilent = true;
      return conversation.cutOff.abort();
    }
    conversation.outgoing.push({ beat: { ...describe(), sequence: BigInt(this.#book.send(nowMs)) } });
  }

  /** Sends a beat now, and resolves with whether it or a later one was answered within `patienceMs`. */
  async tell(patienceMs: number): Promise<boolean> {
    const before = this.lastSequence;
    const patience = new AbortController();
    const answered = new Promise<boolean>((resolve) => {
      this.#onAnswer = (sequence) => sequence > before && resolve(true);
    });
    this.beatNow();
    const timeout = sleep(this.#options.clock, patienceMs, patience.signal).then(() => false);
    const isHeard = await Promise.race([answered, timeout]);
    patience.abort();
    return isHeard;
  }

  /** Stops beating and cuts the stream off: what was to be answered has been waited for before. */
  async stop(): Promise<void> {
    this.#ticking?.cancel();
    this.#fencing?.cancel();
    this.#ending.abort();
    this.#conversation?.cutOff.abort();
    await this.#ended;
  }

  #tick(): void {
    const { clock, heartbeatIntervalMs, selfFenceTimeoutMs } = this.#options;
    this.#ticking = clock.after(heartbeatIntervalMs, () => {
      this.#tick();
      this.beatNow();
    });
    this.#noticeFence();
    // On the dot, not at the tick after it: what has to be over before the coordinator acts has that much more time.
    const leftMs = this.#book.provenAtMs + selfFenceTimeoutMs - clock.monotonicMs();
    this.#fencing?.cancel();
    if (leftMs >= 0 && leftMs < heartbeatIntervalMs)
      this.#fencing = clock.after(leftMs + 1, () => this.#noticeFence());
  }

  #noticeFence(): void {
    const { log, onFenced } = this.#options;
    const fenced = this.isFenced();
    const [begins, ends] = [fenced && !this.#fenced, !fenced && this.#fenced];
    this.#fenced = fenced;
    if (begins) log.warn("self-fenced: no answer from a coordinator");
    if (begins) onFenced?.(this.#book.provenAtMs);
    if (ends) log.info("self-fence lifted: a coordinator answers again");
  }

  async #keepConnected(): Promise<void> {
    const { clock, random, answerTimeoutMs, onFailed, onDoubt, onSuperseded } = this.#options;
    const ended = await stayConnected({
      // The next leader waits for the failure timeout: half of it is left to connect and be heard in.
      waitMaxMs: answerTimeoutMs / 2,
      converse: () => this.#converse(),
      onSetback: (setback) => {
        this.#trouble.report(setback);
        if (setback.kind === "failed") onFailed(setback.error);
        const isDoubtful = setback.kind === "silent" || setback.kind === "refused";
        return isDoubtful && onDoubt?.() === true ? "elsewhere" : undefined;
      },
      clock,
      random,
      signal: this.#ending.signal,
    });
    if (ended === "stopped") return;
    this.#ticking?.cancel();
    this.#fencing?.cancel();
    onSuperseded();
  }

  /** One stream, from its first beat to its end. */
  async #converse(): Promise<Conversed> {
    const conversation: Conversation = {
      outgoing: new AsyncQueue(OUTGOING_MAX),
      cutOff: new AbortController(),
      isSilent: false,
    };
    this.#conversation = conversation;
    this.#book.forget();
    this.beatNow();
    let heard = false;
    try {
      const { outgoing, cutOff } = conversation;
      for await (const { ack } of this.#options.client.beatStream(outgoing, { signal: cutOff.signal })) {
        const ending = await this.#take(ack);
        if (ending !== undefined) return { heard, ending };
        heard = true;
      }
      return { heard, ending: { kind: "closed" } };
    } catch (thrown) {
      if (!(thrown instanceof RolloutError)) throw thrown;
      return {
        heard,
        ending: conversation.isSilent ? { kind: "silent" } : { kind: "failed", error: thrown },
      };
    } finally {
      this.#conversation = undefined;
      conversation.outgoing.end();
      conversation.cutOff.abort();
    }
  }

  /** The ending of the conversation, if this answer ends it. */
  async #take(ack: BeatAck | undefined): Promise<Ending | undefined> {
    const { guard, onAccepted, onAnswered, onDrainAsked, onFenceLifted } = this.#options;
    const admission = await guard.admit(ack?.coordinator);
    if (admission.kind === "refused") return admission;
    if (ack === undefined) return { kind: "refused", reason: "it is empty" };
    if (ack.verdict === BeatVerdict.SUPERSEDED) return { kind: "superseded" };
    this.#trouble.over();
    const sequence = Number(ack.sequence);
    const wasFenced = this.isFenced();
    const sentAtMs = this.#book.answered(sequence);
    if (sentAtMs !== undefined) onAnswered?.(this.#options.clock.monotonicMs() - sentAtMs);
    if (wasFenced && !this.isFenced()) onFenceLifted?.();
    this.#onAnswer?.(sequence);
    onAccepted({ sequence, assignmentEpoch: ack.assignmentEpoch });
    if (ack.verdict === BeatVerdict.DRAIN) onDrainAsked?.();
    return undefined;
  }
}
