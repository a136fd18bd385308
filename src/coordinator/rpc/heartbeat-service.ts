// Beats in, acknowledgements out, in order. A beat is checked and handed over at once; nothing is decided here.
import type { HandlerContext, ServiceImpl } from "@connectrpc/connect";
import { AsyncQueue } from "../../base/async-queue.ts";
import type { WorkerEnvelope } from "../../gen/rollout/v1/common_pb.ts";
import { failure } from "../../base/errors.ts";
import type {
  Beat as WireBeat,
  BeatStreamRequest,
  HeartbeatService,
} from "../../gen/rollout/v1/heartbeat_pb.ts";
import { keepMessage, requireWorkerItself } from "../../transport/caller.ts";
import type { Beat, BeatAnswer } from "../turn/input.ts";
import type { Leader } from "./leader.ts";
import { ask, submitKept } from "./leader.ts";
import { readBeat, writeBeatAck } from "./messages.ts";

/** Unread acknowledgements of one stream: a worker that sends and does not read is cut off, not stored. */
const ACKS_MAX = 64;

export function heartbeatService(leader: Leader): ServiceImpl<typeof HeartbeatService> {
  return {
    async beat({ beat: wire }, context) {
      const beat = readOwnBeat(leader, wire, context);
      const answer = await ask(leader, { kind: "beat", beat });
      return { ack: writeBeatAck(leader.envelope, answer, leader.workersMax) };
    },

    async *beatStream(requests, context) {
      const answers = new AsyncQueue<BeatAnswer>(ACKS_MAX);
      const end = (): void => answers.end();
      leader.stopping.addEventListener("abort", end);
      context.signal.addEventListener("abort", end);
      // A stream that was on its way when the others were ended.
      if (leader.stopping.aborted) end();
      try {
        void pump(leader, requests, context, answers);
        for await (const answer of answers)
          yield { ack: writeBeatAck(leader.envelope, answer, leader.workersMax) };
      } finally {
        leader.stopping.removeEventListener("abort", end);
        context.signal.removeEventListener("abort", end);
      }
    },
  };
}

/** Never rejects: what goes wrong ends the answers, and so the stream, with it. */
async function pump(
  leader: Leader,
  requests: AsyncIterable<BeatStreamRequest>,
  context: HandlerContext,
  answers: AsyncQueue<BeatAnswer>,
): Promise<void> {
  const answer = (ack: BeatAnswer): void => {
    if (!answers.push(ack))
      answers.end(failure("overloaded", { what: "unread acknowledgements", limit: ACKS_MAX }));
  };
  try {
    for await (const { beat } of requests) {
      const own = readOwnBeat(leader, beat, context);
      const kept = keepMessage(context);
      const released = (ack: BeatAnswer): void => {
        kept.release();
        answer(ack);
      };
      submitKept(leader, kept, { kind: "beat", beat: own, answer: released });
    }
    answers.end();
  } catch (error) {
    answers.end(
      error instanceof Error
        ? error
        : failure("internal", { detail: "the stream of heartbeats broke" }, error),
    );
  }
}

function readOwnBeat(leader: Leader, wire: WireBeat | undefined, context: HandlerContext): Beat {
  const beat = readBeat(wire);
  requireWorkerItself(context, beat.workerId);
  const epochSeen = higherEpoch(wire?.worker, leader);
  if (epochSeen !== undefined) leader.onHigherEpoch(epochSeen);
  return beat;
}

/** Epochs of different stores say nothing about each other. */
function higherEpoch(worker: WorkerEnvelope | undefined, { envelope }: Leader): number | undefined {
  if (worker?.epochSeen === undefined || envelope.coordEpoch === undefined) return undefined;
  if (worker.epochSeen <= envelope.coordEpoch) return undefined;
  return Buffer.compare(worker.storeId, envelope.storeId) === 0 ? Number(worker.epochSeen) : undefined;
}
