// A cluster that is broken on purpose, at one of the places where its parts meet the world. That the simulation notices each is
// what says that it would notice the like.
import type { LeaseTiming } from "../../src/coordinator/lead/elector-storage.ts";
import type { LeaderElector } from "../../src/coordinator/lead/elector.ts";
import type { CoordinatorState } from "../../src/coordinator/turn/state.ts";
import type { CheckpointStore } from "../../src/worker/partitions/checkpoint-store.ts";
import type { Store } from "../../src/storage/store.ts";
import type { FleetSettings } from "../../src/config/fleet.ts";
import type { FleetPorts } from "../../src/coordinator/fleet/fleets.ts";
import type { SimProcess } from "./process.ts";
import type { SimFleet } from "./sim-fleet.ts";
import type { AfterLoss } from "./database-way.ts";
import type { CarriedOut } from "./process-store.ts";
import type { Settings } from "./settings.ts";
import type { Tap } from "./sim-transport.ts";
import type { ShadowLedger } from "./shadow-ledger.ts";
import type { SimWorld } from "./world.ts";

/** The view that a variant has. */
export interface VariantScope {
  readonly world: SimWorld;
  readonly ledger: () => ShadowLedger;
}

export interface Variant {
  readonly name: string;
  /** The violation that is to notice it, where another may come first. */
  readonly noticedAs?: RegExp;
  /** The first seed that is tried, where those before it are known to notice nothing: 1 unless said. */
  readonly from?: number;
  /** Makes what it is about likely, so that few seeds are enough. */
  readonly settings?: (drawn: Settings) => Settings;
  /** Between the coordinator and its disk, above the witness. */
  readonly coordinatorStore?: (store: Store, process: SimProcess) => Store;
  /** The ledger's disk itself, below the witness. */
  readonly carriedOut?: CarriedOut;
  /** How long candidates and leaders of a shared store wait. */
  readonly timing?: LeaseTiming;
  /** The elector as its coordinator sees it. */
  readonly elector?: (elector: LeaderElector) => LeaderElector;
  /** Hosts keep nothing of what they have seen of their store. */
  readonly forgets?: true;
  /** The fate of a process that was answered something that its database has lost. */
  readonly afterLoss?: AfterLoss;
  /** May change what a leader believes, after each of its turns. */
  readonly inspect?: (state: CoordinatorState) => void;
  readonly workerStore?: (store: Store) => Store;
  /** Messages on their way. Made anew for each run. */
  readonly tap?: (scope: VariantScope) => Tap;
  /** The fleets of a coordinator, and their provider. */
  readonly fleets?: (ports: FleetPorts, fleet: SimFleet) => FleetPorts;
  /** The settings of the fleet, as coordinators have them. */
  readonly fleetSettings?: (settings: FleetSettings, fleet: SimFleet) => FleetSettings;
  /** The place of partition checkpoints, as workers see it. */
  readonly checkpointStore?: (store: CheckpointStore) => CheckpointStore;
  readonly selfFenceTimeoutMs?: number;
  /** Backends begin with what they were given without asking whether they still may. */
  readonly beginsUnasked?: true;
}
