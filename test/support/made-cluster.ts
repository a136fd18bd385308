// A cluster that was made up, as news for the page: as many workers as one likes, the course of an hour, failures, leadership, items
// at work, and a program of somebody's. The same numbers each time.
import { createHash } from "node:crypto";
import type {
  CoordinatorRow,
  HistoryPoint,
  LogEntry,
  PageNews,
  RunNumbers,
  Step,
  TimelineEvent,
  WorkerRow,
} from "../../src/inspector/page-messages.ts";

/** The end of the course that is made up. */
export const MADE_AT_MS = Date.UTC(2026, 0, 15, 10, 30);
const COURSE_SECONDS = 720;
const INTERVAL_MS = 5_000;
const CHARTS = [
  ...["coordinator-role", "execution", "run", "spot-drain", "work-item", "worker-lifecycle", "worker-trust"],
];
const LETTERS = "0123456789ABCDEFGHJKMNPQRSTVWXYZ";

export function workerId(at: number): string {
  const digest = createHash("sha256").update(`worker ${at}`).digest();
  return `01KA2M7Q${Array.from({ length: 18 }, (_, place) => LETTERS[(digest[place] ?? 0) % 32]).join("")}`;
}

export function itemDigest(at: number): string {
  return createHash("sha256").update(`item ${at}`).digest("hex");
}

export function workerRow(at: number, changes: Partial<WorkerRow> = {}): WorkerRow {
  return {
    ...{ worker_id: workerId(at), incarnation: workerId(at + 100_000), state: "ready", liveness: "alive" },
    ...{ load: (at % 11) / 10, slots: 16, held: 12 + (at % 21), last_beat_age_ms: 180 + (at % 400) },
    ...{
      plugins: [{ name: "summaries", version: "3" }],
      cordon_reason: null,
      trouble: null,
      revoked: false,
      drain: null,
    },
    ...changes,
  };
}

/** Every seventh or so has something that a person should see. */
export function workerRows(count: number): WorkerRow[] {
  const odd: Partial<WorkerRow>[] = [
    { liveness: "failed", last_beat_age_ms: 41_000, load: 0 },
    { liveness: "suspected", last_beat_age_ms: 4_200 },
    { cordon_reason: "5 items in a row failed here while others succeeded", load: 0, held: 1 },
    {
      state: "draining",
      held: 7,
      drain: { state: "Draining.Finishing", cause: "preemption", left_ms: 24_000 },
    },
    { trouble: "waiting for the server at http://127.0.0.1:8000: it loads its model" },
    { state: "draining", held: 2, drain: { state: "Draining.Flushing", cause: "operator", left_ms: 9e15 } },
  ];
  return Array.from({ length: count }, (_, at) =>
    workerRow(at, at % 7 === 1 ? odd[Math.floor(at / 7) % odd.length] : {}),
  );
}

export function course(): HistoryPoint[] {
  const total = 250_000;
  let done = 31_400;
  let failed = 12;
  return Array.from({ length: COURSE_SECONDS }, (_, at) => {
    // A leader was killed in the middle: nothing ended for a while.
    const isHeld = at > 395 && at < 404;
    const pace = isHeld ? 0 : 34 + 9 * Math.sin(at / 37) + (at % 13) / 3;
    done += Math.round(pace * (INTERVAL_MS / 1_000));
    if (at % 40 === 7 && !isHeld) failed += 3;
    const running = isHeld ? 640 : 900 + Math.round(80 * Math.sin(at / 21));
    const delayed = at > 250 ? 40 + (at % 9) : 4;
    return {
      at_ms: MADE_AT_MS - (COURSE_SECONDS - at) * INTERVAL_MS,
      ...{ pending: total - done - failed - running - delayed, delayed, running, done, failed, workers: 60 },
    };
  });
}

function coordinatorRows(): CoordinatorRow[] {
  const row = (at: number, changes: Partial<CoordinatorRow>): CoordinatorRow => ({
    ...{
      incarnation: workerId(900 + at),
      address: `10.0.0.${at + 4}:7070`,
      role: "following",
      present: true,
    },
    ...{ epoch: 7, weight: 1, snapshot_number: 41_882, rehearsal_ms: 640 + at * 35, ...changes },
  });
  return [
    row(0, { present: false, epoch: 6, snapshot_number: null, rehearsal_ms: null }),
    row(1, { role: "leader", rehearsal_ms: null }),
    row(2, {}),
  ];
}

export function runNumbers(rows: readonly WorkerRow[], changes: Partial<RunNumbers> = {}): RunNumbers {
  const last = course().at(-1);
  const counted = (is: (row: WorkerRow) => boolean): number => rows.filter(is).length;
  return {
    ...{ state: "sealed", sealed: true, pause_reason: null },
    ...{
      pending: last?.pending ?? 0,
      delayed: last?.delayed ?? 0,
      running: last?.running ?? 0,
      executing: 610,
    },
    ...{ done: last?.done ?? 0, failed: last?.failed ?? 0, set_aside: 0, finished_per_second: 37.4 },
    failed_by_class: { crash: 41, timeout: 19, error: 6 },
    failure_messages: [
      {
        class: "crash",
        message: "exit code 137: the process was killed, which is how it ends when memory runs out",
        items: 41,
        attempts: 123,
        item: itemDigest(3),
      },
      { class: "timeout", message: "took longer than 2m", items: 19, attempts: 57, item: itemDigest(4) },
      {
        class: "error",
        message: 'the last line is no JSON: "Segmentation fault"',
        items: 6,
        attempts: 6,
        item: itemDigest(5),
      },
    ],
    ...{ plugin: "summaries", task: "python3 summarise.py --model small" },
    workers: {
      ready: counted(
        ({ state, liveness, cordon_reason }) =>
          state === "ready" && liveness === "alive" && cordon_reason === null,
      ),
      draining: counted(({ state }) => state === "draining"),
      suspected: counted(({ liveness }) => liveness === "suspected"),
      failed: counted(({ liveness }) => liveness === "failed"),
      cordoned: counted(({ cordon_reason }) => cordon_reason !== null),
      revoked: 0,
    },
    trouble: [],
    coordinators: coordinatorRows(),
    ...changes,
  };
}

export function events(): TimelineEvent[] {
  const before = (seconds: number, topic: string, words: string): TimelineEvent => ({
    at_ms: MADE_AT_MS - seconds * 1_000,
    topic,
    words,
  });
  return [
    before(3_540, "coordinator_leading", "10.0.0.4:7070 leads in epoch 6"),
    before(3_500, "worker_registered", `worker ${workerId(0)} has joined, with 16 slots`),
    before(3_498, "worker_registered", `worker ${workerId(1)} has joined, with 16 slots`),
    before(2_900, "work_stolen", `24 items went from worker ${workerId(5)} to one with nothing to do`),
    before(2_300, "drain_started", `worker ${workerId(43)} drains`),
    before(2_190, "worker_deregistered", `worker ${workerId(43)} has left in good order`),
    before(
      1_622,
      "coordinator_leading",
      "10.0.0.5:7070 leads in epoch 7: the lease of 10.0.0.4:7070 ran out",
    ),
    before(1_500, "work_stolen", `9 items went from worker ${workerId(9)} to one with nothing to do`),
    before(700, "worker_cordoned", `worker ${workerId(15)} is cordoned: it failed 5 in a row`),
    before(310, "worker_suspected", `worker ${workerId(1)} is late with its heartbeat`),
    before(290, "worker_failed", `worker ${workerId(1)} counts as lost`),
    before(48, "drain_started", `worker ${workerId(22)} drains`),
  ];
}

/** The way of a worker, of an item and of the run. */
function steps(): Step[] {
  const said: readonly (readonly [chart: string, actor: string, event: string, from: string, to: string])[] =
    [
      ["run", "", "run.sealed", "Open.Active", "Sealed.Active"],
      ["run", "", "run.paused", "Sealed.Active", "Sealed.Paused"],
      ["run", "", "run.resumed", "Sealed.Paused", "Sealed.Active"],
      [
        "coordinator-role",
        "10.0.0.5:7070",
        "lease.free",
        "Candidate.Following.Willing",
        "Candidate.Claiming",
      ],
      ["coordinator-role", "10.0.0.5:7070", "lease.won", "Candidate.Claiming", "Leader"],
      ["worker-lifecycle", workerId(22), "worker.welcomed", "Init+Alive", "Ready+Alive"],
      ["worker-lifecycle", workerId(22), "beat.overdue", "Ready+Alive", "Ready+Suspected"],
      ["worker-lifecycle", workerId(22), "beat.arrived", "Ready+Suspected", "Ready+Alive"],
      ["worker-lifecycle", workerId(22), "worker.drain", "Ready+Alive", "Draining+Alive"],
      ["spot-drain", workerId(22), "drain.requested", "Idle", "Draining.HandingBack"],
      ["spot-drain", workerId(22), "backlog.handedBack", "Draining.HandingBack", "Draining.Finishing"],
      ["work-item", itemDigest(0), "item.assigned", "Pending", "Running"],
      ["work-item", itemDigest(0), "item.lost", "Running", "Pending"],
      ["work-item", itemDigest(0), "item.assigned", "Pending", "Running"],
    ];
  return said.map(([chart, actor, event, from, to], at) => ({
    ...{ number: at + 1, at_ms: MADE_AT_MS - (said.length - at) * 3_700, chart, actor, event, from, to },
  }));
}

export interface MadeOptions {
  readonly workers: number;
  readonly listensAt?: string;
  readonly nowMs?: number;
  readonly status?: Partial<RunNumbers>;
}

/** All that a page is told first. */
export function madeCluster({
  workers,
  listensAt,
  nowMs = MADE_AT_MS,
  status = {},
}: MadeOptions): PageNews[] {
  const rows = workerRows(workers);
  return [
    {
      ...{ kind: "hello", version: "0.1.0", listens_at: listensAt ?? null, now_ms: nowMs, charts: CHARTS },
      run: { run_id: "01KA2M7P0W3ZC8R5T9XN4V6B1D", addresses: ["10.0.0.4:7070", "10.0.0.5:7070"] },
    },
    { kind: "link", connected: true, since_ms: MADE_AT_MS - 3_000_000, reason: null },
    { kind: "status", status: runNumbers(rows, status) },
    { kind: "workers", anew: true, changed: rows, gone: [] },
    { kind: "steps", steps: steps(), dropped: 0 },
    { kind: "history", anew: true, interval_ms: INTERVAL_MS, points: course() },
    {
      kind: "at_work",
      items: Array.from({ length: 16 }, (_, at) => ({
        ...{
          item: itemDigest(at),
          worker: workerId(at % Math.max(1, workers)),
          attempt: 1 + (at % 3 === 0 ? 1 : 0),
        },
        assigned_at_ms: nowMs - 900 - at * 1_730,
      })),
    },
    { kind: "events", events: events() },
  ];
}

/** Nothing has happened in it yet. */
export function emptyCluster(): PageNews[] {
  const none = {
    pending: 0,
    delayed: 0,
    running: 0,
    executing: 0,
    done: 0,
    failed: 0,
    finished_per_second: 0,
  };
  const status = runNumbers([], {
    ...{
      ...none,
      state: "open",
      sealed: false,
      failed_by_class: {},
      failure_messages: [],
      plugin: null,
      task: null,
      coordinators: [],
    },
  });
  const [hello, link] = madeCluster({ workers: 0 });
  if (hello === undefined || link === undefined) return [];
  return [hello, link, { kind: "status", status }, { kind: "workers", anew: true, changed: [], gone: [] }];
}

/** A program of somebody's: a tree of actors, all of one machine, with a log. Names may be anything. */
export function madeProgram(actors: number, definition: string | null): PageNews[] {
  const names = ["checkout", "cart", "payment", "shipment", '<img src=x onerror="alert(1)">'];
  const values = ["Pending", "Running", "Done"];
  const rows = Array.from({ length: actors }, (_, at) => ({
    ...{ session_id: `x:${at}`, parent_id: at === 0 ? null : `x:${Math.floor((at - 1) / 4)}` },
    ...{ name: `${names[at % names.length] ?? ""} ${at}`, definition: at % 9 === 8 ? null : definition },
    ...{ value: at % 9 === 8 ? "" : (values[at % 3] ?? ""), status: at % 11 === 10 ? "done" : "active" },
  }));
  return [
    {
      kind: "program",
      program: {
        ...{ program_id: "p1", name: "shop (node 4711)", connected: true, since_ms: MADE_AT_MS - 60_000 },
        complaints: ["the definition of “warehouse” has 100,000 states; 1,000 at most are drawn"],
      },
    },
    { kind: "actors", program_id: "p1", anew: true, changed: rows, gone: [] },
    { kind: "log", program_id: "p1", entries: programLog(0, 12), dropped: 0 },
  ];
}

/** The first actor's: events, and the snapshots that follow them. */
export function programLog(from: number, count: number): LogEntry[] {
  return Array.from({ length: count }, (_, nth) => {
    const at = from + nth;
    const isEvent = at % 2 === 0;
    const runs = Math.floor(at / 2) % 2 === 0;
    const event = runs ? "item.assigned" : "item.lost";
    return {
      ...{ number: at + 1, at_ms: MADE_AT_MS - 50_000 + at * 130, session_id: "x:0" },
      ...{ kind: isEvent ? ("event" as const) : ("snapshot" as const), event: isEvent ? event : "" },
      ...{
        value: runs ? "Running" : "Pending",
        detail: isEvent ? `{"type":"${event}"}` : `{"basket":["tea"],"attempt":${at}}`,
      },
    };
  });
}
