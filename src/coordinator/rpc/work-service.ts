// Sessions: frames in are checked and handed over, frames out are written in the order in which their turns were committed.
// The calls are the same for workers that cannot stream; behind this file there are sessions only.
import type { HandlerContext, ServiceImpl } from "@connectrpc/connect";
import { AsyncQueue } from "../../base/async-queue.ts";
import { failure } from "../../base/errors.ts";
import type { Clock } from "../../base/clock.ts";
import type { WorkerEnvelope } from "../../gen/rollout/v1/common_pb.ts";
import type { SessionRequest, SessionResponse, WorkService } from "../../gen/rollout/v1/work_pb.ts";
import { keepMessage, requireWorkerItself } from "../../transport/caller.ts";
import type { KeptMessage } from "../../transport/message-reader.ts";
import type { Report, SessionFrame, SessionInput, SessionPort } from "../turn/session-frame.ts";
import type { Leader } from "./leader.ts";
import { ask, submit, submitKept } from "./leader.ts";
import { ATTEMPT_OVERHEAD_BYTES, PullDesk } from "./pull.ts";
import { readPull, writePullAnswer } from "./pull-messages.ts";
import {
  readAttempt,
  readCount,
  readHeld,
  readLoaded,
  readReport,
  readSent,
  readSpeaker,
  readWritten,
  refuseFrame,
  writeFrame,
} from "./work-messages.ts";
import type { Speaker } from "./work-messages.ts";

/** Cost of a result beside its bytes: empty ones are not free. */
const RESULT_OVERHEAD_BYTES = 1_024;
/**
 * Bytes of checkpoints of running items that wait to be written. A checkpoint that comes when there is no room for it is lost:
 * another one follows.
 */
const CHECKPOINT_BYTES_MAX = 16 * 1024 * 1024;
/** Frames that one session may leave unread: beyond it the worker is cut off, and what it was given is taken back. */
const FRAMES_MAX = 1_024;
/** The same in bytes of what is to be executed: more than dispatch gives to a worker that does not say a word. */
const FRAMES_BYTES_MAX = 128 * 1024 * 1024;

export function workService(leader: Leader, clock: Clock): ServiceImpl<typeof WorkService> {
  const desk = new PullDesk(leader, clock);
  const checkpoints = new ByteBudget(CHECKPOINT_BYTES_MAX);
  return {
    async pull(request, context) {
      const pull = readPull(request, speakerOf(request.worker, context));
      const answer = await beforeStop(leader, desk.pull(pull, context.signal));
      return writePullAnswer(leader, answer);
    },

    async getAssignment({ worker }, context) {
      const { workerId } = speakerOf(worker, context);
      const { epoch, partitions, totalPartitions } = await ask(leader, { kind: "getAssignment", workerId });
      return {
        coordinator: leader.envelope,
        assignmentEpoch: BigInt(epoch),
        partitions: partitions.map(({ partition, checkpoint }) => ({
          partition,
          ...(checkpoint && { checkpoint: { ...checkpoint, offset: BigInt(checkpoint.offset) } }),
        })),
        totalPartitions,
      };
    },

    async reportResults({ worker, ackedAssignment, results }, context) {
      const speaker = speakerOf(worker, context);
      readCount(ackedAssignment, "acked_assignment");
      const reports = results.map((result) => readReport(result, speaker.incarnation, leader.limits));
      const kept = keepMessage(context);
      kept.add(results.length * RESULT_OVERHEAD_BYTES);
      try {
        await beforeStop(leader, report(leader, speaker, reports));
      } finally {
        kept.release();
      }
      return { coordinator: leader.envelope };
    },

    async *session(requests, context) {
      const stream = new SessionStream(leader, checkpoints);
      const end = (): void => stream.end();
      leader.stopping.addEventListener("abort", end);
      context.signal.addEventListener("abort", end);
      try {
        void stream.read(requests, context);
        yield* stream.frames;
      } finally {
        leader.stopping.removeEventListener("abort", end);
        context.signal.removeEventListener("abort", end);
        stream.close();
      }
    },
  };
}

/** Memory that a frame costs beside its bytes, when they stay there after the next one is read; undefined when they do not. */
function overheadOf({ frame }: SessionRequest): number | undefined {
  switch (frame.case) {
    case "hello":
      return frame.value.held.length * ATTEMPT_OVERHEAD_BYTES;
    case "handBack":
      return frame.value.handedBack.length * ATTEMPT_OVERHEAD_BYTES;
    case "results":
      return frame.value.results.length * RESULT_OVERHEAD_BYTES;
    default:
      return undefined;
  }
}

/** Throws permission_denied for whoever speaks as another. */
function speakerOf(envelope: WorkerEnvelope | undefined, context: HandlerContext): Speaker {
  const speaker = readSpeaker(envelope);
  requireWorkerItself(context, speaker.workerId);
  return speaker;
}

/** Resolves when the results are on stable storage. */
function report(leader: Leader, { workerId }: Speaker, reports: readonly Report[]): Promise<void> {
  return new Promise((resolve, reject) => {
    const reason = "this worker has not been heard of: it beats before it reports";
    const port: SessionPort = {
      send: () => resolve(),
      end: () => reject(failure("request_invalid", { method: "ReportResults", reason })),
    };
    submit(leader, { kind: "report", workerId, port, reports });
  });
}

/** A leader that stops, or does not lead any more, answers nothing that waits: the worker asks the next one. */
async function beforeStop<Answer>(leader: Leader, answer: Promise<Answer>): Promise<Answer> {
  const { stopping, address } = leader;
  const stopped = Promise.withResolvers<never>();
  const stop = (): void => stopped.reject(failure("coordinator_silent", { address }));
  stopping.addEventListener("abort", stop);
  if (stopping.aborted) stop();
  try {
    return await Promise.race([answer, stopped.promise]);
  } finally {
    stopping.removeEventListener("abort", stop);
  }
}

function payloadBytesOf({ frame }: SessionResponse): number {
  let bytes = 0;
  if (frame.case === "assignments")
    for (const { payload, checkpoint, keyed } of frame.value.assignments)
      bytes += payload.length + checkpoint.length + (keyed?.state?.length ?? 0);
  else if (frame.case === "partitionStates")
    for (const { state } of frame.value.states) bytes += state?.length ?? 0;
  return bytes;
}

class SessionStream implements SessionPort {
  readonly frames = new AsyncQueue<SessionResponse>(FRAMES_MAX, {
    max: FRAMES_BYTES_MAX,
    weigh: payloadBytesOf,
  });
  readonly #leader: Leader;
  #speaker: Speaker | undefined;
  #hasSaidHello = false;
  /** Number of the last batch of this stream that is acknowledged: batches may come again, and stay acknowledged. */
  #ackedResults = 0;
  readonly #checkpoints: ByteBudget;

  constructor(leader: Leader, checkpoints: ByteBudget) {
    this.#leader = leader;
    this.#checkpoints = checkpoints;
  }

  send(frame: SessionFrame): void {
    if (frame.kind === "resultsAcknowledged") this.#ackedResults = Math.max(this.#ackedResults, frame.number);
    const isTaken = this.frames.push(writeFrame(this.#leader, frame, this.#ackedResults));
    if (!isTaken) this.end(failure("overloaded", { what: "unread frames", limit: FRAMES_MAX }));
  }

  end(error?: Error): void {
    this.frames.end(error);
  }

  /** The stream is over: the reactor is told, unless it was never told of it. */
  close(): void {
    if (this.#speaker === undefined) return;
    // A full inbox may refuse this; the worker's next hello, or its silence, says the same.
    this.#leader.push({ kind: "sessionEnded", workerId: this.#speaker.workerId, port: this });
  }

  /** Never rejects: what goes wrong ends the frames, and so the stream, with it. */
  async read(requests: AsyncIterable<SessionRequest>, context: HandlerContext): Promise<void> {
    try {
      for await (const request of requests) {
        const speaker = this.#identify(request.worker, context);
        const input = this.#inputOf(request, speaker);
        const overhead = overheadOf(request);
        if (input === undefined) continue;
        if (input.kind === "checkpoints") this.#offer(input);
        else if (overhead === undefined) submit(this.#leader, input);
        else this.#hand(input, keepMessage(context), overhead);
      }
      this.end();
    } catch (error) {
      this.end(error instanceof Error ? error : failure("internal", { detail: "a session broke" }, error));
    }
  }

  /** Its bytes are counted until the reactor is done with it, however the stream ends. */
  #hand(input: SessionInput, kept: KeptMessage, overheadBytes: number): void {
    kept.add(overheadBytes);
    submitKept(this.#leader, kept, { ...input, settled: () => kept.release() });
  }

  /** Results never wait for it: what there is no room for, or an inbox too full for it, is not worth ending a stream. */
  #offer(input: Extract<SessionInput, { kind: "checkpoints" }>): void {
    const budget = this.#checkpoints;
    const bytes = input.checkpoints.reduce((sum, { checkpoint }) => sum + checkpoint.length, 0);
    if (!budget.take(bytes)) return;
    const settled = (): void => budget.free(bytes);
    if (!this.#leader.push({ ...input, settled })) settled();
  }

  /** The speaker does not change within a stream, so it is looked up once. */
  #identify(envelope: WorkerEnvelope | undefined, context: HandlerContext): Speaker {
    if (this.#speaker !== undefined) return this.#speaker;
    return (this.#speaker = speakerOf(envelope, context));
  }

  #inputOf({ frame, ackedAssignment }: SessionRequest, speaker: Speaker): SessionInput | undefined {
    const from = { workerId: speaker.workerId, port: this };
    if ((frame.case === "hello") === this.#hasSaidHello)
      return refuseFrame("hello is the first frame of a session, and no other");
    this.#hasSaidHello = true;
    const acked = readCount(ackedAssignment, "acked_assignment");
    switch (frame.case) {
      case "hello": {
        const held = frame.value.held.map(readHeld);
        const { incarnation } = speaker;
        const sessionNumber = readCount(frame.value.sessionNumber, "session_number");
        return { kind: "hello", ...from, incarnation, sessionNumber, held, ackedAssignment: acked };
      }
      case "credit": {
        const { more, upTo } = frame.value;
        return {
          kind: "credit",
          ...from,
          more,
          ...(upTo !== undefined && { upTo: readCount(upTo, "up_to") }),
        };
      }
      case "results": {
        const reports = frame.value.results.map((result) =>
          readReport(result, speaker.incarnation, this.#leader.limits),
        );
        return { kind: "results", ...from, number: readCount(frame.value.number, "number"), reports };
      }
      case "handBack":
        return { kind: "handedBack", ...from, attempts: frame.value.handedBack.map(readAttempt) };
      case "checkpoints": {
        const checkpoints = frame.value.checkpoints.flatMap((sent) => readSent(sent) ?? []);
        return { kind: "checkpoints", ...from, checkpoints };
      }
      case "partitionCheckpoint":
        return { kind: "partitionsWritten", ...from, written: readWritten(frame.value) };
      case "partitionLoaded":
        return { kind: "partitionLoaded", ...from, ...readLoaded(frame.value) };
      case undefined:
        return undefined;
    }
  }
}

/**
 * Bytes that may be under way at once, over all who share the budget: so those that wait for the disk are bounded (C8). Nobody waits
 * for room: without room the bytes are done without.
 * @internal
 */
export class ByteBudget {
  readonly #max: number;
  #taken = 0;

  constructor(max: number) {
    this.#max = max;
  }

  /** False when there is no room: then nothing is taken. A taking that is larger than the whole budget goes alone. */
  take(bytes: number): boolean {
    if (this.#taken > 0 && this.#taken + bytes > this.#max) return false;
    this.#taken += bytes;
    return true;
  }

  /** These bytes were taken, and are not under way any more. */
  free(bytes: number): void {
    this.#taken -= bytes;
  }
}
