// Ways through each chart, generated from the chart: the compiled form and the real actor system over a store are driven
// along them and must be where XState's own actor is after every step.
import { expect } from "chai";
import type { AnyStateMachine } from "xstate";
import { allocation } from "../../machines/allocation.ts";
import { coordinatorRole } from "../../machines/coordinator-role.ts";
import { execution } from "../../machines/execution.ts";
import { fleet } from "../../machines/fleet.ts";
import { charts } from "../../machines/index.ts";
import { releaseStage } from "../../machines/release-stage.ts";
import { release } from "../../machines/release.ts";
import { run } from "../../machines/run.ts";
import { spotDrain } from "../../machines/spot-drain.ts";
import { key } from "../../machines/key.ts";
import { workItem } from "../../machines/work-item.ts";
import type { ItemContext } from "../../machines/work-item.ts";
import { workerLifecycle } from "../../machines/worker-lifecycle.ts";
import { workerStay } from "../../machines/worker-stay.ts";
import { workerTrust } from "../../machines/worker-trust.ts";
import { seededRandom } from "../../src/base/random.ts";
import { silentLogger } from "../../src/observe/log.ts";
import { compile } from "../../src/runtime/compile.ts";
import type { Effect } from "../../src/runtime/compile.ts";
import { ActorSystem } from "../../src/runtime/driver.ts";
import { MemoryStore } from "../../src/storage/memory/memory-store.ts";
import { shortestPaths, simplePaths, untakenTransitions } from "./chart-paths.ts";
import type { Path, PathOptions } from "./chart-paths.ts";
import { LiveActor } from "./live-chart.ts";
import { VirtualClock } from "../support/virtual-clock.ts";

const w1 = { worker: "w1", incarnation: "i1", epoch: 3 };

/** Reports of these kinds on the current attempt and on the one before. */
function reports<Type extends string>(
  { worker, incarnation, attempt, epoch }: ItemContext,
  ...types: Type[]
) {
  return [attempt, attempt - 1].flatMap((of) =>
    types.map((type) => ({ type, worker, incarnation, epoch, attempt: of })),
  );
}

const keyPaths: PathOptions<typeof key> = {
  machine: key,
  events: () => [
    { type: "mail.arrived" },
    { type: "key.assigned" },
    { type: "item.settled" },
    { type: "item.failed" },
    { type: "item.returned" },
    { type: "item.delayed" },
    { type: "item.due" },
    { type: "item.retried" },
    { type: "key.paused" },
    { type: "key.resumed" },
    { type: "key.skipped" },
    { type: "key.retired" },
  ],
  stopAt: ({ mail }) => mail > 2,
};

const itemPaths: PathOptions<typeof workItem> = {
  machine: workItem,
  input: { maxAttempts: 2, maxLost: 2, maxReturns: 2 },
  events: (context) => [
    { type: "item.assigned", ...w1 },
    { type: "item.adopted", ...w1, attempt: 1 },
    ...reports(context, "item.succeeded", "item.succeededLate", "item.erred", "item.tooLarge"),
    ...reports(context, "item.lost").flatMap((lost) => [
      { ...lost, counted: true },
      { ...lost, counted: false },
    ]),
    { type: "item.cancelled" },
    { type: "item.retried" },
  ],
  stopAt: ({ attempt }) => attempt > 3,
};

/** On its own, for the same reason. */
const triedItemPaths: PathOptions<typeof workItem> = {
  ...itemPaths,
  events: (context) => [
    { type: "item.assigned", ...w1 },
    { type: "item.assigned", ...w1, trial: "r1" },
    { type: "item.adopted", ...w1, attempt: 1, trial: "r1" },
    ...reports(context, "item.succeeded", "item.succeededLate", "item.erred", "item.erredOnTrial"),
    ...reports(context, "item.returned").map((back) => ({ ...back, atMs: 7 })),
  ],
};

/** The memory of each item makes too many states to go all ways at once, so these are walked on their own. */
const restlessItemPaths: PathOptions<typeof workItem> = {
  ...itemPaths,
  events: (context) => [
    { type: "item.assigned", ...w1 },
    ...reports(context, "item.crashedTogether", "item.erred"),
    ...reports(context, "item.returned").flatMap((back) => [
      { ...back, atMs: 7 },
      { ...back, atMs: 90_000 },
    ]),
    { type: "item.retried" },
  ],
};

const runPaths: PathOptions<typeof run> = {
  machine: run,
  events: () => [
    { type: "run.sealed" },
    { type: "run.completed" },
    { type: "run.cancelled" },
    { type: "run.paused", reason: "over budget" },
    { type: "run.resumed" },
    { type: "run.reopened" },
    { type: "run.extended" },
  ],
};

const byVerdict = { reason: "said by numbers", by: "" };
const byPerson = { reason: "", by: "bob" };

const releasePaths = (holdsOnBreach: boolean): PathOptions<typeof release> => ({
  machine: release,
  input: { stages: 2, holdsOnBreach, by: "ada" },
  events: () => [
    { type: "stage.promoted", ...byVerdict },
    { type: "stage.forced", ...byPerson },
    { type: "verdict.breached", ...byVerdict },
    { type: "verdict.inconclusive", ...byVerdict },
    { type: "release.paused", ...byPerson },
    { type: "release.resumed", ...byPerson },
    { type: "release.aborted", ...byPerson },
    { type: "run.over", ...byVerdict },
  ],
});

const stagePaths: PathOptions<typeof releaseStage> = {
  machine: releaseStage,
  events: () => [
    { type: "stage.opened", atMs: 5 },
    { type: "stage.promoted", atMs: 9 },
    { type: "stage.forced", atMs: 9 },
    { type: "stage.breached", atMs: 9 },
    { type: "stage.abandoned", atMs: 9 },
  ],
};

const allocationPaths: PathOptions<typeof allocation> = {
  machine: allocation,
  input: { atMs: 1 },
  events: () => [
    { type: "launch.accepted", atMs: 2, ref: "7" },
    { type: "launch.refused", atMs: 2, reason: "no" },
    { type: "launch.full", atMs: 2, reason: "quota" },
    { type: "list.queued", atMs: 2, ref: "7" },
    { type: "list.running", atMs: 4, ref: "7" },
    { type: "list.ended", atMs: 8, isPreempted: true },
    { type: "list.gone", atMs: 8 },
    { type: "worker.joined", atMs: 5 },
    { type: "worker.left", atMs: 6 },
    { type: "worker.mute", atMs: 6 },
    { type: "end.asked", atMs: 6, cause: "idle" },
    { type: "end.asked", atMs: 6, cause: "start_timeout" },
  ],
};

/** Repeated launches and stops double the states of all that follows: these ways meet little else. */
const repeatedAllocationPaths: PathOptions<typeof allocation> = {
  ...allocationPaths,
  events: () => [
    { type: "launch.repeated", atMs: 9 },
    { type: "list.missed", atMs: 3 },
    { type: "worker.joined", atMs: 5 },
    { type: "end.asked", atMs: 6, cause: "idle" },
    { type: "stop.sent", atMs: 7, againAtMs: 17 },
    { type: "list.gone", atMs: 8 },
  ],
  stopAt: ({ missed, stops }) => missed > 1 || stops > 1,
};

const fleetPaths: PathOptions<typeof fleet> = {
  machine: fleet,
  input: { maxFailuresInRow: 2 },
  events: () => [
    { type: "start.failed", untilMs: 5, reason: "no" },
    { type: "provider.full", untilMs: 5, reason: "quota" },
    { type: "start.joined" },
    { type: "time.passed", atMs: 4 },
    { type: "time.passed", atMs: 5 },
    { type: "budget.spent", reason: "cost" },
    { type: "budget.left" },
    { type: "run.paused" },
    { type: "help.came" },
    { type: "fleet.paused", reason: "", by: "ada" },
    { type: "fleet.resumed", by: "ada" },
  ],
  stopAt: ({ fullsInRow }) => fullsInRow > 1,
};

/** A pause and its end make too many ways: these meet neither. */
const unpausedFleetPaths: PathOptions<typeof fleet> = {
  ...fleetPaths,
  events: (context) => fleetPaths.events(context).filter(({ type }) => !type.startsWith("fleet.")),
};

const executionPaths: PathOptions<typeof execution> = {
  machine: execution,
  events: () => [
    { type: "execution.waits" },
    { type: "execution.begins" },
    { type: "execution.withheld" },
    { type: "time.over" },
    { type: "worker.fenced" },
    { type: "worker.leaves" },
    { type: "result.unwanted" },
  ],
};

const rolePaths: PathOptions<typeof coordinatorRole> = {
  machine: coordinatorRole,
  events: () => [
    { type: "coordinator.started" },
    { type: "lease.quiet", weight: 1, isItsTurn: true, hasQuorum: true },
    { type: "lease.free", weight: 1, isItsTurn: true, hasQuorum: true },
    { type: "lease.free", weight: 1, isItsTurn: false, hasQuorum: true },
    { type: "lease.held" },
    { type: "claim.beaten" },
    { type: "lease.won", epoch: 1 },
    { type: "lease.lost", reason: "stolen", seenEpoch: 3, by: "01X" },
    { type: "lease.lost", reason: "late", seenEpoch: null, by: null },
    { type: "lease.resigned" },
    { type: "lease.yielded" },
    { type: "store.rolledBack", reason: "older", missing: 3 },
  ],
};

const drainPaths: PathOptions<typeof spotDrain> = {
  machine: spotDrain,
  events: () => [
    { type: "drain.requested", cause: "gcp", atMs: 79_000, deadlineMs: 100_000, machineEndsMs: 109_000 },
    { type: "drain.requested", cause: "sigterm", atMs: 79_000, deadlineMs: 94_000, machineEndsMs: null },
    { type: "backlog.handedBack" },
    { type: "slots.emptied", atMs: 80_000, hasTrainState: false },
    { type: "slots.emptied", atMs: 80_000, hasTrainState: true },
    { type: "trainState.settled", atMs: 81_000, tookMs: 1_000 },
    { type: "worker.started", atMs: 101_000, boot: "this boot" },
    { type: "results.flushed" },
    { type: "time.isUp", atMs: 100_000 },
  ],
};

/** Requests and starts that come again make too many ways; these meet one of each. */
const calmDrainPaths: PathOptions<typeof spotDrain> = {
  ...drainPaths,
  events: (context) =>
    drainPaths.events(context).filter((event) => !("cause" in event) || event.cause === "gcp"),
  stopAt: ({ boot, sinceMs }) => boot !== "" || sinceMs === 101_000,
};

const lifePaths = (...incarnations: readonly string[]): PathOptions<typeof workerLifecycle> => ({
  machine: workerLifecycle,
  input: { incarnation: "01B" },
  events: () => [
    ...incarnations.flatMap((incarnation) => [
      { type: "worker.welcomed" as const, incarnation },
      { type: "worker.drain" as const, incarnation },
      { type: "worker.left" as const, incarnation },
      { type: "worker.started" as const, incarnation },
      { type: "beat.arrived" as const, incarnation },
    ]),
    { type: "beat.overdue" },
    { type: "beat.timedOut" },
    { type: "worker.expired" },
  ],
});

/** Asked to drain or not, each state is another; so the shortest ways are enough. */
const drainAskedPaths: PathOptions<typeof workerLifecycle> = {
  ...lifePaths("01A", "01B", "01C"),
  events: (context) => [
    ...lifePaths("01A", "01B", "01C").events(context),
    { type: "worker.drainAsked", incarnation: "01A" },
    { type: "worker.drainAsked", incarnation: "01B" },
  ],
};

const stayLimits = { orphanMs: 30, lifetimeMs: 100, idleMs: 20 };

const stayPaths: PathOptions<typeof workerStay> = {
  machine: workerStay,
  events: () => [
    { type: "worker.started", atMs: 10, boot: "this boot", limits: stayLimits },
    { type: "leader.answered", atMs: 20 },
    { type: "leader.lost", atMs: 15 },
    { type: "work.began" },
    { type: "work.ended", atMs: 25 },
    { type: "time.passed", atMs: 50 },
    { type: "time.passed", atMs: 110 },
  ],
};

const trustPaths: PathOptions<typeof workerTrust> = {
  machine: workerTrust,
  input: { incarnation: "01A", maxFailuresInRow: 2 },
  events: ({ incarnation }) => [
    { type: "item.succeeded", incarnation },
    { type: "item.failed", incarnation, atMs: 5, othersSucceededAtMs: 5 },
    { type: "item.failed", incarnation, atMs: 5, othersSucceededAtMs: 4 },
    { type: "item.failedElsewhere" },
    { type: "worker.started", incarnation: "01B" },
  ],
  stopAt: ({ failuresInRow }) => failuresInRow > 3,
};

/** When it was tried doubles the states in which it is cordoned: with fewer failures there are few enough ways. */
const triedPaths: PathOptions<typeof workerTrust> = {
  ...trustPaths,
  events: (context) => [
    ...trustPaths.events(context),
    { type: "worker.tried", incarnation: context.incarnation, atMs: 9 },
  ],
  stopAt: ({ failuresInRow }) => failuresInRow > 2,
};

function driveCompiled(machine: AnyStateMachine, input: unknown, paths: readonly Path[]): void {
  const compiled = compile(machine);
  for (const path of paths) {
    const live = LiveActor.begin(machine, input);
    let row = compiled.initial(input);
    for (const event of path) {
      const effects: Effect[] = [];
      row = compiled.step(row, event, effects);
      live.send(event);
      expect({ state: compiled.states[row.state], context: row.context as unknown, effects }).to.deep.equal(
        live.outcome,
        describePath(path, event),
      );
    }
  }
}

/** One actor for each path. Effects are compared as a whole at its end: what XState's own did, in its order. */
async function driveActors(
  chart: string,
  machine: AnyStateMachine,
  input: unknown,
  paths: readonly Path[],
): Promise<void> {
  const clock = new VirtualClock();
  const performed = new Map<string, string[]>();
  const system = await ActorSystem.open({
    store: new MemoryStore(),
    charts,
    clock,
    random: seededRandom(1),
    log: silentLogger,
    durability: "flush",
    perform: ({ address, type, params }) =>
      void performed.set(address, [...(performed.get(address) ?? []), JSON.stringify([type, params])]),
    onFatal: (error) => {
      throw error;
    },
  });
  for (const [at, path] of paths.entries()) {
    const address = `path/${at}`;
    const live = LiveActor.begin(machine, input);
    const asked = [...live.outcome.effects];
    await system.spawn(address, chart, input);
    for (const event of path) {
      const outcome = live.send(event);
      const { state, context, effects } = live.outcome;
      asked.push(...effects);
      const delivery = await system.send(address, event);
      expect([delivery.kind, system.stateOf(address), system.contextOf(address)]).to.deep.equal(
        [outcome === undefined ? "ignored" : "moved", state, context],
        describePath(path, event),
      );
    }
    await clock.advance();
    expect(performed.get(address) ?? []).to.deep.equal(
      asked.map(({ type, params }) => JSON.stringify([type, params ?? null])),
      describePath(path),
    );
  }
  await system.close();
}

function describePath(path: Path, upTo?: Path[number]): string {
  const events = upTo === undefined ? path : path.slice(0, path.indexOf(upTo) + 1);
  return events.map((event) => JSON.stringify(event)).join(" ");
}

function both<Machine extends AnyStateMachine>(options: PathOptions<Machine>) {
  return { ...options, simple: simplePaths(options), shortest: shortestPaths(options) };
}

describe("generated paths", () => {
  const all = [
    {
      chart: "allocation",
      ...allocationPaths,
      simple: [allocationPaths, repeatedAllocationPaths].flatMap((paths) => simplePaths(paths)),
      shortest: [allocationPaths, repeatedAllocationPaths].flatMap((paths) => shortestPaths(paths)),
    },
    {
      chart: "coordinator-role",
      ...rolePaths,
      // One leadership is enough for simple paths; their number explodes.
      simple: simplePaths({ ...rolePaths, stopAt: ({ ending }) => ending !== null }),
      shortest: shortestPaths(rolePaths),
    },
    { chart: "execution", ...both(executionPaths) },
    {
      chart: "fleet",
      ...fleetPaths,
      simple: simplePaths(unpausedFleetPaths),
      shortest: shortestPaths(fleetPaths),
    },
    { chart: "key", ...both(keyPaths) },
    { chart: "release", ...both(releasePaths(false)) },
    { chart: "release", name: "release that a breach holds", ...both(releasePaths(true)) },
    { chart: "release-stage", ...both(stagePaths) },
    { chart: "run", ...both(runPaths) },
    {
      chart: "spot-drain",
      ...drainPaths,
      simple: simplePaths(calmDrainPaths),
      shortest: shortestPaths(drainPaths),
    },
    {
      chart: "work-item",
      ...itemPaths,
      // Two assignments are enough for simple paths; their number explodes.
      simple: [itemPaths, restlessItemPaths, triedItemPaths].flatMap((paths) =>
        simplePaths({ ...paths, stopAt: ({ attempt }) => attempt > 2 }),
      ),
      shortest: [itemPaths, restlessItemPaths, triedItemPaths].flatMap((paths) => shortestPaths(paths)),
    },
    {
      chart: "worker-lifecycle",
      ...lifePaths(),
      simple: simplePaths(lifePaths("01B")),
      shortest: shortestPaths(drainAskedPaths),
    },
    { chart: "worker-stay", ...both(stayPaths) },
    {
      chart: "worker-trust",
      ...trustPaths,
      simple: [trustPaths, triedPaths].flatMap((paths) => simplePaths(paths)),
      shortest: [trustPaths, triedPaths].flatMap((paths) => shortestPaths(paths)),
    },
  ];

  it("are there for every chart of the registry", () => {
    expect([...new Set(all.map(({ chart }) => chart))]).to.deep.equal(Object.keys(charts));
    for (const { chart, simple, shortest } of all)
      expect(Math.min(simple.length, shortest.length), chart).to.be.above(0);
  });

  for (const chart of Object.keys(charts))
    it(`${chart}: the shortest ones take every transition`, () => {
      const walks = all.filter((walk) => walk.chart === chart);
      const untaken = (paths: (walk: (typeof walks)[number]) => readonly Path[]): string[] =>
        walks
          .map((walk) => untakenTransitions(walk.machine, walk.input, paths(walk)))
          .reduce((some, others) => some.filter((one) => others.includes(one)));
      expect(untaken(({ shortest }) => shortest)).to.deep.equal([]);
      expect(untaken(({ shortest }) => shortest.slice(0, 1))).not.to.deep.equal([]);
    });

  for (const { chart, machine, input, simple, shortest, ...rest } of all) {
    const name = "name" in rest ? rest.name : chart;
    for (const [kind, paths] of Object.entries({ simple, shortest })) {
      const compiles = chart !== "coordinator-role";
      if (compiles)
        it(`${name}: the compiled chart goes all ${paths.length} ${kind} ones like XState's own`, () => {
          driveCompiled(machine, input, paths);
        });
      it(`${name}: an actor goes all ${paths.length} ${kind} ones like XState's own`, async () => {
        await driveActors(chart, machine, input, paths);
      });
    }
  }
});
