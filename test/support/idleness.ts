// Whether work waits beside somebody who could do it: a worker that is trusted, asks, and has nothing, while an item that it may
// have is ready. For a moment that is so all the time; for seconds it means that the two never find each other.
import { isOfUse, isTrusted, takesWork } from "../../src/coordinator/turn/state.ts";
import { givesOutWork } from "../../src/coordinator/run/run.ts";
import type { CoordinatorState, WorkerRow } from "../../src/coordinator/turn/state.ts";

export interface ReadyItem {
  readonly id: string;
  readonly attempt: number;
  readonly failedBy: string;
  readonly isAlone: boolean;
}

/** A watcher that does not look for so long has missed too much. */
const GAP_MS = 1_000;

export class Idleness {
  readonly #maxMs: number;
  #state: CoordinatorState | undefined;
  #lookedAtMs = -Infinity;
  /** By item and attempt. */
  #readySince = new Map<string, number>();
  #idleSince = new Map<string, number>();

  /** So long is too long. */
  constructor(maxMs: number) {
    this.#maxMs = maxMs;
  }

  /** The violation, if there is one. To be called at least once a second. */
  check(state: CoordinatorState, ready: Iterable<ReadyItem>, nowMs: number): string | undefined {
    if (state !== this.#state || nowMs - this.#lookedAtMs > GAP_MS || !givesOutWork(state)) this.forget();
    this.#state = state;
    this.#lookedAtMs = nowMs;
    const rows = [...state.workers.values()].filter((row) => isTrusted(row));
    // One that tries a release and nothing else may have none of the items that wait.
    const idle = rows.filter(
      (row) => takesWork(state, row) && row.held.size === 0 && state.releases.deskOf(row) !== "candidate",
    );
    this.#idleSince = since(this.#idleSince, idle, ({ id }) => id, nowMs);
    const items = [...ready];
    this.#readySince = since(this.#readySince, items, nameOf, nowMs);
    const isOnlyOne = rows.filter((row) => isOfUse(state, row)).length === 1;
    for (const row of idle.filter(({ id }) => this.#isLong(this.#idleSince.get(id), nowMs))) {
      const item = items.find(
        (one) =>
          this.#isLong(this.#readySince.get(nameOf(one)), nowMs) &&
          (isOnlyOne || one.failedBy !== row.id) &&
          (!one.isAlone || hasNotRefused(row)),
      );
      if (item !== undefined) return `${row.id} asks and has nothing, and ${item.id} waits`;
    }
    return undefined;
  }

  forget(): void {
    this.#readySince.clear();
    this.#idleSince.clear();
  }

  #isLong(sinceMs: number | undefined, nowMs: number): boolean {
    return sinceMs !== undefined && nowMs - sinceMs > this.#maxMs;
  }
}

function since<One>(
  before: ReadonlyMap<string, number>,
  now: readonly One[],
  nameOfOne: (one: One) => string,
  nowMs: number,
): Map<string, number> {
  return new Map(now.map((one) => [nameOfOne(one), before.get(nameOfOne(one)) ?? nowMs]));
}

function nameOf({ id, attempt }: ReadyItem): string {
  return `${id}#${attempt}`;
}

/** It has never handed back what runs alone. */
function hasNotRefused({ refusedAloneAtMs }: WorkerRow): boolean {
  return refusedAloneAtMs === -Infinity;
}
