// The journal of real executions, written by the program that executes. It does not depend on anything that the cluster believes,
// and no crash takes anything from it.
import type { Outcome } from "../../src/worker/backends/backend.ts";
import type { SimProcess } from "./process.ts";

export interface Execution {
  readonly item: string;
  readonly attempt: number;
  /** The version of the plugin that executes it. */
  readonly version: string;
  readonly worker: SimProcess;
  readonly startedAtMs: number;
  /** When the ledger gave the attempt out; the witness's to say. */
  assignedAtMs: number | undefined;
  /** A candidate executes it; the witness's to say. */
  isTrial: boolean;
  /** Its item runs with nothing beside it: what its server dies of is its own doing; the witness's to say. */
  runsAlone: boolean;
  endedAtMs: number | undefined;
  outcome: Outcome["kind"] | "died" | undefined;
  output: string | undefined;
  /** Its output is more than a worker takes. */
  isTooLarge: boolean;
}

export class Journal {
  readonly #byItem = new Map<string, Execution[]>();
  readonly #byWorker = new Map<SimProcess, readonly Execution[]>();
  #count = 0;

  add(execution: Execution): void {
    this.#count++;
    this.#byWorker.set(execution.worker, [...this.at(execution.worker), execution]);
    const known = this.#byItem.get(execution.item);
    if (known === undefined) this.#byItem.set(execution.item, [execution]);
    else known.push(execution);
  }

  of(item: string): readonly Execution[] {
    return this.#byItem.get(item) ?? [];
  }

  /** Executions of this process that go on now. */
  at(worker: SimProcess): readonly Execution[] {
    const all = this.#byWorker.get(worker) ?? [];
    const open = all.filter(({ endedAtMs }) => endedAtMs === undefined);
    this.#byWorker.set(worker, open);
    return open;
  }

  get count(): number {
    return this.#count;
  }
}
