// A machine of the simulated cluster, and the processes that live on it, one after the other. The machine outlives them.
import { RolloutError } from "../../src/base/errors.ts";
import { PowerLossStore } from "../support/power-loss-store.ts";
import type { Network } from "./network.ts";
import type { Machine } from "./process.ts";
import { SimProcess } from "./process.ts";
import type { SimWorld } from "./world.ts";
import { between } from "./world.ts";

export interface NodeOptions {
  readonly world: SimWorld;
  readonly network: Network;
}

interface NodeParts {
  /** How long until another process is there, at least and at most. */
  readonly restartMs: readonly [number, number];
  readonly clockRate?: number;
  /** Told when a process ends without a word. */
  readonly onLost?: () => void;
}

const BROKEN: ReadonlySet<string> = new Set(["store_write_failed", "store_unreachable"]);

export abstract class SimNode {
  readonly machine: Machine;
  readonly #options: NodeOptions;
  readonly #parts: NodeParts;
  #started = 0;
  #latest: SimProcess | undefined;

  constructor(options: NodeOptions, name: string, parts: NodeParts) {
    this.#options = options;
    this.#parts = parts;
    const { clockRate = 1 } = parts;
    this.machine = { name, disk: new PowerLossStore(), wallOffsetMs: 0, clockRate };
  }

  /** The process that was started last, while it lives. */
  get process(): SimProcess | undefined {
    return this.#latest?.isAlive === true ? this.#latest : undefined;
  }

  start(): void {
    const process = new SimProcess(this.#options.world, this.machine, ++this.#started);
    this.#latest = process;
    process.say("starts");
    this.run(process);
  }

  startSoon(): void {
    const { world } = this.#options;
    world.after(between(world.random, ...this.#parts.restartMs), () => {
      if (this.process === undefined) this.start();
    });
  }

  kill(): void {
    if (this.process !== undefined) this.end(this.process, "is killed");
  }

  stopFor(durationMs: number): void {
    const { process } = this;
    if (process === undefined || process.isStopped) return;
    process.stop();
    this.#options.network.stopped(process);
    this.#options.world.after(durationMs, () => process.goOn());
  }

  /** Starts the program of this machine in a new process. */
  protected abstract run(process: SimProcess): void;

  protected isLatest(process: SimProcess): boolean {
    return this.#latest === process;
  }

  /** The process is no more, and its kernel says so to its peers. Another one follows, unless one has already. */
  protected end(process: SimProcess, why: string): void {
    this.#parts.onLost?.();
    this.exit(process, why);
  }

  /** The same, in good order. */
  protected exit(process: SimProcess, why: string): void {
    process.end(why);
    this.#options.network.hangUp(process);
    if (this.isLatest(process)) this.startSoon();
  }

  /** The process is gone with its machine, and nobody is told. Another one follows. */
  protected goDark(process: SimProcess): void {
    this.#parts.onLost?.();
    process.end("loses its power");
    this.#options.network.goDark(process);
    this.startSoon();
  }

  /** A store that cannot say what it wrote ends the process; anything else is a bug. */
  protected died(process: SimProcess, error: unknown): void {
    if (!process.isAlive) return;
    const isExpected = error instanceof RolloutError && BROKEN.has(error.code);
    if (!isExpected) this.#options.world.violate(error);
    this.end(process, "ends: its store is broken");
  }
}
