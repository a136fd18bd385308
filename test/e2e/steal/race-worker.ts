// A worker of a race: the real session, backlog, executor and outbox, on a clock that stands still, with a backend that ends an
// execution when it is told to. It hears what was said to it when it is told to.
import { failure } from "../../../src/base/errors.ts";
import assert from "node:assert/strict";
import { create } from "@bufbuild/protobuf";
import type { MessageInitShape } from "@bufbuild/protobuf";
import { seededRandom } from "../../../src/base/random.ts";
import type { IncarnationId, WorkerId } from "../../../src/base/ids.ts";
import { ulidToBytes } from "../../../src/base/ids.ts";
import type { Input } from "../../../src/coordinator/turn/input.ts";
import { SessionRequestSchema, WorkService } from "../../../src/gen/rollout/v1/work_pb.ts";
import type { SessionRequest, SessionResponse } from "../../../src/gen/rollout/v1/work_pb.ts";
import { silentLogger } from "../../../src/observe/log.ts";
import { MemoryStore } from "../../../src/storage/memory/memory-store.ts";
import type { Backend, ItemAttempt, Outcome } from "../../../src/worker/backends/backend.ts";
import { EpochGuard } from "../../../src/worker/link/epoch-guard.ts";
import { Workload } from "../../../src/worker/workload.ts";
import { callWithoutServer } from "../../support/call-scope.ts";
import { newRunId } from "../../support/certificates.ts";
import { fixedPlugins } from "../../support/fixed-plugins.ts";
import type { RaceCoordinator } from "./race-coordinator.ts";
import { beatOf, incarnationId, workerId } from "../../support/world-worker.ts";
import { VirtualClock } from "../../support/virtual-clock.ts";

const RUN = newRunId();

export class RaceWorker {
  readonly id: WorkerId;
  readonly number: number;
  readonly incarnation: IncarnationId;
  /** The payload of each execution that has begun, in order. */
  readonly begun: string[] = [];
  readonly fatal: unknown[] = [];
  readonly #size: { readonly slots: number; readonly prefetch: number };
  readonly #coordinator: RaceCoordinator;
  readonly #clock = new VirtualClock();
  readonly #running = new Map<string, { readonly attempt: ItemAttempt; end(outcome: Outcome): void }>();
  #work: Workload | undefined;
  #stream: AbortController | undefined;
  #beats = 0;

  constructor(
    number: number,
    size: { readonly slots: number; readonly prefetch: number },
    coordinator: RaceCoordinator,
  ) {
    this.number = number;
    this.id = workerId(number);
    this.incarnation = incarnationId(number);
    this.#size = size;
    this.#coordinator = coordinator;
  }

  beatInput(): Input {
    const { id, incarnation } = this;
    const { slots } = this.#size;
    const beat = beatOf({ workerId: id, incarnation, sequence: ++this.#beats, slots });
    return { kind: "beat", beat, answer: () => undefined };
  }

  async open(): Promise<void> {
    const { id, incarnation } = this;
    const onFatal = (error: unknown): void => void this.fatal.push(error);
    this.#work = await Workload.open({
      runId: RUN,
      workerId: id,
      incarnation,
      ...this.#size,
      plugins: fixedPlugins(this.#backend()),
      store: new MemoryStore(),
      clock: this.#clock,
      log: silentLogger,
      isFenced: () => false,
      onFatal,
    });
    this.#work.attach({
      client: {
        session: (requests, options) => this.#converse(requests, options?.signal),
        getAssignment: () => Promise.reject(failure("coordinator_silent", { address: "" })),
      },
      random: seededRandom(this.number),
      guard: new EpochGuard([], async () => undefined),
      envelope: () => ({ workerId: ulidToBytes(id), incarnation: ulidToBytes(incarnation) }),
      onFailed: onFatal,
      onSuperseded: () => onFatal("superseded"),
    });
    this.#work.start();
    await this.settle();
  }

  get isConnected(): boolean {
    return this.#stream !== undefined;
  }

  get canReconnect(): boolean {
    return !this.isConnected && this.#clock.nextDueInMs !== undefined;
  }

  async reconnect(): Promise<void> {
    await this.#clock.advance(this.#clock.nextDueInMs ?? 0);
  }

  /** Whether something was said to it that it has not heard yet. */
  get canHear(): boolean {
    return this.isConnected && this.#downlink.length > 0;
  }

  hear(): void {
    const frame = this.#downlink.shift();
    assert(frame !== undefined, "there is something to hear");
    frame.deliver();
  }

  /** The stream breaks. */
  cut(): void {
    this.#stream?.abort();
  }

  /** The items that it executes now, by their payload with the spaces left out. */
  get executing(): string[] {
    return [...this.#running.keys()];
  }

  get running(): readonly ItemAttempt[] {
    return [...this.#running.values()].map(({ attempt }) => attempt);
  }

  end(item: string): void {
    const execution = this.#running.get(item);
    assert(execution !== undefined, `item ${item} is executed here`);
    this.#running.delete(item);
    execution.end({ kind: "success", output: execution.attempt.payload });
  }

  async settle(): Promise<void> {
    await this.#clock.advance();
  }

  get fingerprint(): string {
    const held = this.#work?.holdings();
    return [
      this.isConnected,
      Buffer.from(held?.heldDigest ?? []).toString("hex"),
      held?.ackedAssignment,
      this.executing.join(),
      this.#downlink.map(({ name }) => name).join(),
    ].join(" ");
  }

  get #downlink(): { readonly name: string; readonly deliver: () => void }[] {
    return this.#coordinator.downlinkOf(this.id)?.frames ?? [];
  }

  #backend(): Backend {
    return {
      execute: (attempt) => {
        const item = Buffer.from(attempt.payload).toString().replaceAll(" ", "");
        this.begun.push(item);
        const { promise, resolve } = Promise.withResolvers<Outcome>();
        this.#running.set(item, { attempt, end: resolve });
        return promise;
      },
      close: () => Promise.resolve(),
    };
  }

  async *#converse(
    requests: AsyncIterable<MessageInitShape<typeof SessionRequestSchema>>,
    signal: AbortSignal | undefined,
  ): AsyncGenerator<SessionResponse> {
    const stream = new AbortController();
    signal?.addEventListener("abort", () => stream.abort());
    this.#stream = stream;
    const identity = { runId: RUN, role: "worker", id: this.id } as const;
    // Nobody is refused here.
    const trail = { refuse: unexpected } as never;
    const context = callWithoutServer(WorkService.method.session, identity, stream.signal, { trail });
    try {
      yield* this.#coordinator.open(made(requests), context);
    } finally {
      if (this.#stream === stream) this.#stream = undefined;
    }
  }
}

async function* made(
  requests: AsyncIterable<MessageInitShape<typeof SessionRequestSchema>>,
): AsyncGenerator<SessionRequest> {
  for await (const request of requests) yield create(SessionRequestSchema, request);
}

function unexpected(): never {
  throw new Error("somebody is refused");
}
