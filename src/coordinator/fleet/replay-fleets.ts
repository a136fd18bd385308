// The fleets of a new leader, from its settings and the store. A fleet that the file does not have any more is one that is to have no
// allocations.
import { charts } from "../../../machines/index.ts";
import type { AllocationContext } from "../../../machines/allocation.ts";
import type { FleetContext } from "../../../machines/fleet.ts";
import type { FleetSettings } from "../../config/fleet.ts";
import { rowFrom } from "../../runtime/standing.ts";
import { ALLOCATIONS_PREFIX, FLEETS_PREFIX } from "../../storage/keys.ts";
import { recordsUnder } from "../../storage/records.ts";
import type { Store } from "../../storage/store.ts";
import { allocationChart, restored } from "./allocation.ts";
import type { Allocation } from "./allocation.ts";
import { fleetChart, newBooks, openFleet } from "./fleet.ts";
import type { Fleet, FleetBooks } from "./fleet.ts";
import { Fleets } from "./fleets.ts";
import type { FleetsOptions } from "./fleets.ts";
import { allocationRecord, fleetRecord } from "./records.ts";

const PAGE = 500;

/** Throws store_corrupt or store_newer, naming the key. */
export async function replayFleets(
  store: Store,
  settings: readonly FleetSettings[],
  options: FleetsOptions,
): Promise<Fleets> {
  const books = new Map<string, FleetBooks>();
  for await (const { key, record } of recordsUnder(store, FLEETS_PREFIX, fleetRecord, PAGE)) {
    const { standing, ...rest } = record;
    const row = rowFrom<FleetContext>(charts.fleet, fleetChart, standing, { store, key });
    books.set(key.slice(FLEETS_PREFIX.length), { ...rest, row });
  }
  const allocations = await readAllocations(store);
  const configured = settings.map((each) =>
    openFleet(each, books.get(each.name) ?? newBooks(), allocations.get(each.name) ?? [], true),
  );
  const known = new Set(settings.map(({ name }) => name));
  // One that comes back to the file goes on with its books.
  const gone = [...new Set([...books.keys(), ...allocations.keys()])].filter((name) => !known.has(name));
  const removed = gone.map((name): Fleet =>
    openFleet(nothingOf(name), books.get(name) ?? newBooks(), allocations.get(name) ?? [], false),
  );
  return new Fleets([...configured, ...removed], options);
}

async function readAllocations(store: Store): Promise<Map<string, Allocation[]>> {
  const allocations = new Map<string, Allocation[]>();
  for await (const { key, record } of recordsUnder(store, ALLOCATIONS_PREFIX, allocationRecord, PAGE)) {
    const { standing, fleet, ...rest } = record;
    const id = key.slice(ALLOCATIONS_PREFIX.length);
    const row = rowFrom<AllocationContext>(charts.allocation, allocationChart, standing, { store, key });
    const all = allocations.get(fleet) ?? [];
    all.push(restored({ id, fleet, row, ...rest }));
    allocations.set(fleet, all);
  }
  // Ids go by a wall clock, which may have been set back.
  for (const all of allocations.values())
    all.sort((one, other) => one.row.context.askedAtMs - other.row.context.askedAtMs);
  return allocations;
}

/** Settings of a fleet that is to have nobody. */
function nothingOf(name: string): FleetSettings {
  return {
    ...{ name, slots: 1, min: 0, max: 0, pollIntervalMs: 30_000, startTimeoutMs: 300_000 },
    ...{ queueTimeoutMs: undefined, idleTimeoutMs: 0, finishWithinMs: 0, maxPending: 1 },
    ...{
      maxLifetimeMs: undefined,
      orphanTimeoutMs: 1_800_000,
      pricePerHour: undefined,
      maxMachineHours: undefined,
    },
    ...{ maxCost: undefined, maxCostPerHour: undefined, stopAtMs: undefined, advertise: undefined },
    provider: { kind: "exec", command: ["false"], timeoutMs: 1_000, directory: "/" },
  };
}
