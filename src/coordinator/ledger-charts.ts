// The charts that have written the ledger. Its rows carry the name of their state and nothing of their chart; one record, the stamp, says
// for all of them which versions of the charts wrote them.
//
// Keeps true: a leader reads rows of its own charts only. Those of predecessors are rewritten as its first commit, together with the stamp;
// a store that any other chart has written is refused before it is claimed.
//
// The chart of keys is stamped with the first key, in a record of a later version: a store without keys stays one that programs lead
// which know of none, and one with keys is refused by them.
import { charts } from "../../machines/index.ts";
import type { Chart, Predecessor } from "../../machines/migration.ts";
import { assert } from "../base/assert.ts";
import { failure } from "../base/errors.ts";
import { stamp } from "../runtime/snapshot.ts";
import { encodeRecord } from "../storage/codec.ts";
import type { RecordType } from "../storage/codec.ts";
import type { Tuple } from "../storage/fields.ts";
import { LEDGER_CHARTS_KEY, RECORD_KIND, RUN_KEY, WORKERS_PREFIX } from "../storage/keys.ts";
import { corrupt, pagesUnder, readRecord, recordOf } from "../storage/records.ts";
import { SegmentCount } from "../storage/segment-count.ts";
import type { Entry, Expectation, Store } from "../storage/store.ts";
import { runRecord } from "./run/run.ts";
import { workerRecord, workersSegment } from "./workers/worker-record.ts";

type ChartStamp = ReturnType<typeof stamp>;

const chartsRecord: RecordType<readonly ChartStamp[]> = {
  kind: RECORD_KIND.ledgerCharts,
  name: "ledger charts",
  version: 2,
  migrations: { 1: (older) => [older.plain(0) as Tuple] },
  encode: (stamps) => [stamps.map(({ chart, version, structure }) => [chart, version, structure])],
  decode: (fields) =>
    fields.tuples(0).map((one) => ({ chart: one.text(0), version: one.text(1), structure: one.text(2) })),
};

/** The same of a ledger without keys. */
const keylessRecord: RecordType<readonly ChartStamp[]> = { ...chartsRecord, version: 1, migrations: {} };

/** The charts whose rows are in the ledger. */
const IDS = ["worker-lifecycle", "worker-trust", "work-item", "run", "key"] as const;
type LedgerChart = (typeof IDS)[number];

/** Stamps of this program, and of those before it whose rows it reads on. */
export interface KnownCharts {
  readonly current: readonly ChartStamp[];
  readonly predecessors: Readonly<Record<LedgerChart, readonly Predecessor[]>>;
}

/** @internal */
export const KNOWN_CHARTS: KnownCharts = {
  current: IDS.map((id) => stamp(charts[id].machine)),
  predecessors: Object.fromEntries(
    IDS.map((id): [string, Chart["predecessors"]] => [id, charts[id].predecessors]),
  ) as KnownCharts["predecessors"],
};

/** The names of states that rows have now, and those that they are to have. */
type Renaming = Readonly<Record<LedgerChart, Predecessor["states"] | undefined>>;

interface Found {
  readonly stamps: readonly ChartStamp[];
  readonly bytes: Uint8Array;
}

/**
 * Whether this program can lead the ledger, as far as charts go: a ledger of its own charts, or a new one, can be read at once; one of
 * predecessors after `adoptLedgerCharts`. Throws store_newer, naming the chart, or store_corrupt. Writes nothing.
 */
export async function checkLedgerCharts(
  store: Store,
  known = KNOWN_CHARTS,
): Promise<"readable" | "to be adopted"> {
  const found = await readStamps(store);
  const renaming = found && renamingFor(store, found.stamps, known);
  return renaming === undefined ? "readable" : "to be adopted";
}

/**
 * For a leader, before it reads rows: stamps a new ledger, and rewrites what a predecessor has written, in one commit. Throws as
 * `checkLedgerCharts` does, and store_write_failed. Writes nothing for one that was deposed: its first batch meets the same conflict.
 */
export async function adoptLedgerCharts(
  store: Store,
  epochRow: Expectation,
  known = KNOWN_CHARTS,
): Promise<void> {
  const found = await readStamps(store);
  const renaming = found && renamingFor(store, found.stamps, known);
  if (found !== undefined && renaming === undefined) return;
  const rows = renaming === undefined ? [] : await renamedRows(store, renaming);
  const outcome = await store.commit({
    puts: [...rows, hasKeys(found) ? keyedStamp(known) : keylessStamp(known)],
    deletes: [],
    expect: [epochRow, { key: LEDGER_CHARTS_KEY, value: found?.bytes ?? null }],
    durability: "sync",
  });
  if (outcome.kind === "unknown") throw outcome.cause;
}

async function readStamps(store: Store): Promise<Found | undefined> {
  const bytes = await store.get(LEDGER_CHARTS_KEY);
  if (bytes === undefined) return undefined;
  return { bytes, stamps: recordOf(store, { key: LEDGER_CHARTS_KEY, value: bytes }, chartsRecord) };
}

function hasKeys(found: Found | undefined): boolean {
  return found?.stamps.some(({ chart }) => chart === "key") === true;
}

/** The stamp of a ledger with keys: its first key comes with it. */
export function keyedStamp({ current } = KNOWN_CHARTS): Entry {
  return { key: LEDGER_CHARTS_KEY, value: encodeRecord(chartsRecord, LEDGER_CHARTS_KEY, current) };
}

function keylessStamp({ current }: KnownCharts): Entry {
  const stamps = current.filter(({ chart }) => chart !== "key");
  return { key: LEDGER_CHARTS_KEY, value: encodeRecord(keylessRecord, LEDGER_CHARTS_KEY, stamps) };
}

/** Undefined when there is nothing to rename. Throws store_newer. */
function renamingFor(store: Store, found: readonly ChartStamp[], known: KnownCharts): Renaming | undefined {
  const renamings = IDS.map((id): [LedgerChart, Predecessor["states"] | undefined] => {
    const own = known.current.find(({ chart }) => chart === id);
    assert(own !== undefined, "every chart of the ledger has a stamp");
    const other = found.find(({ chart }) => chart === id);
    if (isSame(own, other) || (id === "key" && other === undefined)) return [id, undefined];
    const predecessor = known.predecessors[id].find((one) => isSame(one, other));
    return [id, predecessor?.states ?? refuseOther(store, own, other)];
  });
  if (renamings.every(([, states]) => states === undefined)) return undefined;
  return Object.fromEntries(renamings) as Renaming;
}

function isSame(
  one: Pick<ChartStamp, "version" | "structure">,
  other: Pick<ChartStamp, "version" | "structure"> | undefined,
): boolean {
  return other?.version === one.version && other.structure === one.structure;
}

function refuseOther(store: Store, own: ChartStamp, other: ChartStamp | undefined): never {
  const describe = (one: ChartStamp | undefined): string =>
    one === undefined ? "no rows" : `${one.chart} ${one.version} (${one.structure})`;
  throw failure("store_newer", {
    path: store.location,
    key: LEDGER_CHARTS_KEY,
    found: describe(other),
    known: describe(own),
  });
}

const PAGE = 1_000;

/**
 * Rows that carry the name of a state: of workers, and of the run. Those of items do not, their key says it: what becomes of an item's row is
 * for its record's own versions.
 */
async function renamedRows(store: Store, renaming: Renaming): Promise<Entry[]> {
  const ofKeys = Object.entries(renaming.key ?? {});
  assert(
    ofKeys.every(([before, after]) => before === after),
    "states of keys have the names that they had, so their rows stay as they are",
  );
  const rows: Entry[] = [];
  const count = await SegmentCount.load(store, workersSegment);
  for await (const page of pagesUnder(store, WORKERS_PREFIX, PAGE))
    for (const { key, value } of page) {
      const record = recordOf(store, { key, value }, workerRecord);
      const state = renamed(store, key, record.state, renaming["worker-lifecycle"]);
      const trust = renamed(store, key, record.trust, renaming["worker-trust"]);
      if (state === record.state && trust === record.trust) continue;
      const after = encodeRecord(workerRecord, key, { ...record, state, trust });
      count.replaced(value, after);
      rows.push({ key, value: after });
    }
  if (rows.length > 0) rows.push(count.entry());
  const run = await readRecord(store, RUN_KEY, runRecord);
  if (run === undefined) return rows;
  const state = renamed(store, RUN_KEY, run.state, renaming.run);
  return [...rows, { key: RUN_KEY, value: encodeRecord(runRecord, RUN_KEY, { ...run, state }) }];
}

function renamed(
  store: Store,
  key: string,
  state: string,
  states: Predecessor["states"] | undefined,
): string {
  if (states === undefined) return state;
  return states[state] ?? corrupt(store, key, `no state ${state} in the chart that has written it`);
}
