// Where the charts of a fleet and of its allocations stand, as their rows have it. Rows carry the chart that wrote them, for there are few: an
// older chart's are migrated as they are read, an unknown one's are refused.
import type { AllocationContext } from "../../../machines/allocation.ts";
import type { FleetContext } from "../../../machines/fleet.ts";
import { charts } from "../../../machines/index.ts";
import type { Chart } from "../../../machines/migration.ts";
import { assert } from "../../base/assert.ts";
import type { CompiledChart, Row } from "../../runtime/compile.ts";
import { stamp, upgrade } from "../../runtime/snapshot.ts";
import { corrupt } from "../../storage/records.ts";
import type { Store } from "../../storage/store.ts";
import { allocationChart } from "./allocation.ts";
import { fleetChart } from "./fleet.ts";
import type { Standing } from "./records.ts";

export function standingOfFleet(row: Row<FleetContext>): Standing {
  const { version, structure } = stamp(charts.fleet.machine);
  return { version, structure, state: fleetChart.nameOf(row), context: row.context };
}

export function standingOfAllocation(row: Row<AllocationContext>): Standing {
  const { version, structure } = stamp(charts.allocation.machine);
  return { version, structure, state: allocationChart.nameOf(row), context: row.context };
}

/** The row as the current version of its chart has it. Throws store_newer or store_corrupt, naming the key. */
export function rowFrom<Context>(
  id: "fleet" | "allocation",
  chart: Pick<CompiledChart<Context, never, never>, "indexOf">,
  { version, structure, state, context }: Standing,
  { store, key }: { readonly store: Store; readonly key: string },
): Row<Context> {
  const known: Chart = charts[id];
  const found = { chart: id, version, structure, value: state, context };
  const { value, context: current } = upgrade(found, known, { path: store.location, key });
  assert(typeof value === "string", "charts of fleets have no states in states");
  const index = chart.indexOf(value) ?? corrupt(store, key, `no state ${value} in chart ${id}`);
  return { state: index, context: current as Context };
}
