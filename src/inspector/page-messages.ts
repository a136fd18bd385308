// The messages that the page of `rollout inspect` and the program that serves it send each other. Types alone: both ends are built with them.
//
// The page reads `GET /feed`, which never ends: one JSON object a line, each a PageNews. It is whole at the beginning (`hello` first) and
// after each break, and says only what has changed from then on. A line of nothing but a line ending says that the connection lives.
// Names in objects are those of `--json`.

export type PageNews =
  | Hello
  /** Whether the coordinator answers. Everything else stays as it was told last while it does not. */
  | {
      readonly kind: "link";
      readonly connected: boolean;
      readonly since_ms: number;
      /** Why it does not; null as long as nobody has asked it. */
      readonly reason: string | null;
    }
  | { readonly kind: "status"; readonly status: RunNumbers }
  /** `anew`: these are all that there are. */
  | {
      readonly kind: "workers";
      readonly anew: boolean;
      readonly changed: readonly WorkerRow[];
      readonly gone: readonly string[];
    }
  /** Oldest first; after a break those that are remembered, some of which may have been told before (by `number`). */
  | { readonly kind: "steps"; readonly steps: readonly Step[]; readonly dropped: number }
  | {
      readonly kind: "history";
      readonly anew: boolean;
      readonly interval_ms: number;
      readonly points: readonly HistoryPoint[];
    }
  | { readonly kind: "at_work"; readonly items: readonly ItemAtWork[] }
  /** Null: the run has had none. `anew`: these are all points of its stage. */
  | {
      readonly kind: "release";
      readonly release: ReleaseNow | null;
      readonly anew: boolean;
      readonly points: readonly ReleasePoint[];
    }
  /** Leadership, steals, drains, failures of workers: what is worth a line on a timeline, oldest first. */
  | { readonly kind: "events"; readonly events: readonly TimelineEvent[] }
  | ProgramNews;

export interface Hello {
  readonly kind: "hello";
  readonly version: string;
  /** Null where the page shows programs that were connected to it, and no run. */
  readonly run: { readonly run_id: string; readonly addresses: readonly string[] } | null;
  /** Whether programs may connect, and where; null when they may not. */
  readonly listens_at: string | null;
  /** The time of this machine, when it was said. */
  readonly now_ms: number;
  /** Charts of the product: `GET /charts/NAME` has the ChartPicture of each. */
  readonly charts: readonly string[];
}

/** A chart to be shown. `svg` is a whole `<svg>` element without a style of its own: states have `data-state`, `data-path`; transitions `data-transition`. */
export interface ChartPicture {
  readonly name: string;
  readonly version: string | null;
  readonly description: string | null;
  /** Null when it is too large to be drawn. */
  readonly svg: string | null;
  readonly states: readonly {
    readonly id: string;
    readonly path: string;
    readonly kind: string;
    readonly initial: string | null;
    readonly parent: string | null;
  }[];
  readonly transitions: readonly {
    readonly id: string;
    readonly source: string;
    readonly event: string;
    readonly guard: string | null;
    readonly targets: readonly string[];
  }[];
}

/** The object of `rollout status --json`, as far as the page reads it. */
export interface RunNumbers {
  readonly state: string;
  readonly sealed: boolean;
  readonly pause_reason: string | null;
  readonly pending: number;
  readonly delayed: number;
  readonly running: number;
  readonly executing: number;
  readonly done: number;
  readonly failed: number;
  readonly set_aside: number;
  readonly failed_by_class: Readonly<Record<string, number>>;
  readonly failure_messages: readonly {
    readonly class: string;
    readonly message: string;
    readonly items: number;
    readonly attempts: number;
    readonly item: string;
  }[];
  readonly finished_per_second: number;
  readonly plugin: string | null;
  readonly task: string | null;
  readonly workers: Readonly<
    Record<"ready" | "draining" | "suspected" | "failed" | "cordoned" | "revoked", number>
  >;
  readonly trouble: readonly string[];
  readonly coordinators: readonly CoordinatorRow[];
  /** The one that is not over, or else the last one. */
  readonly release?: { readonly release: string; readonly state: string } | null;
}

/** The object of `rollout release status --json`, as far as the page reads it. */
export interface ReleaseNow {
  readonly release: string;
  readonly plugin: string;
  readonly stable_version: string;
  readonly candidate_version: string;
  readonly state: string;
  readonly reason: string;
  readonly stage: number;
  readonly stages: readonly {
    readonly stage: number;
    readonly share: string;
    readonly phase: string;
    readonly judged: number;
  }[];
  readonly metrics: readonly {
    readonly metric: string;
    readonly max_worse: number;
    readonly verdict: string;
    readonly stable: MetricArm;
    readonly candidate: MetricArm;
    readonly difference: { readonly value: number | null; readonly lower: number; readonly upper: number };
  }[];
}

interface MetricArm {
  readonly n: number;
  readonly value: number | null;
  readonly lower: number;
  readonly upper: number;
}

/** Intervals as they were when so many of the candidate's attempts were judged. In the order of the metrics; null before both versions have a value. */
export interface ReleasePoint {
  readonly judged: number;
  readonly metrics: readonly (MetricPoint | null)[];
}

export interface MetricPoint {
  readonly stable: Bounds;
  readonly candidate: Bounds;
  /** Beyond it the candidate is worse than it may be. */
  readonly margin: number;
}

export type Bounds = readonly [lower: number, value: number, upper: number];

export interface CoordinatorRow {
  readonly incarnation: string;
  readonly address: string;
  readonly role: string;
  readonly present: boolean;
  readonly epoch: number | null;
  readonly weight: number;
  readonly snapshot_number: number | null;
  readonly rehearsal_ms: number | null;
}

/** A line of `rollout worker list --json`, as far as the page reads it. */
export interface WorkerRow {
  readonly worker_id: string;
  readonly incarnation: string;
  readonly state: string;
  readonly liveness: string;
  readonly load: number;
  readonly slots: number;
  readonly held: number;
  readonly plugins: readonly { readonly name: string; readonly version: string }[];
  /** As it was when the row was told, and to be shown so: the row is told again when the age enters another band (3, 5, 10, 20 s, …). */
  readonly last_beat_age_ms: number | null;
  readonly cordon_reason: string | null;
  readonly trouble: string | null;
  readonly revoked: boolean;
  /** `left_ms` goes on by itself: the row is told again when its end moves. */
  readonly drain: { readonly state: string; readonly cause: string; readonly left_ms: number } | null;
}

/** One step of a chart. `from` and `to` are dotted paths, with `+` between the regions of a parallel state. */
export interface Step {
  /** Grows; counted by the program that serves the page. */
  readonly number: number;
  readonly at_ms: number;
  readonly chart: string;
  /** A worker's id, an item's 64 hexadecimal digits, a coordinator's address; empty for the run. */
  readonly actor: string;
  readonly event: string;
  readonly from: string;
  readonly to: string;
}

export interface HistoryPoint {
  readonly at_ms: number;
  readonly pending: number;
  readonly delayed: number;
  readonly running: number;
  readonly done: number;
  readonly failed: number;
  readonly workers: number;
}

export interface ItemAtWork {
  readonly item: string;
  readonly worker: string;
  readonly attempt: number;
  readonly assigned_at_ms: number;
}

export interface TimelineEvent {
  readonly at_ms: number;
  /** As docs/EVENTS.md names it. */
  readonly topic: string;
  /** For a person, one line. */
  readonly words: string;
}

/** Programs that speak the protocol of `@statelyai/inspect` to `rollout inspect --listen`. Their words are text of strangers. */
export type ProgramNews =
  | { readonly kind: "program"; readonly program: Program }
  | { readonly kind: "program_gone"; readonly program_id: string }
  /** `anew`: these are all that there are. */
  | {
      readonly kind: "actors";
      readonly program_id: string;
      readonly anew: boolean;
      readonly changed: readonly ActorRow[];
      readonly gone: readonly string[];
    }
  /** The last of them, oldest first, bounded; `dropped` are missing before these. */
  | {
      readonly kind: "log";
      readonly program_id: string;
      readonly entries: readonly LogEntry[];
      readonly dropped: number;
    };

export interface Program {
  readonly program_id: string;
  readonly name: string;
  readonly connected: boolean;
  readonly since_ms: number;
  /** Faults of something that it said: a definition that is broken or too large, by name. */
  readonly complaints: readonly string[];
}

export interface ActorRow {
  readonly session_id: string;
  readonly parent_id: string | null;
  readonly name: string;
  /** `GET /definitions/PROGRAM/HASH` has the ChartPicture; null when it is no machine, or one that cannot be drawn. */
  readonly definition: string | null;
  /** Active states, as dotted paths with `+` between regions; empty when there are none. */
  readonly value: string;
  readonly status: string;
}

export interface LogEntry {
  readonly number: number;
  readonly at_ms: number;
  readonly session_id: string;
  readonly kind: "event" | "snapshot";
  readonly event: string;
  /** The active states after it, for a snapshot. */
  readonly value: string;
  /** For a person, bounded: the event or the context as JSON. */
  readonly detail: string;
}

/** A wish of `POST /do`, as JSON. Answered with a Done. The operator's certificate decides what is allowed. */
export type Deed =
  | { readonly deed: "pause" }
  | { readonly deed: "resume" }
  | { readonly deed: "cancel" }
  | { readonly deed: "drain"; readonly worker_id: string }
  /** The failed items: all of them, or one. */
  | { readonly deed: "retry"; readonly item?: string };

export type Done =
  | { readonly ok: true; readonly words: string }
  | { readonly ok: false; readonly error: { readonly message: string; readonly hint: string } };

/** `GET /item/NAME` and `GET /worker/ID`: an Explained, or status 404 with a Done that is not ok. */
export interface Explained {
  /** The object of `rollout explain --json`. */
  readonly object: Readonly<Record<string, unknown>>;
  /** The lines of `rollout explain`. */
  readonly lines: readonly string[];
}
