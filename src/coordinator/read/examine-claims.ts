// Where the items stand that a worker says it has, or has finished, and that this leader knows nothing of, read from the store.
import { ITEMS_PREFIX } from "../../storage/keys.ts";
import type { Store } from "../../storage/store.ts";
import { nextKey } from "../../storage/store.ts";
import type { Claim } from "../turn/session-frame.ts";
import { findItem, findReported } from "./examine-reports.ts";
import type { Finding } from "./examine-reports.ts";
import type { LateReport } from "../ledger/ledger.ts";
import { isPlace, placeOf, priorityOf, sequenceOf } from "../ledger/place.ts";
import type { Place } from "../ledger/place.ts";

export interface FoundClaims {
  /** In the order of the claims. */
  readonly findings: readonly Finding[];
  /** By priority: the items that were never given out, from the first on, up to the last that is claimed. */
  readonly lanes: ReadonlyMap<number, readonly Place[]>;
}

export interface FoundReport {
  readonly finding: Finding;
  /** When the item was never given out: those of its priority that were not either, from the first on, up to it. */
  readonly lane: readonly Place[];
}

/**
 * So many items of one priority are looked through at most. What a loss of power takes is the last moments of a leader, so
 * more cannot be missing; what is claimed from behind them is executed again.
 */
const LANE_MAX = 16_384;
/** Rows that are read at once: few, because their payloads come with them and may have 16 MiB each. */
const STEP = 16;

/** Throws store_corrupt, naming the key. */
export async function examineClaims(
  store: Store,
  claims: readonly Claim[],
  cursors: ReadonlyMap<number, number>,
): Promise<FoundClaims> {
  const findings: Finding[] = [];
  const last = new Map<number, Place>();
  for (const { id } of claims) {
    const finding = await findItem(store, id);
    findings.push(finding);
    if (finding.kind !== "fresh") continue;
    const priority = priorityOf(finding.place);
    if (
      sequenceOf(finding.place) >= (cursors.get(priority) ?? 0) &&
      finding.place > (last.get(priority) ?? "")
    )
      last.set(priority, finding.place);
  }
  const lanes = new Map<number, readonly Place[]>();
  for (const [priority, place] of last)
    lanes.set(priority, await readLane(store, placeOf(priority, cursors.get(priority) ?? 0), place));
  return { findings, lanes };
}

/** The same of one result. `cursors`: of the priorities of which a leader may have forgotten what it gave out. */
export async function examineReport(
  store: Store,
  late: LateReport,
  cursors: ReadonlyMap<number, number>,
): Promise<FoundReport> {
  const finding = await findReported(store, late);
  if (finding.kind !== "fresh") return { finding, lane: [] };
  const priority = priorityOf(finding.place);
  const cursor = cursors.get(priority);
  if (cursor === undefined || sequenceOf(finding.place) < cursor) return { finding, lane: [] };
  return { finding, lane: await readLane(store, placeOf(priority, cursor), finding.place) };
}

/** Both ends included. */
async function readLane(store: Store, from: Place, last: Place): Promise<Place[]> {
  const places: Place[] = [];
  const to = nextKey(`${ITEMS_PREFIX}${last}`);
  for (let next = `${ITEMS_PREFIX}${from}`; places.length < LANE_MAX;) {
    const page = await store.scan({ from: next, to, limit: STEP });
    places.push(...page.map(({ key }) => key.slice(ITEMS_PREFIX.length)).filter(isPlace));
    const end = page.at(-1);
    if (end === undefined || page.length < STEP) break;
    next = nextKey(end.key);
  }
  return places;
}
