// The database that several coordinators share, as far as they can tell it from Postgres with a standby: batches lock the rows that
// they write and expect, are logged in one order, and a synced one is seen and answered when the standby has it.
//
// Keeps true: what was answered as synced is in every later state, but for that of an older copy; of the rest a tail is lost.
import { COORDINATOR_LEASE_KEY, EPOCH_KEY, STORE_IDENTITY_KEY } from "../../src/storage/keys.ts";
import { MemoryStore } from "../../src/storage/memory/memory-store.ts";
import type { Batch, CommitOutcome, Entry, Store } from "../../src/storage/store.ts";
import type { SimProcess } from "./process.ts";
import type { SimWorld } from "./world.ts";
import { between, happens } from "./world.ts";

/** How the server comes back: as it was, as its standby, or as a copy that lacks what was answered as synced. */
export const RETURNS = ["restart", "promotion", "older copy"] as const;
export type Return = (typeof RETURNS)[number];

export interface DatabaseWitness {
  /** A batch is seen from now on; `isDurable` when no promotion of the standby loses it. */
  seen(process: SimProcess, batch: Batch, isDurable: boolean): void;
  /** Everything that is seen is on the standby too. */
  caughtUp(): void;
  /** The server is another one, or as good as another: this is what it has. */
  restored(left: Left, how: Return): void;
}

/** The log of a server that has come back. */
export interface Left {
  /** Rows that no promotion of the standby loses. */
  readonly durable: readonly Entry[];
  /** Batches behind them, in order. */
  readonly behind: readonly Batch[];
  /** The rows after all of them. */
  readonly rows: readonly Entry[];
  /** Batches that nobody had seen before, and whose they are. */
  readonly unheard: readonly { readonly process: SimProcess; readonly batch: Batch }[];
}

export interface CopyWeather {
  /** How many batches an older copy lacks, as far as there are so many behind the first claim: some number from the first to the second. */
  copyLacks: readonly [number, number];
}

export interface DatabaseOptions {
  readonly world: SimWorld;
  readonly witness: DatabaseWitness;
  /** The batch as the server takes it; another one when a broken server is tried. */
  readonly carriedOut: (batch: Batch) => Batch;
  readonly weather: CopyWeather;
}

/** Undefined: the connection broke, and nobody says what became of it. */
export type Answer = CommitOutcome | "cancelled" | undefined;

interface Execution {
  readonly process: SimProcess;
  readonly batch: Batch;
  /** As the server takes it. */
  readonly own: Batch;
  /** The time that its way to the disk and to the standby takes. */
  readonly syncMs: number;
  readonly answer: (answer: Answer) => void;
}

interface Logged {
  readonly execution: Execution;
  /** The branch of the history on which it was written. */
  readonly timeline: number;
  /** On this server's own disk for certain. */
  isFlushed: boolean;
  isAnswered: boolean;
  /** Everybody reads it: it was answered, or the server came back with it. */
  isSeen: boolean;
}

export class Database {
  readonly #options: DatabaseOptions;
  #log: Logged[] = [];
  /** So many of them are on the standby. */
  #replicated = 0;
  /** No copy lacks these: the run begins with the first claim. */
  #oldest = 0;
  /** Nothing lacks these: a store that loses its identity in its first moments is not looked into. */
  #identified = 0;
  #values = new Map<string, Uint8Array>();
  #seen = new MemoryStore();
  /** By key: how many share it, or -1 when one alone has it. */
  readonly #locks = new Map<string, number>();
  #blocked: Execution[] = [];
  /** Logged, and the standby is away. */
  #waiting: Logged[] = [];
  #isStandbyAway = false;
  #isUp = true;
  #returns = 0;
  #timeline = 1;
  /** The latest that there ever was. */
  #lastTimeline = 1;
  /** How often something was lost that a process was answered. */
  readonly #losses = new WeakMap<SimProcess, number>();

  constructor(options: DatabaseOptions) {
    this.#options = options;
  }

  /** The rows that everybody sees. */
  get rows(): Store {
    return this.#seen;
  }

  get isUp(): boolean {
    return this.#isUp;
  }

  /** Another one than that of the last row that was written before. */
  get generation(): string {
    return `timeline ${this.#timeline}`;
  }

  get isStandbyAway(): boolean {
    return this.#isStandbyAway;
  }

  /** How often something was lost that this process was answered as committed. */
  lossesOf(process: SimProcess): number {
    return this.#losses.get(process) ?? 0;
  }

  /** In a moment of the world. */
  execute(process: SimProcess, batch: Batch, syncMs: number, answer: (answer: Answer) => void): void {
    if (!this.#isUp) return answer(undefined);
    const own = this.#options.carriedOut(batch);
    this.#begin({ process, batch, own, syncMs, answer });
  }

  /** No synced commit ends until it is back. */
  loseStandby(): void {
    this.#isStandbyAway = true;
    this.#say("loses its standby");
  }

  standbyReturns(): void {
    if (!this.#isStandbyAway) return;
    this.#isStandbyAway = false;
    this.#say(`has its standby back; ${this.#waiting.length} commits waited`);
    for (const logged of this.#waiting.splice(0)) this.#acknowledge(logged);
    const onItsWay = this.#log.findIndex(({ isSeen }) => !isSeen);
    this.#replicated = Math.max(this.#replicated, onItsWay < 0 ? this.#log.length : onItsWay);
    this.#options.witness.caughtUp();
  }

  /** An administrator cancels what waits for the standby: it is seen, and on this server alone. */
  cancelWaiting(): void {
    if (this.#waiting.length > 0) this.#say(`cancels ${this.#waiting.length} commits that wait`);
    for (const logged of this.#waiting.splice(0)) {
      this.#see(logged, false);
      logged.execution.answer("cancelled");
    }
  }

  /** The server dies, and is there again after so long. */
  fail(how: Return, downMs: number): void {
    if (!this.#isUp) return;
    const { world } = this.#options;
    const kept = this.#keptBy(how);
    this.#say(`dies; comes back by ${how} with ${kept} of ${this.#log.length} batches`);
    this.#isUp = false;
    const returns = ++this.#returns;
    const unanswered = this.#log.filter(({ isSeen }) => !isSeen);
    const open = [...this.#blocked.splice(0), ...unanswered.map(({ execution }) => execution)];
    this.#waiting = [];
    this.#locks.clear();
    const misled = this.#log
      .slice(kept)
      .filter(({ isAnswered, execution }) => isAnswered && isOfLedger(execution.batch));
    for (const process of new Set(misled.map(({ execution }) => execution.process)))
      this.#losses.set(process, this.lossesOf(process) + 1);
    this.#log.length = kept;
    this.#replicated = how === "restart" ? Math.min(this.#replicated, kept) : kept;
    if (how !== "restart") this.#branch(how);
    this.#options.witness.restored(this.#rebuild(), how);
    for (const { answer } of open) answer(undefined);
    world.after(downMs, () => {
      if (returns === this.#returns) this.comeUp();
    });
  }

  comeUp(): void {
    if (this.#isUp) return;
    this.#isUp = true;
    this.#say("is up");
  }

  heal(): void {
    this.comeUp();
    this.standbyReturns();
  }

  /** The standby has the history of its primary. A copy may have it from an archive; else it counts on from its own, to a number that was there. */
  #branch(how: Return): void {
    const knowsAll = how === "promotion" || happens(this.#options.world.random, 0.5);
    this.#timeline = 1 + (knowsAll ? this.#lastTimeline : (this.#log.at(-1)?.timeline ?? 0));
    this.#lastTimeline = Math.max(this.#lastTimeline, this.#timeline);
  }

  #keptBy(how: Return): number {
    const { world, weather } = this.#options;
    const { length } = this.#log;
    const [lacksAtLeast, lacksAtMost] = weather.copyLacks;
    const atLeast = {
      // Commits that wait for the standby are on this server's own disk.
      restart: this.#log.findLastIndex(({ isFlushed }) => isFlushed) + 1,
      promotion: this.#replicated,
      "older copy": Math.max(this.#oldest, this.#replicated - lacksAtMost),
    }[how];
    const least = Math.max(atLeast, this.#identified);
    const most = how === "older copy" ? Math.max(least, this.#replicated - lacksAtLeast) : length;
    return Math.min(length, least + Math.floor(world.random.unit() * (most - least + 1)));
  }

  #rebuild(): Left {
    this.#values = new Map();
    const batches = this.#log.map(({ execution }) => execution.own);
    const behind = batches.slice(this.#replicated);
    for (const batch of batches.slice(0, this.#replicated)) apply(this.#values, batch);
    const durable = [...this.#values].map(toEntry);
    for (const batch of behind) apply(this.#values, batch);
    const rows = [...this.#values].map(toEntry);
    this.#seen = new MemoryStore(rows);
    const unheard = this.#log.flatMap(({ isSeen, execution }) => (isSeen ? [] : execution));
    for (const logged of this.#log) logged.isSeen = true;
    return { durable, behind, rows, unheard };
  }

  #begin(execution: Execution): void {
    if (!this.#lock(execution.own)) return void this.#blocked.push(execution);
    const { own, batch, answer } = execution;
    const failed = own.expect.find(({ key, value }) => !isSame(this.#values.get(key), value));
    if (failed !== undefined) {
      this.#unlock(own);
      return answer({ kind: "conflict", key: failed.key });
    }
    const logged = {
      execution,
      timeline: this.#timeline,
      isFlushed: false,
      isAnswered: false,
      isSeen: false,
    };
    this.#log.push(logged);
    if (batch.durability === "sync") {
      const returns = this.#returns;
      return void this.#options.world.after(execution.syncMs, () => {
        if (returns === this.#returns) this.#shipped(logged);
      });
    }
    this.#see(logged, false);
    answer({ kind: "committed" });
  }

  #shipped(logged: Logged): void {
    logged.isFlushed = true;
    if (this.#isStandbyAway) this.#waiting.push(logged);
    else this.#acknowledge(logged);
  }

  #acknowledge(logged: Logged): void {
    this.#replicated = Math.max(this.#replicated, this.#log.indexOf(logged) + 1);
    this.#see(logged, true);
    logged.execution.answer({ kind: "committed" });
  }

  #see(logged: Logged, isDurable: boolean): void {
    const { process, batch, own } = logged.execution;
    logged.isAnswered = logged.isSeen = true;
    apply(this.#values, own);
    void this.#seen.commit({ ...own, expect: [] });
    if (own.puts.some(({ key }) => key === STORE_IDENTITY_KEY))
      this.#identified = Math.max(this.#identified, this.#log.length);
    if (this.#oldest === 0 && own.puts.some(({ key }) => key === EPOCH_KEY)) this.#oldest = this.#log.length;
    this.#options.witness.seen(process, batch, isDurable);
    this.#unlock(own);
  }

  #lock(batch: Batch): boolean {
    const written = writtenBy(batch);
    const shared = batch.expect.filter(({ key }) => !written.has(key));
    for (const key of written) if (this.#locks.has(key)) return false;
    for (const { key } of shared) if (this.#locks.get(key) === -1) return false;
    for (const key of written) this.#locks.set(key, -1);
    for (const { key } of shared) this.#locks.set(key, (this.#locks.get(key) ?? 0) + 1);
    return true;
  }

  /** Batches that waited for one of its rows go on, in the order of their coming. */
  #unlock(batch: Batch): void {
    const written = writtenBy(batch);
    for (const key of written) this.#locks.delete(key);
    for (const { key } of batch.expect) {
      const holders = this.#locks.get(key) ?? 0;
      if (holders > 1) this.#locks.set(key, holders - 1);
      else if (holders === 1) this.#locks.delete(key);
    }
    const blocked = this.#blocked;
    this.#blocked = [];
    for (const execution of blocked) this.#begin(execution);
  }

  #say(what: string): void {
    this.#options.world.say("db", what);
  }
}

/** A time for which a server is away: now and then so short that hardly anybody notices. */
export function awayMs({ random }: SimWorld, maxMs: number): number {
  return happens(random, 0.3)
    ? between(random, 0, Math.min(20, maxMs))
    : between(random, Math.min(100, maxMs), maxMs);
}

/** Not a renewal: that one may be lost, and nobody is the wiser. */
function isOfLedger({ puts }: Batch): boolean {
  return puts.length === 0 || puts.some(({ key }) => key !== COORDINATOR_LEASE_KEY);
}

function writtenBy({ puts, deletes }: Batch): Set<string> {
  return new Set([...deletes, ...puts.map(({ key }) => key)]);
}

function apply(values: Map<string, Uint8Array>, { puts, deletes }: Batch): void {
  for (const key of deletes) values.delete(key);
  for (const { key, value } of puts) values.set(key, value);
}

function toEntry([key, value]: [string, Uint8Array]): Entry {
  return { key, value };
}

function isSame(found: Uint8Array | undefined, value: Uint8Array | null): boolean {
  if (found === undefined || value === null) return found === undefined && value === null;
  return Buffer.compare(found, value) === 0;
}
