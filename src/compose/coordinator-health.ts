// A coordinator for monitoring: whether it leads or could take over, and the cluster in numbers. One that follows answers as well.
import type { Clock } from "../base/clock.ts";
import { readWorkerNumbers } from "../coordinator/workers/worker-numbers.ts";
import type { WorkerNumbers } from "../coordinator/workers/worker-numbers.ts";
import type { Store } from "../storage/store.ts";
import type { CoordinatorDesk } from "./coordinator-desk.ts";
import type { Monitor, Readiness } from "./monitor.ts";

/** A follower's numbers are read from the store so often at most. */
const NUMBERS_AGE_MS = 1_000;

/** From now on the monitor says what the desk knows. */
export function reportOn(
  monitor: Monitor,
  desk: CoordinatorDesk,
  { store, clock }: { readonly store: Store; readonly clock: Clock },
): void {
  let [knownMs, answer]: [number, Promise<WorkerNumbers> | undefined] = [-Infinity, undefined];
  const numbersOfStore = (): Promise<WorkerNumbers> => {
    // One at a time: a store that does not answer has enough to do.
    if (answer !== undefined && clock.monotonicMs() - knownMs < NUMBERS_AGE_MS) return answer;
    knownMs = Infinity;
    answer = readWorkerNumbers(store).finally(() => (knownMs = clock.monotonicMs()));
    return answer;
  };
  monitor.readiness = () => readinessOf(desk);
  monitor.numbers = async () => {
    const numbers =
      desk.leading?.coordinator.workerNumbers ?? (await numbersOfStore().catch(() => undefined));
    const keys = desk.leading?.coordinator.keyHealth;
    return (
      numbers && {
        ...{ active_workers: numbers.active, all_workers: numbers.all },
        ...(keys && {
          partitions: keys.partitions,
          assignment_epoch: keys.assignmentEpoch,
          oldest_ready_key_ms: keys.oldestReadyMs ?? null,
        }),
      }
    );
  };
}

async function readinessOf(desk: CoordinatorDesk): Promise<Readiness> {
  const reason = await reasonAgainst(desk);
  const { row } = desk.own;
  return {
    ready: reason === undefined,
    ...(reason !== undefined && { reason }),
    role: row.role.toLowerCase(),
    address: row.address,
    leader: desk.leading === undefined ? (desk.leader?.address ?? null) : row.address,
    epoch: row.epoch,
    snapshot_number: row.snapshotNumber,
    rehearsal_ms: row.rehearsalMs,
    rehearsed_at_ms: row.rehearsedAtWallMs,
  };
}

/** Why it neither leads nor could take over; undefined when it does or could. */
async function reasonAgainst({
  own: { row },
  leading,
  hasStore,
}: CoordinatorDesk): Promise<string | undefined> {
  switch (row.role) {
    case "Leader":
      if (leading === undefined) return "its leadership begins or ends";
      return (await leading.coordinator.isLeading()) ? undefined : "the database does not say that it leads";
    case "Following":
      if (!hasStore) return "the database does not answer";
      return row.snapshotNumber === null ? "no leader has published anything yet" : undefined;
    case "Claiming":
      return "it is about to lead";
    case "Fenced":
      return "it has lost its leadership, and ends";
    case "Halted":
      return "the database went back to an older state, and it ends";
  }
}
