// Workers without sockets, for a coordinator in this process: each takes what it is given and reports all of it at once. They do nothing
// else, so that the time is the coordinator's.
import { hash } from "node:crypto";
import { assert } from "../../src/base/assert.ts";
import { sleep, systemClock } from "../../src/base/clock.ts";
import type { IncarnationId, StoreId, WorkerId } from "../../src/base/ids.ts";
import { newUlid } from "../../src/base/ids.ts";
import { systemRandom } from "../../src/base/random.ts";
import type { Input, Plugin } from "../../src/coordinator/turn/input.ts";
import type { RunTask, SubmissionVerdict } from "../../src/coordinator/turn/run-terms.ts";
import type {
  AssignedItem,
  Report,
  SessionFrame,
  SessionPort,
} from "../../src/coordinator/turn/session-frame.ts";
import { planSubmission } from "../../src/coordinator/rpc/submissions.ts";
import type { InMemoryCoordinator } from "./in-memory-fleet.ts";

const BATCH_ITEMS = 2_000;
const TASK = { digest: new Uint8Array(32).fill(1), plugin: "", summary: "" };
const OUTPUT = Buffer.from(JSON.stringify({ answer: "y".repeat(38) }));
const SUCCESS = { kind: "success", output: OUTPUT, digest: hash("sha256", OUTPUT, "buffer") } as const;

/** The run's task, what the workers have, and what their reports say beside the result; as little as there may be, unless it is said. */
export interface FleetTerms {
  readonly task: RunTask;
  readonly plugins: readonly Plugin[];
  readonly reported: Partial<Report>;
}

const PLAIN: FleetTerms = { task: TASK, plugins: [], reported: {} };
/** A worker has so many items beside those that it executes, for each of these. */
const CREDIT_PER_SLOT = 2;
const BEAT_EVERY_MS = 500;

export class WorkingFleet {
  readonly #coordinator: InMemoryCoordinator;
  readonly #workers: readonly MemoryWorker[];
  readonly #task: RunTask;
  #over = Promise.withResolvers<undefined>();
  #left = 0;
  /** Items that were submitted before: no two are equal. */
  #submitted = 0;

  constructor(coordinator: InMemoryCoordinator, workers: number, slots: number, terms = PLAIN) {
    this.#coordinator = coordinator;
    this.#task = terms.task;
    const onDone = (items: number): void => {
      this.#left -= items;
      if (this.#left === 0) this.#over.resolve(undefined);
    };
    const send = (input: Input): Promise<void> => this.#send(input);
    const { epoch } = coordinator.state;
    this.#workers = Array.from(
      { length: workers },
      () => new MemoryWorker({ send, epoch, slots, terms, onDone }),
    );
  }

  async join(): Promise<void> {
    for (const worker of this.#workers) await worker.join();
  }

  /** Resolves when all of them have a result that is on the disk. */
  async execute(items: number, payloadBytes: number): Promise<void> {
    this.#left = items;
    this.#over = Promise.withResolvers();
    const stop = new AbortController();
    const beating = this.#beat(stop.signal);
    await this.#submit(items, payloadBytes);
    await this.#over.promise;
    stop.abort();
    await beating;
  }

  async #submit(items: number, payloadBytes: number): Promise<void> {
    const submission = newUlid<StoreId>(systemClock, systemRandom);
    const pad = "x".repeat(Math.max(0, payloadBytes - 24));
    for (let from = 0, batchNumber = 1; from < items; from += BATCH_ITEMS, batchNumber++) {
      const lines = Array.from({ length: Math.min(BATCH_ITEMS, items - from) }, (_, at) => ({
        ...{
          payload: Buffer.from(`{"n":${this.#submitted + from + at},"pad":"${pad}"}`),
          key: "",
          priority: 0,
          label: "",
        },
      }));
      const batch = { submission, batchNumber, task: this.#task, reopen: false, lines };
      const planned = await planSubmission(this.#coordinator.store, batch);
      assert(planned.kind === "planned", "each batch comes once, and in order");
      const verdict = await new Promise<SubmissionVerdict>((answer) => {
        void this.#send({ kind: "submit", batch: planned.batch, answer });
      });
      assert(verdict.kind === "taken", "the run takes items");
    }
    this.#submitted += items;
  }

  /** All of them, spread over the interval. */
  async #beat(signal: AbortSignal): Promise<void> {
    const groups = 50;
    for (let group = 0; !signal.aborted; group = (group + 1) % groups) {
      for (let at = group; at < this.#workers.length; at += groups) await this.#workers[at]?.beat();
      await sleep(systemClock, BEAT_EVERY_MS / groups);
    }
  }

  /** A full inbox is waited for, as streams are. */
  async #send(input: Input): Promise<void> {
    while (!this.#coordinator.loop.push(input))
      await new Promise<void>((resolve) => systemClock.nextTurn(resolve));
  }
}

interface Surroundings {
  readonly send: (input: Input) => Promise<void>;
  readonly epoch: number;
  readonly slots: number;
  readonly terms: FleetTerms;
  /** So many results are on the disk. */
  readonly onDone: (items: number) => void;
}

class MemoryWorker {
  readonly #surroundings: Surroundings;
  readonly #who = {
    workerId: newUlid<WorkerId>(systemClock, systemRandom),
    incarnation: newUlid<IncarnationId>(systemClock, systemRandom),
  };
  readonly #port: SessionPort = {
    send: (frame) => this.#take(frame),
    end: () => assert(false, "nobody ends a session"),
  };
  #sequence = 0;
  #batches = 0;
  /** Results of each batch that is not acknowledged. */
  readonly #unacknowledged = new Map<number, number>();

  constructor(surroundings: Surroundings) {
    this.#surroundings = surroundings;
  }

  /** It is known, has a session, and asks for work. */
  async join(): Promise<void> {
    const { send, slots } = this.#surroundings;
    const { workerId } = this.#who;
    await this.beat();
    const hello = { held: [], ackedAssignment: 0, sessionNumber: 1 };
    await send({ kind: "hello", ...this.#who, port: this.#port, ...hello });
    await send({ kind: "credit", workerId, port: this.#port, more: CREDIT_PER_SLOT * slots });
  }

  async beat(): Promise<void> {
    const { send, slots, terms } = this.#surroundings;
    const beat = {
      ...{ ...this.#who, sequence: ++this.#sequence, state: "Ready" as const, load: 0.5, slots },
      ...{ sentAtMs: systemClock.wallMs(), plugins: terms.plugins, isAtRisk: false, trouble: "" },
    };
    await send({ kind: "beat", beat, answer: () => undefined });
  }

  #take(frame: SessionFrame): void {
    switch (frame.kind) {
      case "assignments":
        return void this.#report(frame.items);
      case "resultsAcknowledged":
        for (const [number, results] of this.#unacknowledged) {
          if (number > frame.number) return;
          this.#unacknowledged.delete(number);
          this.#surroundings.onDone(results);
        }
        return;
      default:
        return assert(frame.kind === "verdict", `a fleet without trouble gets no ${frame.kind}`);
    }
  }

  async #report(items: readonly AssignedItem[]): Promise<void> {
    const { send, epoch, terms } = this.#surroundings;
    const { workerId, incarnation } = this.#who;
    const number = ++this.#batches;
    this.#unacknowledged.set(number, items.length);
    const reports = items.map(({ id, attempt }): Report => {
      return { id, attempt, epoch, incarnation, outcome: SUCCESS, ...terms.reported };
    });
    await send({ kind: "results", workerId, port: this.#port, number, reports });
    await send({ kind: "credit", workerId, port: this.#port, more: items.length });
  }
}
