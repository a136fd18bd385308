// Workers as pages were told of them, so that they are told only what has changed. Ages of beats and time left change all the time by
// themselves: a row is told again when its age enters another band, and when its deadline moves.
//
// Keeps true: a change of state is told at once; of changes of load alone so many a round, those that have waited longest first.
import type { PageNews, WorkerRow } from "./page-messages.ts";

type WorkerNews = Extract<PageNews, { kind: "workers" }>;

interface Told {
  readonly row: WorkerRow;
  readonly matter: string;
  readonly busyness: string;
  readonly deadlineMs: number;
  /** The round in which it was told. */
  readonly round: number;
}

/** A worker that is heard is below the second one, whatever the interval of its beats is by default. */
const AGE_BANDS_MS = [0, 3_000, 5_000, 10_000, 20_000, 40_000, 80_000, 160_000, 320_000];
/** Times left are counted down by the page. */
const DEADLINE_SLACK_MS = 1_500;
const LOAD_STEPS = 20;
/** Rows a round of which nothing but the load has changed. */
const BUSY_ROWS_MAX = 200;

export class WorkerBoard {
  readonly #told = new Map<string, Told>();
  #rows: readonly WorkerRow[] = [];
  #round = 0;

  /** As they were seen last. */
  get rows(): readonly WorkerRow[] {
    return this.#rows;
  }

  /** Takes all workers that there are; gives the changes that pages are to be told, undefined when there are none. */
  take(rows: readonly WorkerRow[], nowMs: number): WorkerNews | undefined {
    this.#rows = rows;
    this.#round++;
    const seen = rows.map((row) => this.#toldOf(row, nowMs));
    const ids = new Set(rows.map(({ worker_id }) => worker_id));
    const gone = [...this.#told.keys()].filter((id) => !ids.has(id));
    const changed = [...seen.filter((one) => this.#matters(one)), ...this.#busiest(seen)];
    for (const id of gone) this.#told.delete(id);
    for (const one of changed) this.#told.set(one.row.worker_id, one);
    if (changed.length + gone.length === 0) return undefined;
    return { kind: "workers", anew: false, changed: changed.map(({ row }) => row), gone };
  }

  #toldOf(row: WorkerRow, nowMs: number): Told {
    const { incarnation, state, liveness, slots, plugins, last_beat_age_ms: age, drain } = row;
    const band = age === null ? -1 : AGE_BANDS_MS.findLastIndex((fromMs) => age >= fromMs);
    const named = plugins.map(({ name, version }) => `${name}@${version}`);
    return {
      row,
      matter: JSON.stringify([
        ...[incarnation, state, liveness, slots, named, band, row.cordon_reason, row.trouble, row.revoked],
        ...[drain?.state, drain?.cause],
      ]),
      busyness: `${row.held} ${Math.round(row.load * LOAD_STEPS)}`,
      deadlineMs: drain === null ? 0 : nowMs + drain.left_ms,
      round: this.#round,
    };
  }

  #matters({ row, matter, deadlineMs }: Told): boolean {
    const told = this.#told.get(row.worker_id);
    if (told?.matter !== matter) return true;
    return Math.abs(told.deadlineMs - deadlineMs) > DEADLINE_SLACK_MS;
  }

  #busiest(seen: readonly Told[]): Told[] {
    const waiting = seen.filter((one) => {
      const told = this.#told.get(one.row.worker_id);
      return told !== undefined && told.busyness !== one.busyness && !this.#matters(one);
    });
    if (waiting.length <= BUSY_ROWS_MAX) return waiting;
    const roundOf = ({ row }: Told): number => this.#told.get(row.worker_id)?.round ?? 0;
    return waiting.toSorted((one, other) => roundOf(one) - roundOf(other)).slice(0, BUSY_ROWS_MAX);
  }
}
