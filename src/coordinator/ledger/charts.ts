// Rows of the ledger carry the name of their state and nothing of their chart; one record says for all of them which
// versions of the charts wrote them. A leader whose charts are others does not read the rows: it would misread them.
import { charts } from "../../../machines/index.ts";
import { failure } from "../../base/errors.ts";
import { structureHash } from "../../runtime/chart-structure.ts";
import { encodeRecord } from "../../storage/codec.ts";
import type { RecordType } from "../../storage/codec.ts";
import { LEDGER_CHARTS_KEY, RECORD_KIND } from "../../storage/keys.ts";
import { readRecord } from "../../storage/records.ts";
import type { Expectation, Store } from "../../storage/store.ts";

interface ChartStamp {
  readonly id: string;
  readonly version: string;
  readonly structure: string;
}

const chartsRecord: RecordType<readonly ChartStamp[]> = {
  kind: RECORD_KIND.ledgerCharts,
  name: "ledger charts",
  version: 1,
  migrations: {},
  encode: (stamps) => [stamps.map(({ id, version, structure }) => [id, version, structure])],
  decode: (fields) =>
    fields
      .tuples(0)
      .map((stamp) => ({ id: stamp.text(0), version: stamp.text(1), structure: stamp.text(2) })),
};

/** The charts whose rows are in the ledger. */
const LEDGER_CHARTS = ["worker-lifecycle", "worker-trust", "work-item", "run"] as const;

/** Stamps a new ledger, and refuses one that other charts wrote: store_newer, naming the chart. */
export async function checkLedgerCharts(store: Store, epochRow: Expectation): Promise<void> {
  const current = LEDGER_CHARTS.map((id) => ({
    id,
    version: charts[id].machine.version ?? "",
    structure: structureHash(charts[id].machine),
  }));
  const found = await readRecord(store, LEDGER_CHARTS_KEY, chartsRecord);
  if (found !== undefined) {
    for (const chart of current) refuseOther(store, chart, found);
    return;
  }
  const value = encodeRecord(chartsRecord, LEDGER_CHARTS_KEY, current);
  const outcome = await store.commit({
    puts: [{ key: LEDGER_CHARTS_KEY, value }],
    deletes: [],
    expect: [epochRow, { key: LEDGER_CHARTS_KEY, value: null }],
    durability: "sync",
  });
  // On a conflict somebody else leads already and stamps its own: this leader's first batch will meet the same conflict.
  if (outcome.kind === "unknown") throw outcome.cause;
}

function refuseOther(store: Store, chart: ChartStamp, found: readonly ChartStamp[]): void {
  const other = found.find(({ id }) => id === chart.id);
  if (other?.version === chart.version && other.structure === chart.structure) return;
  const describe = (stamp: ChartStamp | undefined): string =>
    stamp === undefined ? "no rows" : `${stamp.id} ${stamp.version} (${stamp.structure})`;
  throw failure("store_newer", {
    path: store.location,
    key: LEDGER_CHARTS_KEY,
    found: describe(other),
    known: describe(chart),
  });
}
