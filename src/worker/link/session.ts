// The room of the way to the coordinator. session.ts is work on its way: conversation.ts is one stream of it, with its messages
// (session-messages.ts) and the work that was asked for (session-credit.ts). reconnect.ts opens streams again, of beats too, and tells of trouble;
// epoch-guard.ts decides which leader is obeyed.
//
// Here is the stream on which work travels: what the worker holds is stated first, then assignments come down and results go up.
// A frame is made when the stream can take one, from how things stand at that moment, so nothing queues up here.
//
// Keeps true: between a hello and its verdict nothing is started; nothing is asked for beyond the room there is; a frame is
// obeyed only from a leader that the epoch guard admits, and only on the stream that is the current one.
import type { MessageInitShape } from "@bufbuild/protobuf";
import type { Client } from "@connectrpc/connect";
import type { Clock } from "../../base/clock.ts";
import { RolloutError } from "../../base/errors.ts";
import type { Random } from "../../base/random.ts";
import type { WorkerEnvelopeSchema } from "../../gen/rollout/v1/common_pb.ts";
import { HeldVerdict } from "../../gen/rollout/v1/work_pb.ts";
import type {
  AssignmentBatch,
  Drop,
  HelloVerdict,
  Recall,
  SessionRequestSchema,
  SessionResponse,
  WorkService,
} from "../../gen/rollout/v1/work_pb.ts";
import type { Logger } from "../../observe/log.ts";
import type { Assigned } from "../work/backlog.ts";
import type { CheckpointUplink } from "../work/checkpoint-uplink.ts";
import type { Executor } from "../work/executor.ts";
import type { Partitions } from "../partitions/partitions.ts";
import type { Outbox } from "../work/outbox.ts";
import { beginConversation, isReconciled } from "./conversation.ts";
import type { Conversation } from "./conversation.ts";
import type { EpochGuard } from "./epoch-guard.ts";
import type { Conversed, Ending, Setback } from "./reconnect.ts";
import { stayConnected, Trouble } from "./reconnect.ts";
import {
  ifWhole,
  leaderOf,
  isAttempt,
  keysOf,
  readAssignments,
  writeHandBack,
  writeHello,
} from "./session-messages.ts";

type Request = Exclude<MessageInitShape<typeof SessionRequestSchema>, { readonly $typeName: string }>;
type Frame = NonNullable<Request["frame"]>;

export interface SessionOptions {
  readonly client: Pick<Client<typeof WorkService>, "session">;
  readonly clock: Clock;
  readonly random: Random;
  readonly log: Logger;
  readonly guard: EpochGuard;
  readonly executor: Executor;
  readonly outbox: Outbox;
  readonly uplink: CheckpointUplink;
  /** Undefined for a worker that keeps no states: items come with theirs. */
  readonly partitions: Partitions | undefined;
  /** The state that the assignment left out is not here. */
  readonly onStateMissing: (assigned: Assigned) => void;
  /** Whether more may be asked for at all, now. */
  readonly mayAsk: () => boolean;
  /** The worker that speaks, and the epoch that it has seen. */
  readonly envelope: () => MessageInitShape<typeof WorkerEnvelopeSchema>;
  readonly onFailed: (error: RolloutError) => void;
  readonly onSuperseded: () => void;
  /** The program is wrong. */
  readonly onFatal: (error: unknown) => void;
}

/** Recalls that are not answered yet. One at a time is what a coordinator has. */
const RECALLS_MAX = 64;

export class Session {
  readonly #options: SessionOptions;
  readonly #ending = new AbortController();
  readonly #trouble: Trouble;
  #conversation: Conversation | undefined;
  #isReconciled = false;
  #sessions = 0;
  /** The highest assignment number received without a gap. */
  #received = 0;
  #ended: Promise<void> | undefined;

  constructor(options: SessionOptions) {
    this.#options = options;
    this.#trouble = new Trouble(options.log);
  }

  /** Idempotent. */
  start(): void {
    this.#ended ??= this.#stay().catch(this.#options.onFatal);
  }

  /**
   * False from each statement of what is held until the verdict on it. A lost connection alone does not make it so: the
   * backlog goes on, until the worker fences itself.
   */
  get isReconciled(): boolean {
    return this.#isReconciled;
  }

  /** For heartbeats, which say it too. */
  get ackedAssignment(): number {
    return this.#received;
  }

  /** There may be something new to say. Cheap. */
  ring(): void {
    this.#conversation?.bell.push(true);
  }

  /** There is room for one more: said when it is worth a frame. Called for each item, so it does no more than look. */
  offerRoom(): void {
    const { room, worthwhileRoom, isHungry } = this.#options.executor;
    if (this.#conversation?.credit.mayAsk(room, worthwhileRoom, isHungry) === true) this.ring();
  }

  /** Tells the coordinator what is handed back unasked. Without a stream, the next hello tells it by leaving them out. */
  handBack(unstarted: readonly Assigned[]): void {
    if (unstarted.length === 0) return;
    this.#conversation?.handBacks.push(writeHandBack(unstarted));
    this.ring();
  }

  /** More was asked for than is wanted: these are handed back, and what has not come is not asked for any more. */
  giveUp(unstarted: readonly Assigned[]): void {
    if (this.#conversation !== undefined) this.#conversation.isAskedTooMuch = true;
    this.handBack(unstarted);
  }

  /**
   * Items that this worker was told to keep may have been given to others since: nothing is started before it has stated anew what
   * it has and was answered.
   */
  distrust(): void {
    this.#isReconciled = false;
    if (this.#conversation === undefined) return;
    this.#conversation.isDistrusted = true;
    this.#conversation.cutOff.abort();
  }

  /** Ends the stream and opens no other. */
  async stop(): Promise<void> {
    this.#ending.abort();
    this.#conversation?.cutOff.abort();
    await this.#ended;
  }

  async #stay(): Promise<void> {
    const { clock, random, onSuperseded } = this.#options;
    const { signal } = this.#ending;
    const ended = await stayConnected({
      converse: () => this.#converse(),
      onSetback: (setback) => {
        this.#report(setback);
        return undefined;
      },
      clock,
      random,
      signal,
    });
    if (ended === "superseded") onSuperseded();
  }

  async #converse(): Promise<Conversed> {
    this.#isReconciled = false;
    const hello = writeHello({
      unstarted: this.#options.executor.unstarted,
      running: this.#options.executor.running,
      finished: this.#options.outbox.finished,
    });
    const conversation = beginConversation(hello.keys, this.#received);
    this.#conversation = conversation;
    // Checkpoints on their way on the stream before may not have arrived.
    this.#options.uplink.forget();
    const sessionNumber = BigInt(++this.#sessions);
    const first = this.#request({ case: "hello", value: { ...hello.message, sessionNumber } });
    try {
      const requests = this.#frames(conversation, first);
      const { signal } = conversation.cutOff;
      for await (const response of this.#options.client.session(requests, { signal })) {
        const ending = await this.#take(conversation, response);
        if (conversation.isDistrusted) return { heard: true, ending: { kind: "anew" } };
        if (ending !== undefined) return { heard: isReconciled(conversation), ending };
      }
      return { heard: isReconciled(conversation), ending: { kind: "closed" } };
    } catch (thrown) {
      if (!(thrown instanceof RolloutError)) throw thrown;
      if (conversation.isDistrusted) return { heard: true, ending: { kind: "anew" } };
      if (conversation.cutOff.signal.aborted)
        return { heard: isReconciled(conversation), ending: { kind: "closed" } };
      const isSuperseded = thrown.code === "worker_superseded";
      const ending: Ending = isSuperseded ? { kind: "superseded" } : { kind: "failed", error: thrown };
      return { heard: isReconciled(conversation), ending };
    } finally {
      this.#conversation = undefined;
      this.#options.partitions?.sessionEnded();
      conversation.bell.end();
      conversation.cutOff.abort();
    }
  }

  /** Setbacks that the heartbeats meet as well are reported by them alone. */
  #report(setback: Setback): void {
    if (setback.kind === "failed") this.#options.onFailed(setback.error);
    const isCommon =
      setback.kind === "closed" || (setback.kind === "failed" && setback.error.row.retry !== "never");
    if (!isCommon) this.#trouble.report(setback);
  }

  #request(frame: Frame): Request {
    return { worker: this.#options.envelope(), ackedAssignment: BigInt(this.#received), frame };
  }

  async *#frames(conversation: Conversation, hello: Request): AsyncGenerator<Request, void, undefined> {
    yield hello;
    const rings = conversation.bell[Symbol.asyncIterator]();
    while ((await rings.next()).done !== true) {
      for (;;) {
        const frame = this.#nextFrame(conversation);
        if (frame === undefined) break;
        conversation.toldAssignment = this.#received;
        yield this.#request(frame);
      }
    }
  }

  /** The most urgent frame now; undefined when there is nothing to say. */
  #nextFrame(conversation: Conversation): Frame | undefined {
    if (!isReconciled(conversation)) return undefined;
    const { executor, outbox, uplink, partitions, mayAsk } = this.#options;
    const { credit } = conversation;
    const isTooMuch = conversation.isAskedTooMuch && credit.lower(executor.room);
    conversation.isAskedTooMuch = false;
    // Before what is handed back, which is not to come again at once.
    if (isTooMuch) return { case: "credit", value: { upTo: BigInt(credit.upTo) } };
    const handBack = conversation.handBacks.shift();
    if (handBack !== undefined) return { case: "handBack", value: handBack };
    // Results go before more is asked for: a coordinator that gives more then knows what this worker has.
    const batch = outbox.next(conversation.sentBatch, conversation.maxOutputBytes);
    if (batch !== undefined) {
      conversation.sentBatch = Number(batch.number);
      return { case: "results", value: batch };
    }
    const { room, worthwhileRoom, isHungry } = executor;
    const more = mayAsk() ? credit.ask(room, worthwhileRoom, isHungry) : 0;
    if (more > 0) return { case: "credit", value: { more, upTo: BigInt(credit.upTo) } };
    const ofPartition = partitions?.next();
    if (ofPartition !== undefined) return ofPartition;
    const checkpoints = uplink.next(executor);
    if (checkpoints !== undefined) return { case: "checkpoints", value: checkpoints };
    return conversation.toldAssignment < this.#received ? { case: undefined } : undefined;
  }

  /** The setback that ends the conversation, if this frame does. */
  async #take(conversation: Conversation, response: SessionResponse): Promise<Setback | undefined> {
    const { guard, executor, outbox, partitions } = this.#options;
    const admission = await guard.admit(response.coordinator);
    // It may have been ended while this frame was on its way.
    if (conversation.cutOff.signal.aborted) return { kind: "closed" };
    if (admission.kind === "refused") return admission;
    for (const { number, commit, leftOut } of response.commits)
      partitions?.committed(outbox.statesOf(Number(number), leftOut), Number(commit));
    if (!outbox.acknowledge(Number(response.ackedResults)))
      return refused(`it acknowledges results up to ${response.ackedResults}, which were never sent`);
    partitions?.settled();
    const ending = this.#takeFrame(conversation, response);
    // Acknowledged results, a verdict, new work: each may let something start, and leave something to say.
    if (ending === undefined) executor.pump();
    this.ring();
    return ending;
  }

  #takeFrame(conversation: Conversation, { frame, coordinator }: SessionResponse): Setback | undefined {
    switch (frame.case) {
      case "verdict":
        return this.#takeVerdict(conversation, frame.value) ?? this.#begin(coordinator);
      case "assignments":
        // The guard has found one.
        return this.#takeAssignments(conversation, frame.value, coordinator?.coordEpoch ?? 0n);
      case "recall":
        return this.#takeRecall(conversation, frame.value);
      case "drop":
        return this.#takeDrop(conversation, frame.value);
      case "partitionCheckpoints":
        return void this.#options.partitions?.takeRequest(frame.value);
      case "partitionStates":
        return void this.#options.partitions?.takeStates(frame.value);
      case undefined:
        return undefined;
    }
  }

  #begin(coordinator: SessionResponse["coordinator"]): undefined {
    this.#options.partitions?.sessionBegan(leaderOf(coordinator));
  }

  #takeVerdict(conversation: Conversation, { verdicts, maxOutputBytes }: HelloVerdict): Setback | undefined {
    const { executor, outbox } = this.#options;
    const keys = conversation.awaitsVerdictOn;
    if (keys === undefined) return refused("it is a second verdict");
    if (keys.length !== verdicts.length)
      return refused(`it has ${verdicts.length} verdicts on ${keys.length} attempts`);
    if (!verdicts.every((verdict) => verdict === HeldVerdict.KEEP || verdict === HeldVerdict.DROP))
      return refused("it has a verdict that is neither keep nor drop");
    for (const [at, key] of keys.entries()) {
      if (verdicts[at] !== HeldVerdict.DROP) continue;
      executor.drop(key);
      outbox.drop(key);
    }
    if (maxOutputBytes > 0n) conversation.maxOutputBytes = Number(maxOutputBytes);
    conversation.awaitsVerdictOn = undefined;
    this.#isReconciled = true;
    this.#trouble.over();
    return undefined;
  }

  #takeAssignments(conversation: Conversation, batch: AssignmentBatch, epoch: bigint): Setback | undefined {
    const { executor, outbox } = this.#options;
    if (!isReconciled(conversation)) return refused("it gives work before a verdict");
    const read = readAssignments(batch, epoch, this.#received);
    if (read.kind === "refused") return read;
    if (!conversation.credit.spend(read.fresh.length))
      return refused(`it gives ${read.fresh.length} attempts, which were not asked for`);
    this.#received = read.lastNumber;
    // An attempt that has ended here is not begun again: its result is on its way.
    const wanted = read.fresh.filter(({ key }) => !outbox.has(key)).flatMap((one) => this.#complete(one));
    this.handBack(wanted.filter((assigned) => !executor.take(assigned)));
    return undefined;
  }

  /** With the state of its key, or nothing: then it is said that the state is not here. */
  #complete(assigned: Assigned): Assigned[] {
    const { partitions, onStateMissing } = this.#options;
    const whole = partitions === undefined ? ifWhole(assigned) : partitions.complete(assigned);
    if (whole === undefined) onStateMissing(assigned);
    return whole === undefined ? [] : [whole];
  }

  #takeRecall(conversation: Conversation, { recalled }: Recall): Setback | undefined {
    if (!isReconciled(conversation)) return refused("it recalls attempts before a verdict");
    if (conversation.handBacks.length >= RECALLS_MAX) return refused("it recalls too often");
    if (!recalled.every(isAttempt)) return refused("a recall names no attempt");
    const { executor } = this.#options;
    const unstarted = keysOf(recalled, executor.unstarted).flatMap((key) => executor.recall(key) ?? []);
    conversation.handBacks.push(writeHandBack(unstarted));
    return undefined;
  }

  #takeDrop(conversation: Conversation, { dropped }: Drop): Setback | undefined {
    if (!isReconciled(conversation)) return refused("it drops attempts before a verdict");
    if (!dropped.every(isAttempt)) return refused("a drop names no attempt");
    const { executor } = this.#options;
    for (const key of keysOf(dropped, [...executor.unstarted, ...executor.running])) executor.drop(key);
    return undefined;
  }
}

function refused(reason: string): Setback {
  return { kind: "refused", reason };
}
