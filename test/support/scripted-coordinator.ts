// A coordinator that does what a test tells it: real listener, real mutual TLS, no ledger behind it. Beats are answered at
// once; a session says and hears what the test wants.
import assert from "node:assert/strict";
import type { MessageInitShape } from "@bufbuild/protobuf";
import { AsyncQueue } from "../../src/base/async-queue.ts";
import { systemClock } from "../../src/base/clock.ts";
import { newUlid, ulidToBytes } from "../../src/base/ids.ts";
import type { RunId, StoreId } from "../../src/base/ids.ts";
import { systemRandom } from "../../src/base/random.ts";
import type { CoordinatorEnvelopeSchema } from "../../src/gen/rollout/v1/common_pb.ts";
import type { Beat } from "../../src/gen/rollout/v1/heartbeat_pb.ts";
import { BeatVerdict, HeartbeatService } from "../../src/gen/rollout/v1/heartbeat_pb.ts";
import type {
  AssignmentSchema,
  Hello,
  Result,
  SessionRequest,
  SessionResponseSchema,
} from "../../src/gen/rollout/v1/work_pb.ts";
import { HeldVerdict, WorkService } from "../../src/gen/rollout/v1/work_pb.ts";
import type { RunningServer } from "../../src/transport/server.ts";
import { newRunId, TestAuthority } from "./certificates.ts";
import { eventually } from "./eventually.ts";
import { startTestServer } from "./test-server.ts";

type Response = Exclude<MessageInitShape<typeof SessionResponseSchema>, { readonly $typeName: string }>;
type AssignmentInit = Exclude<MessageInitShape<typeof AssignmentSchema>, { readonly $typeName: string }>;
type Envelope = Exclude<MessageInitShape<typeof CoordinatorEnvelopeSchema>, { readonly $typeName: string }>;
type FrameCase = NonNullable<SessionRequest["frame"]["case"]>;
type FrameOf<Case extends FrameCase> = Extract<SessionRequest["frame"], { case: Case }>["value"];

const FRAMES_MAX = 10_000;

/** One stream of one worker. Its frames carry the coordinator's envelope, unless the test gives another. */
export class ScriptedSession {
  readonly requests: SessionRequest[] = [];
  readonly outgoing = new AsyncQueue<Response>(FRAMES_MAX);
  readonly #envelope: () => Envelope;
  readonly #taken = new Set<SessionRequest>();
  ackedResults = 0n;
  lastNumber: bigint | undefined;
  isOver = false;

  constructor(envelope: () => Envelope) {
    this.#envelope = envelope;
  }

  say(response: Response): void {
    this.outgoing.push({ coordinator: this.#envelope(), ackedResults: this.ackedResults, ...response });
  }

  /** The oldest frame of this kind that was not taken yet. */
  async next<Case extends FrameCase>(kind: Case): Promise<FrameOf<Case>> {
    const found = await eventually(`a frame ${kind}`, () => {
      const frame = this.requests.find((one) => one.frame.case === kind && !this.#taken.has(one));
      if (frame === undefined && this.isOver) throw new Error(`the session is over without a frame ${kind}`);
      return frame;
    });
    this.#taken.add(found);
    return found.frame.value as FrameOf<Case>;
  }

  /** Hears the hello and gives a verdict: keep all, unless the test says otherwise. */
  async reconcile(verdict: (hello: Hello) => readonly HeldVerdict[] = keepAll): Promise<Hello> {
    const hello = await this.next("hello");
    this.lastNumber = this.requests[0]?.ackedAssignment ?? 0n;
    this.say({ frame: { case: "verdict", value: { verdicts: [...verdict(hello)] } } });
    return hello;
  }

  /** Gives work under the numbers that follow. */
  assign(...assignments: AssignmentInit[]): void {
    assert(this.lastNumber !== undefined, "a session is reconciled first");
    this.say({
      frame: { case: "assignments", value: { firstNumber: this.lastNumber + 1n, assignments } },
    });
    this.lastNumber += BigInt(assignments.length);
  }

  acknowledge(number: bigint): void {
    this.ackedResults = number;
    this.say({ frame: { case: undefined } });
  }

  /** All that was asked for. */
  get credit(): number {
    return this.#values("credit").reduce((sum, { more }) => sum + more, 0);
  }

  get results(): Result[] {
    return this.#values("results").flatMap(({ results }) => results);
  }

  get handedBack(): number[] {
    return this.#values("handBack").flatMap(({ handedBack }) =>
      handedBack.map(({ itemId }) => itemId[0] ?? -1),
    );
  }

  end(): void {
    this.outgoing.end();
  }

  #values<Case extends FrameCase>(kind: Case): FrameOf<Case>[] {
    return this.requests.flatMap(({ frame }) => (frame.case === kind ? [frame.value as FrameOf<Case>] : []));
  }
}

export interface ScriptedCoordinator {
  readonly runId: RunId;
  readonly ca: TestAuthority;
  readonly server: RunningServer;
  readonly sessions: readonly ScriptedSession[];
  readonly beats: readonly Beat[];
  epoch: bigint;
  beatVerdict: BeatVerdict;
  /** While false, beats are heard and not answered. */
  answersBeats: boolean;
  /** The session that is the nth, counted from 0, as soon as it is there. */
  session(at: number): Promise<ScriptedSession>;
  close(): Promise<void>;
}

export async function startScriptedCoordinator(): Promise<ScriptedCoordinator> {
  const runId = newRunId();
  const ca = await TestAuthority.make();
  const storeId = ulidToBytes(newUlid<StoreId>(systemClock, systemRandom));
  const sessions: ScriptedSession[] = [];
  const beats: Beat[] = [];
  const envelope = (): Envelope => ({ coordEpoch: coordinator.epoch, storeId });
  const access = {
    "rollout.v1.HeartbeatService/BeatStream": ["worker"],
    "rollout.v1.WorkService/Session": ["worker"],
  } as const;
  const server = await startTestServer(
    { runId, ca },
    {
      access,
      routes: (router) =>
        router
          .service(HeartbeatService, {
            async *beatStream(requests) {
              for await (const { beat } of requests) {
                if (beat === undefined) continue;
                beats.push(beat);
                const { sequence } = beat;
                const verdict = coordinator.beatVerdict;
                if (coordinator.answersBeats) yield { ack: { coordinator: envelope(), sequence, verdict } };
              }
            },
          })
          .service(WorkService, {
            async *session(requests) {
              const session = new ScriptedSession(envelope);
              sessions.push(session);
              void listen(session, requests);
              yield* session.outgoing;
            },
          }),
    },
  );
  const coordinator: ScriptedCoordinator = {
    runId,
    ca,
    server,
    sessions,
    beats,
    epoch: 1n,
    beatVerdict: BeatVerdict.ACCEPTED,
    answersBeats: true,
    session: (at) => eventually(`session ${at}`, () => sessions[at]),
    close: () => server.close(0),
  };
  return coordinator;
}

async function listen(session: ScriptedSession, requests: AsyncIterable<SessionRequest>): Promise<void> {
  try {
    for await (const request of requests) session.requests.push(request);
  } catch {
    // The worker cut it off.
  }
  session.isOver = true;
  session.end();
}

function keepAll({ held }: Hello): HeldVerdict[] {
  return held.map(() => HeldVerdict.KEEP);
}

/** The id of item `number`: its first byte is the number. */
export function itemId(number: number): Uint8Array {
  const id = new Uint8Array(32);
  id[0] = number;
  return id;
}

/** An assignment of item `number`. */
export function assignment(number: number, parts: AssignmentInit = {}, attempt = 1): AssignmentInit {
  return { attempt: { itemId: itemId(number), attempt }, payload: Uint8Array.of(number), ...parts };
}
