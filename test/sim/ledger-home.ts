// Where the ledger of a simulated cluster is: on the disk of the one machine that leads, or in a database that several coordinators
// share. Each process has it as a store of its own.
import type { IncarnationId } from "../../src/base/ids.ts";
import { StorageElector } from "../../src/coordinator/lead/elector-storage.ts";
import type { LeaseTiming } from "../../src/coordinator/lead/elector-storage.ts";
import type { LeaderElector } from "../../src/coordinator/lead/elector.ts";
import { decodeRecord, okOrFailure } from "../../src/storage/codec.ts";
import { COORDINATOR_LEASE_KEY, EPOCH_KEY } from "../../src/storage/keys.ts";
import type { Batch, CommitOutcome, Entry, Store } from "../../src/storage/store.ts";
import { DelegatingStore } from "../support/delegating-store.ts";
import { epochRow, leaseRow } from "../support/ledger-rows.ts";
import type { LeaseState } from "./lease-history.ts";
import { LeaseHistory, RecordedLease } from "./lease-history.ts";
import { RecordingWatchdog } from "../support/recording-watchdog.ts";
import { Database } from "./database.ts";
import { DatabaseStore } from "./database-store.ts";
import { Cuts } from "./database-way.ts";
import type { AfterLoss, DatabaseWeather } from "./database-way.ts";
import type { Machine, SimProcess } from "./process.ts";
import { ProcessStore } from "./process-store.ts";
import type { CarriedOut, CommitWitness, DiskWeather } from "./process-store.ts";
import { logOf } from "./voice.ts";
import type { Witness } from "./witness.ts";
import type { SimWorld } from "./world.ts";

/** The ledger as one process has it. */
export interface OpenLedger {
  readonly store: Store;
  /** Nothing is on its way, and nothing that was answered is lost: what the process knows can be compared with what there is. */
  isSettled(): boolean;
  /** Undefined: holding the store is enough. `store` is what the process makes of the one above. */
  elector(store: Store, incarnation: IncarnationId): LeaderElector | undefined;
}

export interface LedgerHome {
  readonly isShared: boolean;
  open(process: SimProcess): OpenLedger;
  /** The rows as they are now. */
  rows(machine: Machine): Store;
}

/** The disk of the machine that the process runs on. */
export function ownDisk(
  world: SimWorld,
  weather: DiskWeather,
  parts: { readonly witness: CommitWitness; readonly carriedOut: CarriedOut },
): LedgerHome {
  return {
    isShared: false,
    open: (process) => {
      const store = new ProcessStore(world, process, weather, parts.witness, parts.carriedOut);
      return { store, isSettled: () => store.isIdle, elector: () => undefined };
    },
    rows: ({ disk }) => disk,
  };
}

export interface SharedDatabaseOptions {
  readonly world: SimWorld;
  readonly weather: DatabaseWeather;
  readonly witness: Witness;
  readonly carriedOut: CarriedOut;
  readonly timing: LeaseTiming;
  readonly afterLoss: AfterLoss;
}

/** A database, and everybody's way to it. */
export class SharedDatabase implements LedgerHome {
  readonly isShared = true;
  readonly database: Database;
  readonly cuts = new Cuts();
  readonly weather: DatabaseWeather;
  readonly history = new LeaseHistory();
  readonly #options: SharedDatabaseOptions;
  readonly #electors = new Map<SimProcess, LeaderElector>();

  constructor(options: SharedDatabaseOptions) {
    this.#options = options;
    const { world, witness, carriedOut, weather } = options;
    this.weather = weather;
    this.database = new Database({
      ...{ world, carriedOut, weather },
      witness: {
        seen: (process, batch, isDurable) =>
          witness.committed(process, batch, { kind: "committed" }, isDurable),
        caughtUp: () => witness.caughtUp(),
        restored: (left, how) => {
          witness.restored(left, how);
          this.history.restored(leaseStateOf(left.rows));
        },
      },
    });
  }

  open(process: SimProcess): OpenLedger {
    const { world, weather, afterLoss } = this.#options;
    const { database, cuts } = this;
    const store = new DatabaseStore({ world, database, cuts, weather, process, afterLoss });
    process.onDeath(() => this.#electors.delete(process));
    return {
      store: new FencedWrites(store, this.history),
      // One that may not act any more decides, and nothing of it is written.
      isSettled: () =>
        store.isIdle &&
        this.#electors.get(process)?.mayAct() === true &&
        (afterLoss === "trusts blindly" || database.lossesOf(process) === 0),
      elector: (seen, incarnation) => this.#elector(process, seen, incarnation),
    };
  }

  rows(): Store {
    return this.database.rows;
  }

  /** Processes that may act as leaders, by their own reckoning. */
  believers(): SimProcess[] {
    return [...this.#electors].flatMap(([process, elector]) => (elector.mayAct() ? process : []));
  }

  #elector(process: SimProcess, store: Store, incarnation: IncarnationId): LeaderElector {
    const lease = new RecordedLease(this.history, store, incarnation);
    const { clock } = process;
    const { timing } = this.#options;
    // Nothing in a simulated process keeps its main thread: a second one would see nothing that the first does not.
    const watchdog = new RecordingWatchdog();
    const elector = new StorageElector({ lease, timing, clock, log: logOf(process), watchdog });
    this.#electors.set(process, elector);
    return elector;
  }
}

function leaseStateOf(entries: readonly Entry[]): LeaseState {
  const valueOf = (key: string): Uint8Array | undefined => entries.find((entry) => entry.key === key)?.value;
  const [lease, epoch] = [valueOf(COORDINATOR_LEASE_KEY), valueOf(EPOCH_KEY)];
  const row = lease && okOrFailure("sim", decodeRecord(leaseRow, COORDINATOR_LEASE_KEY, lease));
  return {
    lease: row === undefined ? null : { epoch: row[0], holder: row[1], renewals: row[2] },
    epoch: epoch === undefined ? -1 : okOrFailure("sim", decodeRecord(epochRow, EPOCH_KEY, epoch)),
  };
}

/** Writes down which batches of leaders the database takes, and which it refuses. */
class FencedWrites extends DelegatingStore {
  readonly #history: LeaseHistory;

  constructor(inner: Store, history: LeaseHistory) {
    super(inner);
    this.#history = history;
  }

  override commit(batch: Batch): Promise<CommitOutcome> {
    const expected = batch.expect.find(({ key }) => key === EPOCH_KEY)?.value;
    const isClaim = batch.puts.some(({ key }) => key === EPOCH_KEY);
    if (expected === undefined || expected === null || isClaim) return super.commit(batch);
    const epoch = okOrFailure("sim", decodeRecord(epochRow, EPOCH_KEY, expected));
    return this.#history.write(epoch, () => super.commit(batch));
  }
}
