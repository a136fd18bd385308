// A cluster that is broken on purpose, at one of the places where its parts meet the world. That the simulation notices each is
// what says that it would notice the like.
import type { CoordinatorState } from "../../src/coordinator/turn/state.ts";
import type { Store } from "../../src/storage/store.ts";
import type { SimProcess } from "./process.ts";
import type { CarryOut } from "./process-store.ts";
import type { Settings } from "./settings.ts";
import type { Tap } from "./sim-transport.ts";
import type { ShadowLedger } from "./shadow-ledger.ts";
import type { World } from "./world.ts";

/** The view that a variant has. */
export interface VariantScope {
  readonly world: World;
  readonly ledger: () => ShadowLedger;
}

export interface Variant {
  readonly name: string;
  /** Makes what it is about likely, so that few seeds are enough. */
  readonly settings?: (drawn: Settings) => Settings;
  /** Between the coordinator and its disk, above the witness. */
  readonly coordinatorStore?: (store: Store, process: SimProcess) => Store;
  /** The coordinator's disk itself, below the witness. */
  readonly carryOut?: CarryOut;
  /** May change what a leader believes, after each of its turns. */
  readonly inspect?: (state: CoordinatorState) => void;
  readonly workerStore?: (store: Store) => Store;
  /** Messages on their way. Made anew for each run. */
  readonly tap?: (scope: VariantScope) => Tap;
  readonly selfFenceTimeoutMs?: number;
  /** Backends begin with what they were given without asking whether they still may. */
  readonly beginsUnasked?: true;
}
