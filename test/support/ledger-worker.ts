// A worker as the reactor sees one: a port, and what it says on it. It does what it is told and no more.
import assert from "node:assert/strict";
import type { IncarnationId, WorkerId } from "../../src/base/ids.ts";
import type { Beat, Input } from "../../src/coordinator/turn/input.ts";
import type {
  AssignedItem,
  HeldClaim,
  ReportedOutcome,
  Report,
  SessionFrame,
  SessionPort,
} from "../../src/coordinator/turn/session-frame.ts";
import { beatOf, incarnationId, workerId } from "./reactor-harness.ts";

/** The coordinator that it talks to. */
interface Coordinator {
  readonly state: { readonly epoch: number };
  step(...inputs: Input[]): Promise<void>;
  settle(): Promise<void>;
}

/** Its assignments, with the fields that a report has to name. */
export interface HeldItem extends AssignedItem {
  readonly text: string;
  readonly epoch: number;
  readonly incarnation: IncarnationId;
}

export class LedgerWorker {
  readonly id: WorkerId;
  readonly number: number;
  incarnation: IncarnationId;
  /** In the order in which they came, until they are reported, released or dropped. */
  readonly held: HeldItem[] = [];
  /** Frames that are not assignments. */
  readonly frames: SessionFrame[] = [];
  port: SessionPort;
  isEnded = false;
  state: Beat["state"] = "Ready";
  plugins: Beat["plugins"] = [];
  isAtRisk = false;
  /** Arrivals that its beats name; none unless set. */
  acknowledges: number | undefined;
  sequence = 0;
  /** The number of the last assignment. */
  received = 0;
  sessions = 0;
  batches = 0;
  readonly #harness: Coordinator;
  readonly #slots: number;

  constructor(harness: Coordinator, number: number, options: { slots: number; incarnation: number }) {
    this.#harness = harness;
    this.#slots = options.slots;
    this.number = number;
    this.id = workerId(number);
    this.incarnation = incarnationId(options.incarnation);
    this.port = this.#newPort();
  }

  get texts(): string[] {
    return this.held.map(({ text }) => text);
  }

  #newPort(): SessionPort {
    this.isEnded = false;
    const port: SessionPort = {
      send: (frame) => {
        // Frames under way on a stream that was left do not arrive.
        if (port === this.port) this.#take(frame);
      },
      end: () => {
        if (port === this.port) this.isEnded = true;
      },
    };
    return port;
  }

  #take(frame: SessionFrame): void {
    assert(!this.isEnded, "nothing is sent behind the end of a stream");
    if (frame.kind !== "assignments") return void this.frames.push(frame);
    assert.equal(frame.firstNumber, this.received + 1, "assignments are numbered without gaps");
    this.received += frame.items.length;
    const { epoch } = this.#harness.state;
    const { incarnation } = this;
    for (const item of frame.items)
      this.held.push({ ...item, epoch, incarnation, text: Buffer.from(item.payload).toString() });
  }

  async beat(): Promise<void> {
    await this.#harness.step(this.beatInput());
  }

  beatInput(): Input {
    const { id, incarnation, state, plugins, isAtRisk, acknowledges: ackedAssignment } = this;
    const what = { state, plugins, isAtRisk, ackedAssignment, slots: this.#slots };
    const beat = beatOf({ workerId: id, incarnation, sequence: ++this.sequence, ...what });
    return { kind: "beat", beat, answer: () => undefined };
  }

  /** A new stream; what it says of itself is what it has, unless said otherwise. Returns the verdict, if one came. */
  async hello(
    held: readonly HeldClaim[] = this.held.map((item) => claimOf(item)),
  ): Promise<readonly boolean[] | undefined> {
    await this.#harness.step(this.helloInput(held));
    await this.#harness.settle();
    const verdict = this.frames.findLast(({ kind }) => kind === "verdict");
    return verdict?.kind === "verdict" ? verdict.keep : undefined;
  }

  helloInput(held: readonly HeldClaim[] = this.held.map((item) => claimOf(item))): Input {
    this.port = this.#newPort();
    this.frames.length = 0;
    const { id: workerId, incarnation, port, received: ackedAssignment } = this;
    const sessionNumber = ++this.sessions;
    return { kind: "hello", workerId, incarnation, sessionNumber, port, held, ackedAssignment };
  }

  /** A new process of the same worker, which has nothing but the results that the old one had not delivered. */
  restart(number: number): void {
    this.incarnation = incarnationId(number);
    this.sequence = 0;
    this.received = 0;
    this.batches = 0;
    this.state = "Ready";
  }

  async ask(more: number): Promise<void> {
    await this.#harness.step(this.askInput(more));
    await this.#harness.settle();
  }

  askInput(more: number): Input {
    return { kind: "credit", workerId: this.id, port: this.port, more };
  }

  /** How these ended; they are not held any more. */
  async report(items: readonly HeldItem[], outcome?: ReportedOutcome): Promise<void> {
    await this.send(items.map((item) => reportOf(item, outcome)));
    this.forget(items);
    await this.#harness.settle();
  }

  async send(reports: readonly Report[]): Promise<void> {
    await this.#harness.step(this.resultsInput(reports));
  }

  resultsInput(reports: readonly Report[], number = ++this.batches): Input {
    return { kind: "results", workerId: this.id, port: this.port, number, reports };
  }

  async release(items: readonly HeldItem[]): Promise<void> {
    this.forget(items);
    await this.#harness.step({ kind: "released", workerId: this.id, port: this.port, attempts: items });
    await this.#harness.settle();
  }

  forget(items: readonly HeldItem[]): void {
    const gone = new Set(items);
    this.held.splice(0, this.held.length, ...this.held.filter((item) => !gone.has(item)));
  }

  /** The highest batch that was acknowledged on this stream. */
  get acknowledged(): number | undefined {
    const last = this.frames.findLast(({ kind }) => kind === "resultsAcknowledged");
    return last?.kind === "resultsAcknowledged" ? last.number : undefined;
  }
}

export function claimOf({ id, attempt, epoch }: HeldItem, isFinished = false): HeldClaim {
  return { id, attempt, epoch, isFinished };
}

/** A success whose output is the payload turned to capitals, unless another outcome is said. */
export function reportOf(item: HeldItem, outcome: ReportedOutcome = successOf(item)): Report {
  const { id, attempt, epoch, incarnation } = item;
  return { id, attempt, epoch, incarnation, outcome };
}

export function successOf({ text }: HeldItem): Extract<ReportedOutcome, { kind: "success" }> {
  const output = Buffer.from(text.toUpperCase());
  return { kind: "success", output, digest: digestOf(output) };
}

/** 32 bytes that differ for different outputs; nobody computes them anew. */
function digestOf(output: Uint8Array): Uint8Array {
  const digest = new Uint8Array(32);
  for (const [at, byte] of output.entries()) digest[at % 32] = ((digest[at % 32] ?? 0) * 31 + byte) % 256;
  return digest;
}

export const ERROR: ReportedOutcome & { readonly kind: "error" } = { kind: "error", message: "it broke" };
