// Where the charts of a release and of its stages stand, as their rows have it. Rows carry the chart that wrote them, for there are few: an
// older chart's are migrated as they are read, an unknown one's are refused.
import { charts } from "../../../machines/index.ts";
import type { Chart } from "../../../machines/migration.ts";
import type { StageContext } from "../../../machines/release-stage.ts";
import type { ReleaseContext } from "../../../machines/release.ts";
import { assert } from "../../base/assert.ts";
import type { CompiledChart, Row } from "../../runtime/compile.ts";
import { stamp, upgrade } from "../../runtime/snapshot.ts";
import { corrupt } from "../../storage/records.ts";
import type { Store } from "../../storage/store.ts";
import type { Standing } from "./records.ts";

type ReleaseCharts = "release" | "release-stage";

export function standingOf(
  id: ReleaseCharts,
  chart: Pick<CompiledChart<ReleaseContext & StageContext, never, never>, "nameOf">,
  row: Row<unknown>,
): Standing {
  const { version, structure } = stamp(charts[id].machine);
  return { version, structure, state: chart.nameOf(row), context: row.context };
}

/** The row as the current version of its chart has it. Throws store_newer or store_corrupt, naming the key. */
export function rowFrom<Context>(
  id: ReleaseCharts,
  chart: Pick<CompiledChart<Context, never, never>, "indexOf">,
  { version, structure, state, context }: Standing,
  where: { readonly store: Store; readonly key: string },
): Row<Context> {
  const known: Chart = charts[id];
  const found = { chart: id, version, structure, value: state, context };
  const { value, context: current } = upgrade(found, known, { path: where.store.location, key: where.key });
  assert(typeof value === "string", "charts of releases have no states in states");
  const index = chart.indexOf(value) ?? corrupt(where.store, where.key, `no state ${value} in chart ${id}`);
  return { state: index, context: current as Context };
}
