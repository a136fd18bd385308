// The witness of a fleet: rows of allocations against the machines that there are. It knows the store, as it is and as it is written, and the
// provider's own books, and nothing of the coordinator.
//
// Its rules: a launch leaves behind its row; an allocation is not over while its machine goes on; never more than the fleet may have; the
// budget is claimed before; nobody else's machine is told to end; nothing is left at the end.
import type { AllocationContext } from "../../machines/allocation.ts";
import { allocationKey, allocationRecord } from "../../src/coordinator/fleet/records.ts";
import { decodeRecord, okOrFailure } from "../../src/storage/codec.ts";
import { ALLOCATIONS_PREFIX } from "../../src/storage/keys.ts";
import type { Batch, CommitOutcome, Store } from "../../src/storage/store.ts";
import { DelegatingStore } from "../support/delegating-store.ts";
import type { FleetMix } from "./fleet-settings.ts";
import type { SimMachine } from "./sim-machine.ts";
import type { SimWorld } from "./world.ts";
import { Violation } from "./world.ts";

export interface FleetWitnessOptions {
  readonly world: SimWorld;
  readonly mix: FleetMix;
  /** The rows as they are now. */
  readonly rows: () => Store;
  /** The store lacks something that was answered as synced: what it says of machines is no fault of anybody's. */
  readonly hasGoneBack: () => boolean;
  readonly machine: (id: string) => SimMachine | undefined;
}

interface Seen {
  readonly state: string;
  readonly context: AllocationContext;
  /** Its machine was there before its row: it was adopted. */
  readonly isAdopted: boolean;
}

const HOUR_MS = 3_600_000;
const LEASE_MS = 5 * 60_000;
/** An answer is so old at most: what it says of a machine was true then. */
const OLD_MS = 5_000;
const EVERYTHING = { from: ALLOCATIONS_PREFIX, to: `${ALLOCATIONS_PREFIX}~`, limit: 100_000 };

export class FleetWitness {
  readonly #options: FleetWitnessOptions;
  readonly #seen = new Map<string, Seen>();
  #launched = 0;

  constructor(options: FleetWitnessOptions) {
    this.#options = options;
  }

  /** Machines that were begun. */
  get launched(): number {
    return this.#launched;
  }

  /** Allocations that are not over, by their rows. */
  get live(): number {
    return [...this.#seen.values()].filter((seen) => !isOver(seen)).length;
  }

  /** A leader before may have written rows without hearing that it has. */
  async readAgain(): Promise<void> {
    for (const { key, value } of await this.#options.rows().scan(EVERYTHING))
      this.#seen.set(key.slice(ALLOCATIONS_PREFIX.length), this.#read(key, value));
  }

  /** The store as a coordinator has it. */
  watching(store: Store): Store {
    const committed = (batch: Batch): void => this.#guard(() => this.#committed(batch));
    return new (class extends DelegatingStore {
      override async commit(batch: Batch): Promise<CommitOutcome> {
        const outcome = await super.commit(batch);
        if (outcome.kind === "committed") committed(batch);
        return outcome;
      }
    })(store);
  }

  /** The provider hears of it. */
  launchArrived(id: string): void {
    const { world, rows, hasGoneBack } = this.#options;
    if (hasGoneBack()) return;
    rows()
      .get(allocationKey(id))
      .then(
        (row) => {
          if (row === undefined && !hasGoneBack())
            world.violate(new Violation(`launched without a row: ${id}`));
        },
        (error: unknown) => world.violate(error),
      );
  }

  /** The provider has one machine more. */
  began(alive: readonly SimMachine[]): void {
    this.#launched++;
    const { mix, hasGoneBack } = this.#options;
    const wanted = alive.filter(({ id, isStopped }) => !isStopped && !isOver(this.#seen.get(id)));
    if (wanted.length > mix.settings.max && !hasGoneBack())
      this.#violate(`${wanted.length} machines, and ${mix.settings.max} are the most`);
  }

  stopped({ id, isForeign }: SimMachine): void {
    if (isForeign) this.#violate(`the machine of another run is told to end: ${id}`);
  }

  /** Nothing is there that costs, and no row says that there is. */
  async checkEnd(alive: readonly SimMachine[]): Promise<void> {
    if (alive.length > 0) throw new Violation(`machines are left: ${alive.map(({ id }) => id).join(", ")}`);
    for (const { key, value } of await this.#options.rows().scan(EVERYTHING)) {
      const seen = this.#read(key, value);
      if (!isOver(seen)) throw new Violation(`${key} is ${seen.state}, and nothing is there`);
    }
  }

  #committed({ puts }: Batch): void {
    const fresh: string[] = [];
    for (const { key, value } of puts) {
      if (!key.startsWith(ALLOCATIONS_PREFIX)) continue;
      const id = key.slice(ALLOCATIONS_PREFIX.length);
      const before = this.#seen.get(id);
      const seen = this.#read(key, value);
      this.#seen.set(id, seen);
      if (before === undefined && !seen.isAdopted) fresh.push(id);
      if (isOver(seen) && !isOver(before)) this.#checkOver(id, seen);
    }
    if (fresh.length === 0 || this.#options.hasGoneBack()) return;
    this.#checkMax();
    this.#checkBudget();
  }

  #read(key: string, value: Uint8Array): Seen {
    const { standing } = okOrFailure("disk", decodeRecord(allocationRecord, key, value));
    const id = key.slice(ALLOCATIONS_PREFIX.length);
    const isAdopted = this.#seen.get(id)?.isAdopted ?? this.#options.machine(id) !== undefined;
    return { state: standing.state, context: standing.context as AllocationContext, isAdopted };
  }

  #checkOver(id: string, { state }: Seen): void {
    const { world, machine, hasGoneBack } = this.#options;
    const found = machine(id);
    if (found === undefined || found.state === "ended" || hasGoneBack()) return;
    if (world.nowMs - found.sinceMs > OLD_MS) this.#violate(`${id} is ${state}, and its machine goes on`);
  }

  #checkMax(): void {
    const { max } = this.#options.mix.settings;
    const live = [...this.#seen.values()].filter((seen) => !isOver(seen) && !seen.isAdopted);
    if (live.length > max) this.#violate(`${live.length} allocations, and ${max} are the most`);
  }

  #checkBudget(): void {
    const { maxMachineHours } = this.#options.mix.settings;
    if (maxMachineHours === undefined) return;
    const nowMs = Math.max(...[...this.#seen.values()].map(({ context }) => context.askedAtMs));
    let claimedMs = 0;
    for (const seen of this.#seen.values()) {
      const { bootedAtMs, endedAtMs } = seen.context;
      const ranMs = bootedAtMs === null ? 0 : Math.max(0, (endedAtMs ?? nowMs) - bootedAtMs);
      claimedMs += isOver(seen) || seen.isAdopted ? ranMs : Math.max(LEASE_MS, ranMs);
    }
    if (claimedMs > maxMachineHours * HOUR_MS)
      this.#violate(`${Math.round(claimedMs / 1_000)} s of machines are claimed, and the budget is less`);
  }

  #guard(check: () => void): void {
    try {
      check();
    } catch (error) {
      this.#options.world.violate(error);
    }
  }

  #violate(what: string): void {
    this.#options.world.violate(new Violation(what));
  }
}

function isOver(seen: Seen | undefined): boolean {
  return seen?.state === "Gone" || seen?.state === "Failed";
}
