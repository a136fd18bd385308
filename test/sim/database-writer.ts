// A process's writer of the shared database, as that of the store on Postgres: answers are lost, ways are cut, and a batch of which nobody
// heard may come later, or never.
import type { Timer } from "../../src/base/clock.ts";
import { failure } from "../../src/base/errors.ts";
import type { Batch, CommitOutcome } from "../../src/storage/store.ts";
import { delayMs, isSlow, NOTICED_MAX_MS, PATIENCE_MS, SLOW_MAX_MS } from "./database-way.ts";
import type { DatabaseWay } from "./database-way.ts";
import { between, happens } from "./world.ts";

interface Call {
  readonly batch: Batch;
  readonly answer: (outcome: CommitOutcome) => void;
}

/** A call on its way to the server. */
interface Sending {
  readonly batch: Batch;
  /** The connection that it goes on; see `DatabaseWriter`. */
  readonly session: number;
  /** How often something was lost that the process was answered, when it was sent: its count of turns goes from there. */
  readonly losses: number;
  /** Does nothing once it was called. */
  readonly end: (outcome: CommitOutcome) => void;
  /** It was called, or nobody waits for it. */
  readonly isOver: () => boolean;
}

/** How late a batch comes of which nobody has heard. */
const LATE_MAX_MS = 6_000;

/**
 * A writer: one batch at a time. When one of them came to an unknown end, those behind it are not sent. One that counts its turns (all but that
 * of the lease) makes a new connection after a lost answer, which shuts out what comes late on the old one; and the server refuses a batch
 * that was sent before it lost a turn of the same writer, whenever it comes.
 */
export class DatabaseWriter {
  readonly #options: DatabaseWay;
  /** Undefined: it does not count. */
  readonly #isDoubted: ((batch: Batch) => boolean) | undefined;
  #calls: Call[] = [];
  #session = 0;
  /** The connection of the last batch that has reached the server. */
  #reached = 0;

  constructor(options: DatabaseWay, isDoubted: ((batch: Batch) => boolean) | undefined) {
    this.#options = options;
    this.#isDoubted = isDoubted;
  }

  get isIdle(): boolean {
    return this.#calls.length === 0;
  }

  commit(batch: Batch): Promise<CommitOutcome> {
    return new Promise((answer) => {
      this.#calls.push({ batch, answer });
      if (this.#calls.length === 1) this.#send();
    });
  }

  #send(): void {
    const [call] = this.#calls;
    const { process } = this.#options;
    if (call === undefined) return;
    let patience: Timer | undefined;
    let isOver = false;
    const end = (outcome: CommitOutcome): void =>
      process.receive(() => {
        if (isOver) return;
        isOver = true;
        patience?.cancel();
        this.#ended(call, outcome);
      });
    const wait = (): void => {
      patience = process.after(between(process.random, ...PATIENCE_MS), () =>
        this.#isCut ? end(unknown("nobody answers")) : wait(),
      );
    };
    if (this.#begin({ batch: call.batch, end, isOver: () => isOver })) wait();
  }

  /** False where it is not sent at all. */
  #begin(asked: Pick<Sending, "batch" | "end" | "isOver">): boolean {
    const { process, world, database } = this.#options;
    const { batch, end } = asked;
    if (this.#isDoubted?.(batch) === true) {
      process.after(0, () => end(unknown("it has lost what was committed")));
      return false;
    }
    const sending = { ...asked, session: this.#session, losses: database.lossesOf(process) };
    world.after(delayMs(this.#options), () => this.#arrive(sending));
    return true;
  }

  #arrive(sending: Sending): void {
    const { process, weather, world, database } = this.#options;
    const { end } = sending;
    const { random } = process;
    if (!process.isAlive && happens(random, 0.5)) return;
    if (this.#isCut) {
      // It stays in some buffer, or it does not.
      const isKept = happens(random, 0.5);
      return this.#pass(() => {
        if (isKept) this.#arrive(sending);
        else end(unknown("the connection broke"));
      });
    }
    if (happens(random, weather.breakChance)) {
      const isLate = happens(random, 0.5);
      const unheard = { ...sending, end: () => {}, isOver: () => true };
      if (isLate) world.after(between(random, 0, LATE_MAX_MS), () => this.#execute(unheard));
      return end(unknown("the connection broke"));
    }
    if (!database.isUp) return void process.after(NOTICED_MAX_MS, () => end(unknown("the server is down")));
    this.#execute(sending);
  }

  #execute(sending: Sending): void {
    const { process, weather, world, database, afterLoss } = this.#options;
    const { batch, session, losses, end } = sending;
    const { random } = process;
    const isCounted = this.#isDoubted !== undefined && afterLoss !== "trusts blindly";
    if (isCounted && session < this.#reached) return;
    if (isCounted && database.lossesOf(process) > losses)
      return void world.after(delayMs(this.#options), () => this.#pass(() => this.#refused(sending)));
    this.#reached = session;
    const syncMs = isSlow(this.#options)
      ? between(random, 0, SLOW_MAX_MS)
      : between(random, 0, weather.syncMaxMs);
    database.execute(process, batch, syncMs, (answer) => {
      if (answer === undefined || answer === "cancelled" || happens(random, weather.breakChance)) {
        const reason =
          answer === "cancelled" ? "the wait for the standby was cancelled" : "the connection broke";
        return void world.after(between(random, 0, NOTICED_MAX_MS), () => end(unknown(reason)));
      }
      world.after(delayMs(this.#options), () => this.#pass(() => end(answer)));
    });
  }

  /** The writer's count on the server is lower than it was answered: what rests on that is not written, anything else is sent again. */
  #refused(sending: Sending): void {
    this.#options.process.receive(() => {
      if (sending.isOver()) return;
      this.#session++;
      this.#begin(sending);
    });
  }

  #ended(call: Call, outcome: CommitOutcome): void {
    this.#calls.shift();
    if (outcome.kind === "unknown") this.#session++;
    const behind = outcome.kind === "unknown" ? this.#calls.splice(0) : [];
    call.answer(outcome);
    for (const { answer } of behind) answer(outcome);
    this.#send();
  }

  get #isCut(): boolean {
    const { cuts, process } = this.#options;
    return cuts.has(process.machine.name);
  }

  #pass(run: () => void): void {
    const { cuts, process } = this.#options;
    cuts.pass(process.machine.name, run);
  }
}

function unknown(reason: string): CommitOutcome {
  return { kind: "unknown", cause: failure("store_write_failed", { path: "shared", reason }) };
}
