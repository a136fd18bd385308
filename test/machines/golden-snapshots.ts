// Snapshots of each chart as the version that is current writes them, to be kept for good: a later version of the chart
// has to read them and go on.
import type { Chart } from "../../machines/migration.ts";
import type { AllocationEvent } from "../../machines/allocation.ts";
import type { ExecutionEvent } from "../../machines/execution.ts";
import type { FleetEvent } from "../../machines/fleet.ts";
import type { DrainEvent } from "../../machines/spot-drain.ts";
import type { RoleEvent } from "../../machines/coordinator-role.ts";
import type { KeyEvent } from "../../machines/key.ts";
import type { StageEvent } from "../../machines/release-stage.ts";
import type { ReleaseEvent } from "../../machines/release.ts";
import type { RunEvent } from "../../machines/run.ts";
import type { ItemEvent } from "../../machines/work-item.ts";
import type { WorkerEvent } from "../../machines/worker-lifecycle.ts";
import type { StayEvent } from "../../machines/worker-stay.ts";
import type { TrustEvent } from "../../machines/worker-trust.ts";
import { assert } from "../../src/base/assert.ts";
import { seededRandom } from "../../src/base/random.ts";
import { silentLogger } from "../../src/observe/log.ts";
import { ActorSystem } from "../../src/runtime/driver.ts";
import { MemoryStore } from "../../src/storage/memory/memory-store.ts";
import { actorKey } from "../../src/storage/keys.ts";
import { VirtualClock } from "../support/virtual-clock.ts";

/** By the name of what is remembered: the bytes of a record, in hexadecimal, and the address that it belongs to. */
export type GoldenRecords = Readonly<Record<string, { readonly address: string; readonly bytes: string }>>;

/** When golden snapshots were written, on their wall clock. */
export const GOLDEN_WALL_MS = Date.UTC(2026, 10, 1);

interface Scenario {
  readonly input?: unknown;
  readonly events: readonly { readonly type: string }[];
}

const scenario =
  <Event extends { readonly type: string }>(input?: unknown) =>
  (...events: readonly Event[]): Scenario => ({ input, events });
const role = scenario<RoleEvent>();
const anAllocation = scenario<AllocationEvent>({ atMs: 1_000 });
const aFleet = scenario<FleetEvent>({ maxFailuresInRow: 8 });
const aKey = scenario<KeyEvent>();
const theRun = scenario<RunEvent>();
const aRelease = scenario<ReleaseEvent>({ stages: 2, holdsOnBreach: false, by: "ada" });
const aStage = scenario<StageEvent>();
const attemptOn = scenario<ExecutionEvent>();
const drain = scenario<DrainEvent>();
const item = scenario<ItemEvent>({ maxAttempts: 3, maxLost: 5 });
const life = scenario<WorkerEvent>({ incarnation: "01B" });
const aStay = scenario<StayEvent>();
const trust = scenario<TrustEvent>({ incarnation: "01B" });

const claimed: RoleEvent = { type: "lease.free", weight: 1, isItsTurn: true, hasQuorum: true };
const incarnation = "01B";
const attempt = { worker: "w1", incarnation: "i1", attempt: 1, epoch: 4 };
const assigned: ItemEvent = { type: "item.assigned", worker: "w1", incarnation: "i1", epoch: 4 };
const itemFailed: TrustEvent = { type: "item.failed", incarnation, atMs: 1_000, othersSucceededAtMs: 2_000 };
const requested: DrainEvent = {
  type: "drain.requested",
  cause: "gcp",
  atMs: 85_000,
  deadlineMs: 100_000,
  machineEndsMs: 115_000,
};

const stayBegins: StayEvent = {
  ...{ type: "worker.started", atMs: 80_000, boot: "this boot" },
  limits: { orphanMs: 30_000, lifetimeMs: 100_000, idleMs: 20_000 },
};

const SCENARIOS: Readonly<Record<string, Readonly<Record<string, Scenario>>>> = {
  allocation: {
    "asked for": anAllocation(),
    "in its queue": anAllocation({ type: "launch.accepted", atMs: 1_100, ref: "7" }),
    joined: anAllocation(
      { type: "list.running", atMs: 1_200, ref: "7" },
      { type: "worker.joined", atMs: 1_300 },
    ),
    "ending, and told so": anAllocation(
      { type: "worker.joined", atMs: 1_300 },
      { type: "end.asked", atMs: 1_400, cause: "idle" },
      { type: "stop.sent", atMs: 1_500, againAtMs: 1_600 },
    ),
    "gone, preempted": anAllocation(
      { type: "worker.joined", atMs: 1_300 },
      { type: "list.ended", atMs: 1_400, isPreempted: true },
    ),
  },
  "coordinator-role": {
    "a candidate": role(),
    "a candidate that claims": role(claimed),
    "a leader": role(claimed, { type: "lease.won", epoch: 7 }),
    "a candidate that has resigned": role(
      claimed,
      { type: "lease.won", epoch: 7 },
      { type: "lease.resigned" },
    ),
    "a candidate that has made room": role(
      claimed,
      { type: "lease.won", epoch: 7 },
      { type: "lease.yielded" },
    ),
    "halted, the leader it was": role(
      claimed,
      { type: "lease.won", epoch: 7 },
      { type: "store.rolledBack", reason: "older", missing: 3 },
    ),
    "fenced, the abort not done": role(
      claimed,
      { type: "lease.won", epoch: 7 },
      { type: "lease.lost", reason: "stolen", seenEpoch: 8, by: "01X" },
    ),
  },
  execution: {
    "just started": attemptOn(),
    "over its time": attemptOn({ type: "time.over" }),
    "not let begin": attemptOn({ type: "execution.withheld" }),
  },
  fleet: {
    active: aFleet(),
    "cooling after a failure": aFleet({ type: "start.failed", untilMs: 2_000, reason: "no image" }),
    paused: aFleet({ type: "fleet.paused", reason: "at night", by: "ada" }),
    spent: aFleet({ type: "budget.spent", reason: "max_cost" }),
    "spent, a person asked": aFleet({ type: "budget.spent", reason: "max_cost" }, { type: "run.paused" }),
  },
  key: {
    idle: aKey(),
    "running, more behind it": aKey(
      { type: "mail.arrived" },
      { type: "mail.arrived" },
      { type: "key.assigned" },
    ),
    "parked behind a failed head": aKey(
      { type: "mail.arrived" },
      { type: "mail.arrived" },
      { type: "key.assigned" },
      { type: "item.failed" },
    ),
    "paused while its head waits": aKey(
      { type: "mail.arrived" },
      { type: "key.assigned" },
      { type: "item.delayed" },
      { type: "key.paused" },
    ),
  },
  release: {
    "just begun": aRelease(),
    "held, without a verdict": aRelease({ type: "verdict.inconclusive", reason: "no verdict", by: "" }),
    "in its last stage": aRelease({ type: "stage.promoted", reason: "proof", by: "" }),
    completed: aRelease(
      { type: "stage.promoted", reason: "proof", by: "" },
      { type: "stage.forced", reason: "", by: "bob" },
    ),
  },
  "release-stage": {
    waiting: aStage(),
    active: aStage({ type: "stage.opened", atMs: 5 }),
    promoted: aStage({ type: "stage.opened", atMs: 5 }, { type: "stage.forced", atMs: 9 }),
  },
  run: {
    "just opened": theRun(),
    "sealed and paused": theRun({ type: "run.sealed" }, { type: "run.paused", reason: "over budget" }),
    complete: theRun({ type: "run.sealed" }, { type: "run.completed" }),
  },
  "spot-drain": {
    idle: drain(),
    "handing back": drain(requested),
    flushing: drain(
      requested,
      { type: "backlog.handedBack" },
      { type: "slots.emptied", atMs: 91_000, hasTrainState: false },
    ),
    "drained on a boot, a save measured": drain(
      { type: "worker.started", atMs: 80_000, boot: "this boot" },
      requested,
      { type: "backlog.handedBack" },
      { type: "slots.emptied", atMs: 91_000, hasTrainState: true },
      { type: "trainState.settled", atMs: 92_000, tookMs: 1_000 },
      { type: "results.flushed" },
    ),
  },
  "work-item": {
    "never assigned": item(),
    running: item(assigned),
    "pending after an error": item(assigned, { type: "item.erred", ...attempt }),
    done: item(assigned, { type: "item.succeeded", ...attempt }),
    "pending, handed back and apart": item(
      assigned,
      { type: "item.returned", ...attempt, atMs: GOLDEN_WALL_MS },
      assigned,
      { type: "item.crashedTogether", ...attempt, attempt: 2 },
    ),
    "running on trial": item({ ...assigned, trial: "01R" }),
    "pending, failed by a candidate": item(
      { ...assigned, trial: "01R" },
      { type: "item.erredOnTrial", ...attempt },
    ),
  },
  "worker-lifecycle": {
    "just started": life(),
    "ready and heard of": life(
      { type: "worker.welcomed", incarnation },
      { type: "beat.arrived", incarnation },
    ),
    "asked to drain": life(
      { type: "worker.welcomed", incarnation },
      { type: "worker.drainAsked", incarnation },
    ),
    "draining and failed": life(
      { type: "worker.drain", incarnation },
      { type: "beat.overdue" },
      { type: "beat.timedOut" },
    ),
    gone: life({ type: "worker.left", incarnation }),
  },
  "worker-stay": {
    "nothing known": aStay(),
    alone: aStay(stayBegins),
    idle: aStay(stayBegins, { type: "leader.answered", atMs: 80_500 }),
    working: aStay(stayBegins, { type: "leader.answered", atMs: 80_500 }, { type: "work.began" }),
    leaving: aStay(stayBegins, { type: "time.passed", atMs: 110_000 }),
  },
  "worker-trust": {
    trusted: trust(),
    "trusted, after a failure": trust(itemFailed),
    cordoned: trust(itemFailed, itemFailed, itemFailed, itemFailed, itemFailed),
  },
};

/** Records that a system over this chart leaves on its disk when it is killed before it has done any effect. */
export async function goldenRecords(id: string, chart: Chart): Promise<GoldenRecords> {
  const scenarios = SCENARIOS[id];
  assert(scenarios !== undefined, `test/machines/golden-snapshots.ts has no scenarios for ${id}`);
  const store = new MemoryStore();
  const system = await ActorSystem.open({
    store,
    charts: { [id]: chart },
    clock: new VirtualClock({ wallMs: GOLDEN_WALL_MS }),
    random: seededRandom(1),
    log: silentLogger,
    durability: "sync",
    perform: () => new Promise(() => {}),
    onFatal: (error) => {
      throw error;
    },
  });
  const records: Record<string, { address: string; bytes: string }> = {};
  for (const [at, [name, { input, events }]] of Object.entries(scenarios).entries()) {
    const address = `golden/${at}`;
    await system.spawn(address, id, input);
    for (const event of events) await system.send(address, event);
    const bytes = await store.get(actorKey(address));
    assert(bytes !== undefined, "a spawned actor is in the store");
    records[name] = { address, bytes: Buffer.from(bytes).toString("hex") };
  }
  return records;
}
