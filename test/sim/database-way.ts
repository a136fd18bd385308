// The way from a process to the database that coordinators share, and its weather: messages that are slow, connections that break, and
// machines that are cut off.
import type { CopyWeather, Database } from "./database.ts";
import type { SimProcess } from "./process.ts";
import type { SimWorld } from "./world.ts";
import { between, happens } from "./world.ts";

export interface DatabaseWeather extends CopyWeather {
  /** The longest that an ordinary sync takes, its standby included. */
  syncMaxMs: number;
  /** The longest that an ordinary message takes. */
  delayMaxMs: number;
  /** The chance that a message, or a batch, takes up to two seconds. */
  slowChance: number;
  /** The chance that the connection breaks under a batch: before it is there, or before its answer is. */
  breakChance: number;
  /** The longest that a server is away that has died. */
  awayMaxMs: number;
}

/** Machines that do not reach the database. */
export class Cuts {
  readonly #cut = new Set<string>();
  readonly #waiting: { readonly machine: string; readonly run: () => void }[] = [];

  cut(machine: string): void {
    this.#cut.add(machine);
  }

  mend(machine: string): void {
    this.#cut.delete(machine);
    const due = this.#waiting.filter((waiting) => waiting.machine === machine);
    for (const { run } of due) run();
    for (const waiting of due) this.#waiting.splice(this.#waiting.indexOf(waiting), 1);
  }

  has(machine: string): boolean {
    return this.#cut.has(machine);
  }

  /** Runs now, or when the way is free again. */
  pass(machine: string, run: () => void): void {
    if (this.has(machine)) this.#waiting.push({ machine, run });
    else run();
  }
}

export interface DatabaseWay {
  readonly world: SimWorld;
  readonly database: Database;
  readonly cuts: Cuts;
  readonly weather: DatabaseWeather;
  readonly process: SimProcess;
  readonly afterLoss: AfterLoss;
}

/**
 * The fate of a process that was answered something that the database has lost: it writes nothing that rests on it. Broken ones notice nothing,
 * or write nothing at all any more.
 */
export type AfterLoss = "doubts" | "trusts blindly" | "is silent";

export const SLOW_MAX_MS = 2_000;
/** When a process gives up what it hears nothing of, on a way that is cut. */
export const PATIENCE_MS = [1_000, 4_000] as const;
/** When it notices that the server has died. */
export const NOTICED_MAX_MS = 300;

export function delayMs(options: DatabaseWay): number {
  const { process, weather } = options;
  return isSlow(options)
    ? between(process.random, 0, SLOW_MAX_MS)
    : between(process.random, 0.02, weather.delayMaxMs);
}

export function isSlow({ process, weather }: DatabaseWay): boolean {
  return happens(process.random, weather.slowChance);
}
