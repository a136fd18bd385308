// Sessions: frames in are checked and handed over, frames out are written in the order in which their turns were committed.
// The calls are the same for workers that cannot stream; behind this file there are sessions only.
import type { HandlerContext, ServiceImpl } from "@connectrpc/connect";
import { AsyncQueue } from "../../base/async-queue.ts";
import { failure } from "../../base/errors.ts";
import type { Clock } from "../../base/clock.ts";
import type { WorkerEnvelope } from "../../gen/rollout/v1/common_pb.ts";
import type {
  Result,
  ResultBatch,
  SessionRequest,
  SessionResponse,
  WorkService,
} from "../../gen/rollout/v1/work_pb.ts";
import { requireWorkerItself } from "../../transport/caller.ts";
import type { Report, SessionFrame, SessionInput, SessionPort } from "../session-frame.ts";
import type { Leader } from "./leader.ts";
import { submit } from "./leader.ts";
import { ByteBudget } from "./byte-budget.ts";
import { PullDesk } from "./pull-desk.ts";
import {
  readAttempt,
  readCount,
  readHeld,
  readPull,
  readReport,
  readSent,
  readSpeaker,
  refuseFrame,
  writeFrame,
  writePullAnswer,
} from "./work-messages.ts";
import type { Speaker } from "./work-messages.ts";

/** Outputs, checkpoints and logs of all results that are not acknowledged: they wait for the disk, or for rows to be read. */
const RESULT_BYTES_MAX = 64 * 1024 * 1024;
/** What a result costs beside them: empty ones are not free. */
const RESULT_OVERHEAD_BYTES = 1_024;
/** Checkpoints of what runs that wait to be written. What comes when there is no room for it is lost: another one follows. */
const CHECKPOINT_BYTES_MAX = 16 * 1024 * 1024;
/** Frames that one session may leave unread: beyond it the worker is cut off, and what it was given is taken back. */
const FRAMES_MAX = 1_024;
/** The same in bytes of what is to be executed: more than dispatch gives to a worker that does not say a word. */
const FRAMES_BYTES_MAX = 128 * 1024 * 1024;

export function workService(leader: Leader, clock: Clock): ServiceImpl<typeof WorkService> {
  const desk = new PullDesk(leader, clock);
  const budgets = {
    results: new ByteBudget(RESULT_BYTES_MAX),
    checkpoints: new ByteBudget(CHECKPOINT_BYTES_MAX),
  };
  return {
    async pull(request, context) {
      const pull = readPull(request, speakerOf(request.worker, context));
      const answer = await beforeStop(leader, desk.pull(pull, context.signal));
      return writePullAnswer(leader, answer);
    },

    async reportResults({ worker, ackedAssignment, results }, context) {
      const speaker = speakerOf(worker, context);
      readCount(ackedAssignment, "acked_assignment");
      const reports = results.map((result) => readReport(result, speaker.incarnation, leader.limits));
      const bytes = bytesOf(results);
      await budgets.results.take(bytes);
      try {
        await beforeStop(leader, report(leader, speaker, reports));
      } finally {
        budgets.results.giveBack(bytes);
      }
      return { coordinator: leader.envelope };
    },

    async *session(requests, context) {
      const stream = new SessionStream(leader, budgets);
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

function bytesOf(results: readonly Result[]): number {
  return results.reduce(
    (sum, { output, checkpoint, log, response, errorMessage }) =>
      sum +
      RESULT_OVERHEAD_BYTES +
      (output.length + checkpoint.length + log.length + response.length + errorMessage.length),
    0,
  );
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
  if (frame.case !== "assignments") return 0;
  let bytes = 0;
  for (const { payload, checkpoint } of frame.value.assignments) bytes += payload.length + checkpoint.length;
  return bytes;
}

interface Budgets {
  readonly results: ByteBudget;
  readonly checkpoints: ByteBudget;
}

class SessionStream implements SessionPort {
  readonly frames = new AsyncQueue<SessionResponse>(FRAMES_MAX, {
    max: FRAMES_BYTES_MAX,
    weigh: payloadBytesOf,
  });
  readonly #leader: Leader;
  #speaker: Speaker | undefined;
  #hasSaidHello = false;
  /** Of this stream: batches may come again, and what was acknowledged stays so. */
  #ackedResults = 0;

  /** Of the batches that are on their way to the disk, by their numbers. */
  readonly #underWay = new Map<number, number>();
  readonly #budgets: Budgets;
  #isClosed = false;

  constructor(leader: Leader, budgets: Budgets) {
    this.#leader = leader;
    this.#budgets = budgets;
  }

  send(frame: SessionFrame): void {
    if (frame.kind === "resultsAcknowledged") this.#acknowledge(frame.number);
    const isTaken = this.frames.push(writeFrame(this.#leader, frame, this.#ackedResults));
    if (!isTaken) this.end(failure("overloaded", { what: "unread frames", limit: FRAMES_MAX }));
  }

  end(error?: Error): void {
    this.frames.end(error);
  }

  /** The stream is over: the reactor is told, unless it was never told of it. */
  close(): void {
    this.#isClosed = true;
    for (const number of this.#underWay.keys()) this.#arrived(number);
    if (this.#speaker === undefined) return;
    // A full inbox may refuse this; the worker's next hello, or its silence, says the same.
    this.#leader.push({ kind: "sessionEnded", workerId: this.#speaker.workerId, port: this });
  }

  /** Never rejects: what goes wrong ends the frames, and so the stream, with it. */
  async read(requests: AsyncIterable<SessionRequest>, context: HandlerContext): Promise<void> {
    try {
      for await (const request of requests) {
        const speaker = this.#identify(request.worker, context);
        if (request.frame.case === "results") await this.#admit(request.frame.value);
        const input = this.#inputOf(request, speaker);
        if (input === undefined) continue;
        if (input.kind === "checkpoints") this.#offer(input);
        else submit(this.#leader, input);
      }
      this.end();
    } catch (error) {
      this.end(error instanceof Error ? error : failure("internal", { detail: "a session broke" }, error));
    }
  }

  /** Results never wait for it: what there is no room for, or an inbox too full for it, is not worth ending a stream. */
  #offer(input: Extract<SessionInput, { kind: "checkpoints" }>): void {
    const { checkpoints: budget } = this.#budgets;
    const bytes = input.checkpoints.reduce((sum, { checkpoint }) => sum + checkpoint.length, 0);
    if (!budget.takeNow(bytes)) return;
    const answer = (): void => budget.giveBack(bytes);
    if (!this.#leader.push({ ...input, answer })) answer();
  }

  /** Nothing more is read from this worker until there is room for its results. */
  async #admit({ number, results }: ResultBatch): Promise<void> {
    const batch = readCount(number, "number");
    const bytes = bytesOf(results);
    await this.#budgets.results.take(bytes);
    if (this.#isClosed) this.#budgets.results.giveBack(bytes);
    else this.#underWay.set(batch, (this.#underWay.get(batch) ?? 0) + bytes);
  }

  #acknowledge(upTo: number): void {
    this.#ackedResults = Math.max(this.#ackedResults, upTo);
    for (const number of this.#underWay.keys()) if (number <= upTo) this.#arrived(number);
  }

  #arrived(number: number): void {
    this.#budgets.results.giveBack(this.#underWay.get(number) ?? 0);
    this.#underWay.delete(number);
  }

  /** Who speaks does not change within a stream, so it is looked up once. */
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
      case "credit":
        return { kind: "credit", ...from, more: frame.value.more };
      case "results": {
        const reports = frame.value.results.map((result) =>
          readReport(result, speaker.incarnation, this.#leader.limits),
        );
        return { kind: "results", ...from, number: readCount(frame.value.number, "number"), reports };
      }
      case "release":
        return { kind: "released", ...from, attempts: frame.value.released.map(readAttempt) };
      case "checkpoints": {
        const checkpoints = frame.value.checkpoints.flatMap((sent) => readSent(sent) ?? []);
        return { kind: "checkpoints", ...from, checkpoints, answer: () => undefined };
      }
      case undefined:
        return undefined;
    }
  }
}
