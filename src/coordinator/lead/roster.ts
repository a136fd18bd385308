// The coordinators that there are, as one of them sees them: by their rows, each with when it last changed, on this process's own clock.
// From it follows which of them is the first to take over, and whether enough of them are there for an election. Both are about who
// tries; that no two lead is the lease's and the epoch row's alone.
import type { Candidacy } from "../../../machines/coordinator-role.ts";
import type { Clock } from "../../base/clock.ts";
import { isUlid } from "../../base/ids.ts";
import type { IncarnationId } from "../../base/ids.ts";
import { decodeRecord } from "../../storage/codec.ts";
import { COORDINATORS_PREFIX } from "../../storage/keys.ts";
import { pagesUnder } from "../../storage/records.ts";
import type { Entry, Store } from "../../storage/store.ts";
import type { LeaseTiming } from "./elector-storage.ts";
import { presenceRecord } from "./presence.ts";
import type { PresenceRow } from "./presence.ts";

export interface Member {
  readonly incarnation: IncarnationId;
  readonly row: PresenceRow;
  /** Whether its row has changed within the time after which a leader is given up. */
  readonly isPresent: boolean;
}

interface Sighting {
  readonly entry: Entry;
  readonly row: PresenceRow;
  /** Monotonic; undefined while the row is as it was first seen, which may have been long after it was written. */
  readonly changedMs: number | undefined;
  readonly sinceMs: number;
}

export interface Standing {
  readonly weight: number;
  /** It has just made room for another. */
  readonly isWilling: boolean;
  readonly quorum: "off" | "majority";
}

export interface RosterOptions {
  readonly store: Store;
  /** This process, which is not among those that it looks at. */
  readonly incarnation: IncarnationId;
  readonly address: string;
  readonly timing: Pick<LeaseTiming, "ttlMs" | "renewalMs">;
  readonly clock: Clock;
}

const PAGE = 1_000;
/** Far more than anybody runs, with what their earlier processes left. */
const ROWS_MAX = 10_000;
/** A coordinator that lives has written in so many heartbeats. */
const SETTLED_HEARTBEATS = 1.5;

export class Roster {
  readonly #options: RosterOptions;
  #sightings: ReadonlyMap<IncarnationId, Sighting> = new Map();
  /** Since when the store was read each time; undefined when it was not, the last time. Monotonic. */
  #readableSinceMs: number | undefined;
  /** When it was last read. Monotonic. */
  #readMs = -Infinity;

  constructor(options: RosterOptions) {
    this.#options = options;
  }

  /** Reads all rows; the others under the prefix are returned. Undefined when the store cannot be read now. Never rejects. */
  async look(): Promise<readonly Entry[] | undefined> {
    const { store, clock, incarnation: own } = this.#options;
    const entries = await allRows(store).catch(() => undefined);
    if (entries === undefined) {
      this.#readableSinceMs = undefined;
      return undefined;
    }
    const nowMs = clock.monotonicMs();
    this.#readableSinceMs ??= nowMs;
    this.#readMs = nowMs;
    const found = new Map<IncarnationId, Sighting>();
    for (const entry of entries) {
      const incarnation = entry.key.slice(COORDINATORS_PREFIX.length);
      if (!isUlid(incarnation) || incarnation === own) continue;
      const sighting = sightingOf(entry, this.#sightings.get(incarnation as IncarnationId), nowMs);
      if (sighting !== undefined) found.set(incarnation as IncarnationId, sighting);
    }
    this.#sightings = found;
    return entries.filter(({ key }) => !isUlid(key.slice(COORDINATORS_PREFIX.length)));
  }

  /** Whether the store was read within the time after which a leader is given up. */
  get isReadable(): boolean {
    return this.#options.clock.monotonicMs() - this.#readMs < this.#options.timing.ttlMs;
  }

  /** The others, each host's latest process: one that is there, whatever its id says; a clock that was set back makes a later one smaller. */
  get others(): Member[] {
    const latest = new Map<string, [IncarnationId, Sighting]>();
    for (const [incarnation, sighting] of this.#sightings) {
      const { address } = sighting.row;
      if (address !== "" && address === this.#options.address) continue;
      const known = latest.get(address || incarnation);
      if (known === undefined || this.#isLater([incarnation, sighting], known))
        latest.set(address || incarnation, [incarnation, sighting]);
    }
    return [...latest.values()].map(([incarnation, sighting]) => ({
      incarnation,
      row: sighting.row,
      isPresent: this.#isPresent(sighting),
    }));
  }

  /** Rows of earlier processes at this one's address, which are gone: two do not listen at one. */
  ownEarlier(): Entry[] {
    const { address, incarnation: own } = this.#options;
    return [...this.#sightings]
      .filter(([incarnation, { row }]) => address !== "" && row.address === address && incarnation < own)
      .map(([, { entry }]) => entry);
  }

  /** Rows that nobody writes any more: an earlier process's of a host, and whatever has not changed for `forMs`. */
  outdated(forMs: number): Entry[] {
    const nowMs = this.#options.clock.monotonicMs();
    const latest = new Set(this.others.map(({ incarnation }) => incarnation));
    return [...this.#sightings]
      .filter(
        ([incarnation, sighting]) =>
          !this.#isPresent(sighting) &&
          nowMs - sighting.sinceMs >= this.#options.timing.ttlMs &&
          (!latest.has(incarnation) || nowMs - (sighting.changedMs ?? sighting.sinceMs) >= forMs),
      )
      .map(([, { entry }]) => entry);
  }

  /**
   * How this process stands in an election, when the lease has been open for `openForMs`. `givenUp` is who held it: its row may have
   * changed a moment after its last renewal, and it does not count as there.
   */
  candidacy({ weight, isWilling, quorum }: Standing, openForMs: number, givenUp?: string): Candidacy {
    const { timing, incarnation: own } = this.#options;
    const { others } = this;
    const present = others.filter(({ isPresent, incarnation }) => isPresent && incarnation !== givenUp);
    const ahead = present.filter(
      ({ incarnation, row }) =>
        row.role !== "Leader" &&
        row.isWilling &&
        (row.weight > weight || (row.weight === weight && incarnation < own)),
    );
    const waitMs = isWilling ? (ahead.length * timing.renewalMs) / 2 : timing.ttlMs;
    const weightOf = (members: readonly Member[]): number =>
      members.reduce((sum, { row }) => sum + row.weight, weight);
    return {
      weight,
      isItsTurn: (others.length === 0 || this.#isSettled) && openForMs >= waitMs,
      hasQuorum: quorum === "off" || (this.#isSettled && 2 * weightOf(present) > weightOf(others)),
    };
  }

  /** All that are there have been seen to be. */
  get #isSettled(): boolean {
    const { clock, timing } = this.#options;
    const readableForMs = clock.monotonicMs() - (this.#readableSinceMs ?? Infinity);
    return readableForMs >= SETTLED_HEARTBEATS * timing.renewalMs;
  }

  #isLater(one: [IncarnationId, Sighting], other: [IncarnationId, Sighting]): boolean {
    const [isOnePresent, isOtherPresent] = [this.#isPresent(one[1]), this.#isPresent(other[1])];
    return isOnePresent === isOtherPresent ? one[0] > other[0] : isOnePresent;
  }

  #isPresent({ changedMs }: Sighting): boolean {
    return (
      changedMs !== undefined && this.#options.clock.monotonicMs() - changedMs < this.#options.timing.ttlMs
    );
  }
}

async function allRows(store: Store): Promise<Entry[]> {
  const entries: Entry[] = [];
  for await (const page of pagesUnder(store, COORDINATORS_PREFIX, PAGE)) {
    entries.push(...page);
    if (entries.length >= ROWS_MAX) break;
  }
  return entries;
}

/** Undefined for a row that this version cannot read: it is a later one's. */
function sightingOf(entry: Entry, known: Sighting | undefined, nowMs: number): Sighting | undefined {
  if (known !== undefined && Buffer.compare(known.entry.value, entry.value) === 0) return known;
  const decoded = decodeRecord(presenceRecord, entry.key, entry.value);
  if (decoded.kind !== "ok") return undefined;
  if (known === undefined) return { entry, row: decoded.value, changedMs: undefined, sinceMs: nowMs };
  return { entry, row: decoded.value, changedMs: nowMs, sinceMs: known.sinceMs };
}
