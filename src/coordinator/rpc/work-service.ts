// Sessions: frames in are checked and handed over, frames out are written in the order in which their turns were committed.
import type { HandlerContext, ServiceImpl } from "@connectrpc/connect";
import { AsyncQueue } from "../../base/async-queue.ts";
import { failure } from "../../base/errors.ts";
import type { IncarnationId, WorkerId } from "../../base/ids.ts";
import { parseUlidBytes } from "../../base/ids.ts";
import type { WorkerEnvelope } from "../../gen/rollout/v1/common_pb.ts";
import type { SessionRequest, SessionResponse, WorkService } from "../../gen/rollout/v1/work_pb.ts";
import { requireWorkerItself } from "../../transport/caller.ts";
import type { SessionFrame, SessionInput, SessionPort } from "../session-frame.ts";
import type { Leader } from "./leader.ts";
import { submit } from "./leader.ts";
import { readAttempt, readHeld, readReport, refuseFrame, writeFrame } from "./work-messages.ts";

/** Frames that one session may leave unread: beyond it the worker is cut off, and what it was given is taken back. */
const FRAMES_MAX = 1_024;

export function workService(leader: Leader): Partial<ServiceImpl<typeof WorkService>> {
  return {
    async *session(requests, context) {
      const stream = new SessionStream(leader);
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

interface Speaker {
  readonly workerId: WorkerId;
  readonly incarnation: IncarnationId;
}

class SessionStream implements SessionPort {
  readonly frames = new AsyncQueue<SessionResponse>(FRAMES_MAX);
  readonly #leader: Leader;
  #speaker: Speaker | undefined;
  #hasSaidHello = false;
  /** Of this stream: batches may come again, and what was acknowledged stays so. */
  #ackedResults = 0;

  constructor(leader: Leader) {
    this.#leader = leader;
  }

  send(frame: SessionFrame): void {
    if (frame.kind === "resultsAcknowledged") this.#ackedResults = Math.max(this.#ackedResults, frame.number);
    const isTaken = this.frames.push(writeFrame(this.#leader.envelope, frame, this.#ackedResults));
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
        if (input !== undefined) submit(this.#leader, input);
      }
      this.end();
    } catch (error) {
      this.end(error instanceof Error ? error : failure("internal", { detail: "a session broke" }, error));
    }
  }

  /** Who speaks does not change within a stream, so it is looked up once. */
  #identify(envelope: WorkerEnvelope | undefined, context: HandlerContext): Speaker {
    if (this.#speaker !== undefined) return this.#speaker;
    const workerId = parseUlidBytes<WorkerId>(envelope?.workerId ?? new Uint8Array());
    const incarnation = parseUlidBytes<IncarnationId>(envelope?.incarnation ?? new Uint8Array());
    if (workerId === undefined) return refuseFrame("worker_id is not 16 bytes");
    if (incarnation === undefined) return refuseFrame("incarnation is not 16 bytes");
    requireWorkerItself(context, workerId);
    this.#speaker = { workerId, incarnation };
    return this.#speaker;
  }

  #inputOf({ frame, ackedAssignment }: SessionRequest, speaker: Speaker): SessionInput | undefined {
    const from = { workerId: speaker.workerId, port: this };
    if ((frame.case === "hello") === this.#hasSaidHello)
      return refuseFrame("hello is the first frame of a session, and no other");
    this.#hasSaidHello = true;
    switch (frame.case) {
      case "hello": {
        const held = frame.value.held.map(readHeld);
        const acked = Number(ackedAssignment);
        const { incarnation } = speaker;
        const sessionNumber = Number(frame.value.sessionNumber);
        return { kind: "hello", ...from, incarnation, sessionNumber, held, ackedAssignment: acked };
      }
      case "credit":
        return { kind: "credit", ...from, more: frame.value.more };
      case "results": {
        const reports = frame.value.results.map((result) => readReport(result, speaker.incarnation));
        return { kind: "results", ...from, number: Number(frame.value.number), reports };
      }
      case "release":
        return { kind: "released", ...from, attempts: frame.value.released.map(readAttempt) };
      case undefined:
        return undefined;
    }
  }
}
