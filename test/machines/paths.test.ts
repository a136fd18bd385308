// Ways through each chart, generated from the chart: the compiled form and the real actor system over a store are driven
// along them and must be where the interpreter is after every step.
import { expect } from "chai";
import type { AnyStateMachine } from "xstate";
import { coordinatorRole } from "../../machines/coordinator-role.ts";
import { execution } from "../../machines/execution.ts";
import { charts } from "../../machines/index.ts";
import { run } from "../../machines/run.ts";
import { spotDrain } from "../../machines/spot-drain.ts";
import { workItem } from "../../machines/work-item.ts";
import type { ItemContext } from "../../machines/work-item.ts";
import { workerLifecycle } from "../../machines/worker-lifecycle.ts";
import { workerTrust } from "../../machines/worker-trust.ts";
import { seededRandom } from "../../src/base/random.ts";
import { silentLogger } from "../../src/observe/log.ts";
import { compile } from "../../src/runtime/compile.ts";
import type { Effect } from "../../src/runtime/compile.ts";
import { ActorSystem } from "../../src/runtime/driver.ts";
import { TransitionPlanner } from "../../src/runtime/transition.ts";
import { MemoryStore } from "../../src/storage/memory/memory-store.ts";
import { shortestPaths, simplePaths, untakenTransitions } from "../support/chart-paths.ts";
import type { Path, PathOptions } from "../support/chart-paths.ts";
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
    { type: "lease.won", epoch: 1 },
    { type: "lease.won", epoch: 2 },
    { type: "lease.lost", reason: "stolen", seenEpoch: 3 },
    { type: "lease.lost", reason: "late", seenEpoch: null },
    { type: "lease.resigned" },
  ],
};

const drainPaths: PathOptions<typeof spotDrain> = {
  machine: spotDrain,
  events: () => [
    { type: "drain.requested", cause: "gcp", deadlineMs: 100_000 },
    { type: "drain.requested", cause: "sigterm", deadlineMs: 94_000 },
    { type: "backlog.handedBack" },
    { type: "slots.emptied", atMs: 80_000, trainStateCostMs: null },
    { type: "slots.emptied", atMs: 80_000, trainStateCostMs: 5_000 },
    { type: "trainState.settled", atMs: 81_000 },
    { type: "flush.expired" },
    { type: "worker.started" },
    { type: "results.flushed" },
    { type: "deadline.reached", atMs: 100_000 },
  ],
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
  const planner = new TransitionPlanner(machine);
  for (const path of paths) {
    let row = compiled.initial(input);
    let snapshot = planner.begin(input).snapshot;
    for (const { event, state, context } of path) {
      const effects: Effect[] = [];
      row = compiled.step(row, event, effects);
      const planned = planner.plan(snapshot, event);
      if (planned.kind === "moved") snapshot = planned.snapshot;
      expect([compiled.states[row.state], row.context, effects]).to.deep.equal(
        [state, context, planned.kind === "moved" ? planned.actions : []],
        describePath(path, event),
      );
    }
  }
}

/** One actor for each path. Effects are compared as a whole at its end: what the interpreter asked for, in its order. */
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
  const planner = new TransitionPlanner(machine);
  for (const [at, path] of paths.entries()) {
    const address = `path/${at}`;
    const begun = planner.begin(input);
    let { snapshot } = begun;
    const asked = [...begun.actions];
    await system.spawn(address, chart, input);
    for (const { event, state, context } of path) {
      const planned = planner.plan(snapshot, event);
      if (planned.kind === "moved") {
        asked.push(...planned.actions);
        snapshot = planned.snapshot;
      }
      const delivery = await system.send(address, event);
      expect([delivery.kind, system.stateOf(address), system.contextOf(address)]).to.deep.equal(
        [planned.kind, state, context],
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

function describePath(path: Path, upTo?: object): string {
  const events = path.map(({ event }) => event);
  const until = upTo === undefined ? events.length : events.indexOf(upTo as Path[number]["event"]) + 1;
  return events
    .slice(0, until)
    .map((event) => JSON.stringify(event))
    .join(" ");
}

describe("generated paths", () => {
  const all = [
    {
      chart: "coordinator-role",
      ...rolePaths,
      simple: simplePaths(rolePaths),
      shortest: shortestPaths(rolePaths),
    },
    {
      chart: "execution",
      ...executionPaths,
      simple: simplePaths(executionPaths),
      shortest: shortestPaths(executionPaths),
    },
    { chart: "run", ...runPaths, simple: simplePaths(runPaths), shortest: shortestPaths(runPaths) },
    {
      chart: "spot-drain",
      ...drainPaths,
      simple: simplePaths(drainPaths),
      shortest: shortestPaths(drainPaths),
    },
    {
      chart: "work-item",
      ...itemPaths,
      // Two assignments are enough for simple paths; their number explodes.
      simple: [itemPaths, restlessItemPaths].flatMap((paths) =>
        simplePaths({ ...paths, stopAt: ({ attempt }) => attempt > 2 }),
      ),
      shortest: [itemPaths, restlessItemPaths].flatMap((paths) => shortestPaths(paths)),
    },
    {
      chart: "worker-lifecycle",
      ...lifePaths(),
      simple: simplePaths(lifePaths("01B")),
      shortest: shortestPaths(drainAskedPaths),
    },
    {
      chart: "worker-trust",
      ...trustPaths,
      simple: [trustPaths, triedPaths].flatMap((paths) => simplePaths(paths)),
      shortest: [trustPaths, triedPaths].flatMap((paths) => shortestPaths(paths)),
    },
  ];

  it("are there for every chart of the registry", () => {
    expect(all.map(({ chart }) => chart)).to.deep.equal(Object.keys(charts));
  });

  for (const { chart, machine, input, simple, shortest } of all) {
    it(`${chart}: the shortest ones take every transition`, () => {
      expect(untakenTransitions(machine, input, shortest)).to.deep.equal([]);
      expect(untakenTransitions(machine, input, shortest.slice(0, 1))).not.to.deep.equal([]);
    });
    for (const [kind, paths] of Object.entries({ simple, shortest })) {
      const compiles = chart !== "coordinator-role";
      if (compiles)
        it(`${chart}: the compiled chart goes all ${paths.length} ${kind} ones like the interpreter`, () => {
          driveCompiled(machine, input, paths);
        });
      it(`${chart}: an actor goes all ${paths.length} ${kind} ones like the interpreter`, async () => {
        await driveActors(chart, machine, input, paths);
      });
    }
  }
});
