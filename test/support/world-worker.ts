// A worker as the reactor sees one: a port, and what it says on it. It does what it is told and no more.
import assert from "node:assert/strict";
import type { IncarnationId, WorkerId } from "../../src/base/ids.ts";
import { parseUlid } from "../../src/base/ids.ts";
import type { Beat, Input } from "../../src/coordinator/turn/input.ts";
import type {
  AssignedItem,
  HeldClaim,
  ReportedOutcome,
  Report,
  SessionFrame,
  SessionPort,
} from "../../src/coordinator/turn/session-frame.ts";

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

/** Ids that sort as their numbers do. */
export function workerId(number: number): WorkerId {
  return ulid<WorkerId>("W", number);
}

export function incarnationId(number: number): IncarnationId {
  return ulid<IncarnationId>("A", number);
}

function ulid<Id extends WorkerId | IncarnationId>(letter: string, number: number): Id {
  return parseUlid<Id>(`01${letter}${String(number).padStart(23, "0")}`) ?? assert.fail();
}

export function beatOf(parts: Partial<Beat> = {}): Beat {
  return {
    workerId: workerId(1),
    incarnation: incarnationId(1),
    sequence: 1,
    state: "Ready",
    load: 0,
    sentAtMs: 0,
    slots: 1,
    plugins: [],
    isAtRisk: false,
    trouble: "",
    takesKeys: true,
    ...parts,
  };
}

type FrameOf<Kind extends SessionFrame["kind"]> = Extract<SessionFrame, { readonly kind: Kind }>;

export class WorldWorker {
  readonly id: WorkerId;
  readonly number: number;
  incarnation: IncarnationId;
  /** In the order in which they came, until they are reported, handed back or dropped. */
  readonly held: HeldItem[] = [];
  /** Frames of the stream that it has now, but for assignments. */
  readonly frames: SessionFrame[] = [];
  /** Every frame with assignments that there ever was. */
  readonly given: FrameOf<"assignments">[] = [];
  port: SessionPort;
  isEnded = false;
  state: Beat["state"] = "Ready";
  plugins: Beat["plugins"] = [];
  isAtRisk = false;
  takesKeys = true;
  /** Versions that it has open at once; its beats do not say unless set. */
  loadedVersions: number | undefined;
  /** Arrivals that its beats name; none unless set. */
  acknowledges: number | undefined;
  /** Its beats say that it has nothing; they say nothing of that unless set. */
  holdsNothing = false;
  sequence = 0;
  /** The number of the last assignment. */
  received = 0;
  sessions = 0;
  batches = 0;
  readonly #world: Coordinator;
  readonly #slots: number;

  constructor(world: Coordinator, number: number, options: { slots: number; incarnation: number }) {
    this.#world = world;
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
    this.given.push(frame);
    assert.equal(frame.firstNumber, this.received + 1, "assignments are numbered without gaps");
    this.received += frame.items.length;
    const { epoch } = this.#world.state;
    const { incarnation } = this;
    for (const item of frame.items)
      this.held.push({ ...item, epoch, incarnation, text: Buffer.from(item.payload).toString() });
  }

  framesOf<Kind extends SessionFrame["kind"]>(kind: Kind): FrameOf<Kind>[] {
    return this.frames.filter((frame): frame is FrameOf<Kind> => frame.kind === kind);
  }

  async beat(): Promise<void> {
    await this.#world.step(this.beatInput());
  }

  beatInput(): Input {
    const { id, incarnation, state, plugins, isAtRisk, acknowledges: ackedAssignment } = this;
    const { holdsNothing, takesKeys, loadedVersions } = this;
    const what = {
      takesKeys,
      loadedVersions,
      state,
      plugins,
      isAtRisk,
      ackedAssignment,
      holdsNothing,
      slots: this.#slots,
    };
    const beat = beatOf({ workerId: id, incarnation, sequence: ++this.sequence, ...what });
    return { kind: "beat", beat, answer: () => undefined };
  }

  /** A new stream; what it says of itself is what it has, unless said otherwise. Returns the verdict, if one came. */
  async hello(
    held: readonly HeldClaim[] = this.held.map((item) => claimOf(item)),
  ): Promise<readonly boolean[] | undefined> {
    await this.#world.step(this.helloInput(held));
    await this.#world.settle();
    return this.framesOf("verdict").at(-1)?.keep;
  }

  helloInput(held: readonly HeldClaim[] = this.held.map((item) => claimOf(item))): Input {
    this.port = this.#newPort();
    this.frames.length = 0;
    const { id: workerId, incarnation, port, received: ackedAssignment } = this;
    const sessionNumber = ++this.sessions;
    return { kind: "hello", workerId, incarnation, sessionNumber, port, held, ackedAssignment };
  }

  /** A beat, and a new stream behind it. */
  async rejoin(held?: readonly HeldClaim[]): Promise<readonly boolean[] | undefined> {
    await this.beat();
    return this.hello(held);
  }

  /** Says again what it has, and drops what it is told to drop. Returns the verdict. */
  async reconnect(): Promise<readonly boolean[]> {
    const held = [...this.held];
    const verdict = (await this.rejoin()) ?? [];
    this.forget(held.filter((_, at) => verdict[at] !== true));
    return verdict;
  }

  /** A new process of the same worker joins, and has nothing. */
  async startAnew(number: number): Promise<void> {
    this.restart(number);
    this.held.length = 0;
    await this.rejoin();
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
    await this.#world.step(this.askInput(more));
    await this.#world.settle();
  }

  askInput(more: number): Input {
    return { kind: "credit", workerId: this.id, port: this.port, more };
  }

  /** How these ended; they are not held any more. */
  async report(items: readonly HeldItem[], outcome?: ReportedOutcome): Promise<void> {
    await this.send(items.map((item) => reportOf(item, outcome)));
    this.forget(items);
    await this.#world.settle();
  }

  async send(reports: readonly Report[]): Promise<void> {
    await this.#world.step(this.resultsInput(reports));
  }

  resultsInput(reports: readonly Report[], number = ++this.batches): Input {
    return { kind: "results", workerId: this.id, port: this.port, number, reports };
  }

  async handBack(items: readonly HeldItem[]): Promise<void> {
    this.forget(items);
    await this.#world.step({ kind: "handedBack", workerId: this.id, port: this.port, attempts: items });
    await this.#world.settle();
  }

  forget(items: readonly HeldItem[]): void {
    const gone = new Set(items);
    this.held.splice(0, this.held.length, ...this.held.filter((item) => !gone.has(item)));
  }

  /** The highest batch that was acknowledged on this stream. */
  get acknowledged(): number | undefined {
    return this.framesOf("resultsAcknowledged").at(-1)?.number;
  }
}

export function claimOf({ id, attempt, epoch, pluginVersion }: HeldItem, isFinished = false): HeldClaim {
  const named = pluginVersion === undefined || pluginVersion === "" ? {} : { pluginVersion };
  return { id, attempt, epoch, isFinished, ...named };
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
