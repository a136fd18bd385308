// A process in a simulated world: it runs only in moments of the world, not at all while it is stopped, and never again when
// it is dead. Its clock starts where it likes and may run fast or slow; the wall clock is its machine's.
import type { Clock, Timer } from "../../src/base/clock.ts";
import type { Random } from "../../src/base/random.ts";
import type { PowerLossStore } from "../support/power-loss-store.ts";
import type { SimWorld } from "./world.ts";

/** The parts that outlive a process: the disk, and the wall clock. */
export interface Machine {
  readonly name: string;
  disk: PowerLossStore;
  /** Against the true time. */
  wallOffsetMs: number;
  /** Against the true time; 1 is right. */
  clockRate: number;
}

const EPOCH_MS = Date.UTC(2026, 0, 1);
/** Where monotonic times begin: far from the wall's and from each other's, so that mixing them up shows. */
const ORIGIN_MAX_MS = 10_000_000;

export class SimProcess {
  readonly machine: Machine;
  /** `w1.3`: the third process on this machine. */
  readonly name: string;
  readonly random: Random;
  readonly clock: Clock;
  readonly startedAtMs: number;
  readonly #world: SimWorld;
  #isAlive = true;
  #stopped = false;
  /** Arrivals while it was stopped, in order. */
  #waiting: (() => void)[] = [];
  readonly #onDeath: (() => void)[] = [];

  constructor(world: SimWorld, machine: Machine, number: number) {
    this.#world = world;
    this.machine = machine;
    this.name = `${machine.name}.${number}`;
    this.random = world.newRandom();
    const originMs = Math.floor(world.random.unit() * ORIGIN_MAX_MS);
    const startedAtMs = (this.startedAtMs = world.nowMs);
    const rate = machine.clockRate;
    this.clock = {
      monotonicMs: () => originMs + (world.nowMs - startedAtMs) * rate,
      wallMs: () => EPOCH_MS + world.nowMs + machine.wallOffsetMs,
      after: (delayMs, callback) => this.after(Math.max(0, delayMs) / rate, callback),
      nextTurn: (callback) => void this.after(0, callback),
    };
  }

  get isAlive(): boolean {
    return this.#isAlive;
  }

  get isStopped(): boolean {
    return this.#stopped;
  }

  /** Runs `callback` in this process, in so many true milliseconds or when it goes on; never when it dies before. */
  after(delayMs: number, callback: () => void): Timer {
    let isCancelled = false;
    const run = (): void => {
      if (!isCancelled) callback();
    };
    const timer = this.#world.after(delayMs, () => this.receive(run));
    const cancel = (): void => {
      isCancelled = true;
      timer.cancel();
    };
    return { cancel };
  }

  /** Runs `callback` now, or when the process goes on; never when it is dead. To be called in a moment of the world. */
  receive(callback: () => void): void {
    if (!this.#isAlive) return;
    if (this.#stopped) this.#waiting.push(callback);
    else callback();
  }

  /** Runs `callback` when this process ends, in whatever way. */
  onDeath(callback: () => void): void {
    if (this.#isAlive) this.#onDeath.push(callback);
  }

  /** As by SIGSTOP. */
  stop(): void {
    this.#stopped = true;
    this.say("is stopped");
  }

  /** As by SIGCONT: all that it missed comes at once. */
  goOn(): void {
    if (!this.#stopped) return;
    this.#stopped = false;
    this.say(`goes on; ${this.#waiting.length} things waited`);
    for (const run of this.#waiting.splice(0)) this.after(0, run);
  }

  end(why: string): void {
    if (!this.#isAlive) return;
    this.#isAlive = false;
    this.#waiting = [];
    this.say(why);
    for (const callback of this.#onDeath.splice(0)) callback();
  }

  say(what: string): void {
    this.#world.say(this.name, what);
  }
}
