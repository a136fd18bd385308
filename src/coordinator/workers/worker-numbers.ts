// Workers in two numbers, for monitoring: of a leader from its registry, of one that follows from the store.
import { WORKERS_PREFIX } from "../../storage/keys.ts";
import { recordsUnder } from "../../storage/records.ts";
import type { Store } from "../../storage/store.ts";
import { workerChart, workerStateOf } from "../turn/state.ts";
import { workerRecord } from "./worker-record.ts";

export interface WorkerNumbers {
  /** Heard in time, and neither joining nor gone. */
  readonly active: number;
  /** All that are remembered and have not left, the failed ones too. */
  readonly all: number;
}

const PAGE = 1_000;

export function numbersOf(workers: Iterable<{ readonly chart: { readonly state: number } }>): WorkerNumbers {
  let [active, all] = [0, 0];
  for (const worker of workers) {
    const { lifecycle, liveness } = workerStateOf(worker);
    if (lifecycle === "Gone" || liveness === "Removed") continue;
    all++;
    if (lifecycle !== "Init" && liveness === "Alive") active++;
  }
  return { active, all };
}

/** As the leader has written them last. Throws store_… rows. */
export async function readWorkerNumbers(store: Store): Promise<WorkerNumbers> {
  const workers = [];
  for await (const { record } of recordsUnder(store, WORKERS_PREFIX, workerRecord, PAGE)) {
    const state = workerChart.indexOf(record.state);
    if (state !== undefined) workers.push({ chart: { state } });
  }
  return numbersOf(workers);
}
