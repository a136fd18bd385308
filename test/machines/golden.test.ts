// Snapshots that are on somebody's disk: written once by the version that their file names, and read here by the chart as
// it is now. The expectations of them may change with a migration, their bytes may not.
import { expect } from "chai";
import { readdirSync, readFileSync } from "node:fs";
import { charts } from "../../machines/index.ts";
import { seededRandom } from "../../src/base/random.ts";
import { silentLogger } from "../../src/observe/log.ts";
import { ActorSystem } from "../../src/runtime/driver.ts";
import { MemoryStore } from "../../src/storage/memory/memory-store.ts";
import { actorKey } from "../../src/storage/keys.ts";
import { GOLDEN_FOLDER } from "../../scripts/structure-lock.ts";
import { GOLDEN_WALL_MS } from "./golden-snapshots.ts";
import type { GoldenRecords } from "./golden-snapshots.ts";
import { VirtualClock } from "../support/virtual-clock.ts";

interface Expected {
  readonly state: string;
  readonly context: object;
  /** It goes on: an event and where it leads. */
  readonly then: readonly [
    event: { readonly type: string; readonly [field: string]: unknown },
    state: string,
  ];
}

const incarnation = "01B";
const attempt = { worker: "w1", incarnation: "i1", attempt: 1, epoch: 4 };
const maxima = { maxAttempts: 3, maxLost: 5, maxReturns: 10 };
const history = { failedBy: "", blamed: "", isApart: false, returnedAtMs: [] };
const budgets = { charged: 0, lost: 0, ...history, trial: "", tried: "", ...maxima };
const failures = { failuresInRow: 0, failingSinceMs: 0, maxFailuresInRow: 5 };
const trust = { incarnation, ...failures, triedAtMs: 0 };
const drain = { cause: "gcp", deadlineMs: 100_000, untilMs: 100_000 };
const never = { cause: null, deadlineMs: Number.MAX_SAFE_INTEGER, untilMs: Number.MAX_SAFE_INTEGER };
/** A drain of version 1 or 2 ended with its process. */
const over = { sinceMs: 0, machineEndsMs: null, boot: "", saveCostMs: null };
const requested = {
  type: "drain.requested",
  cause: "gcp",
  atMs: 1,
  deadlineMs: 100_000,
  machineEndsMs: null,
};
const noticed = { ...over, sinceMs: 85_000, machineEndsMs: 115_000 };

const claimed = { type: "lease.free", weight: 1, isItsTurn: true, hasQuorum: true };

const quiet = { mail: 0, isPaused: false, hasFailed: false, isDelayed: false };

/** An allocation that was just asked for. */
const asked = {
  ...{ askedAtMs: 1_000, launchedAtMs: 1_000, missed: 0, ref: "" },
  ...{ queuedAtMs: null, bootedAtMs: null, joinedAtMs: null, endingAtMs: null, endedAtMs: null },
  ...{ cause: null, isPreempted: false, stops: 0, stopAtMs: 0, reason: "" },
};
const joined = { ...asked, bootedAtMs: 1_300, joinedAtMs: 1_300 };
const works = { failuresInRow: 0, maxFailuresInRow: 8, fullsInRow: 0, untilMs: 0, reason: "", by: "" };

const begun = {
  ...{ stage: 1, stages: 2, holdsOnBreach: false },
  ...{ heldBy: null, isUnlimited: false, reason: "", by: "ada" },
};

const restarted = [{ type: "coordinator.started" }, "Candidate.Following.Willing"] as const;
const noRole = { epoch: null, ending: null };
/** A coordinator's role, as each version has it that knows of it. */
const role = {
  candidate: {
    state: "Candidate.Following.Willing",
    context: noRole,
    then: [claimed, "Candidate.Claiming"],
  },
  claiming: { state: "Candidate.Claiming", context: noRole, then: restarted },
  leader: { state: "Leader", context: { epoch: 7, ending: null }, then: restarted },
  resigned: {
    state: "Candidate.Following.Willing",
    context: { epoch: 7, ending: { kind: "resigned", epoch: 7 } },
    then: restarted,
  },
  halted: { state: "Halted", context: { epoch: 7, ending: { kind: "halted", epoch: 7 } }, then: restarted },
  fenced: {
    state: "Fenced",
    context: { epoch: 7, ending: { kind: "fenced", epoch: 7, seenEpoch: 8, by: "01X" } },
    then: [{ type: "lease.resigned" }, "Fenced"],
  },
} as const satisfies Record<string, Expected>;
/** An item, as both versions have it. */
const keys: Readonly<Record<string, Expected>> = {
  idle: { state: "Idle", context: quiet, then: [{ type: "mail.arrived" }, "Waiting"] },
  "running, more behind it": {
    state: "Running",
    context: { ...quiet, mail: 2 },
    then: [{ type: "item.settled" }, "Waiting"],
  },
  "parked behind a failed head": {
    state: "Parked",
    context: { ...quiet, mail: 1, hasFailed: true },
    then: [{ type: "key.skipped" }, "Waiting"],
  },
  "paused while its head waits": {
    state: "Parked",
    context: { ...quiet, mail: 1, isPaused: true, isDelayed: true },
    then: [{ type: "key.resumed" }, "Delayed"],
  },
};

const items: Readonly<Record<string, Expected>> = {
  "never assigned": {
    state: "Pending",
    context: { worker: "", incarnation: "", attempt: 0, epoch: 0, ...budgets },
    then: [{ type: "item.cancelled" }, "Failed"],
  },
  running: {
    state: "Running",
    context: { ...attempt, ...budgets },
    then: [{ type: "item.succeeded", ...attempt }, "Done"],
  },
  "pending after an error": {
    state: "Pending",
    context: { ...attempt, ...budgets, charged: 1, failedBy: "w1", blamed: "w1" },
    then: [{ type: "item.succeededLate", ...attempt }, "Done"],
  },
  done: {
    state: "Done",
    context: { ...attempt, ...budgets },
    then: [{ type: "item.cancelled" }, "Done"],
  },
  "pending, handed back and apart": {
    state: "Pending",
    context: { ...attempt, attempt: 2, ...budgets, isApart: true, returnedAtMs: [GOLDEN_WALL_MS] },
    then: [{ type: "item.adopted", ...attempt, attempt: 3 }, "Running"],
  },
};
const expired: Expected = { state: "Expired", context: {}, then: [{ type: "result.unwanted" }, "Unwanted"] };
/** A drain, as versions 1 and 2 have it. */
const idle: Expected = {
  state: "Idle",
  context: { ...never, ...over },
  then: [requested, "Draining.HandingBack"],
};
const handingBack: Expected = {
  state: "Draining.HandingBack",
  context: { ...drain, ...over },
  then: [{ type: "backlog.handedBack" }, "Draining.Finishing"],
};
const flushing: Expected = {
  state: "Draining.Flushing",
  context: { ...drain, ...over },
  then: [{ type: "results.flushed" }, "Drained"],
};

const stays = {
  ...{ orphanMs: 30_000, lifetimeMs: 100_000, idleMs: 20_000, boot: "this boot", beganAtMs: 80_000 },
  ...{ awaitedFromMs: 80_000, untilMs: 110_000, cause: null },
};

const EXPECTED: Readonly<Record<string, Readonly<Record<string, Expected>>>> = {
  "allocation@1": {
    "asked for": {
      state: "Requested",
      context: asked,
      then: [{ type: "launch.refused", atMs: 2_000, reason: "no" }, "Failed"],
    },
    "in its queue": {
      state: "Queued",
      context: { ...asked, ref: "7", queuedAtMs: 1_100 },
      then: [{ type: "list.running", atMs: 2_000, ref: "7" }, "Booting"],
    },
    joined: {
      state: "Joined",
      context: { ...joined, ref: "7", bootedAtMs: 1_200 },
      then: [{ type: "list.gone", atMs: 2_000 }, "Gone"],
    },
    "ending, and told so": {
      state: "Ending",
      context: { ...joined, endingAtMs: 1_400, cause: "idle", stops: 1, stopAtMs: 1_600 },
      then: [{ type: "list.gone", atMs: 2_000 }, "Gone"],
    },
    "gone, preempted": {
      state: "Gone",
      context: { ...joined, endedAtMs: 1_400, isPreempted: true },
      then: [{ type: "worker.joined", atMs: 2_000 }, "Gone"],
    },
  },
  "coordinator-role@1": {
    "a candidate": { ...role.candidate, then: restarted },
    "a leader": role.leader,
    "fenced, the abort not done": {
      state: "Fenced",
      context: { epoch: 7, ending: { kind: "fenced", epoch: 7, seenEpoch: null, by: null } },
      then: restarted,
    },
  },
  "coordinator-role@2": {
    "a candidate": role.candidate,
    "a leader": role.leader,
    "a candidate that has resigned": role.resigned,
    "fenced, the abort not done": role.fenced,
  },
  "coordinator-role@3": {
    "a candidate": role.candidate,
    "a candidate that claims": role.claiming,
    "a leader": role.leader,
    "a candidate that has resigned": role.resigned,
    "halted, the leader it was": role.halted,
    "fenced, the abort not done": role.fenced,
  },
  "coordinator-role@4": {
    "a candidate": role.candidate,
    "a candidate that claims": role.claiming,
    "a leader": role.leader,
    "a candidate that has resigned": role.resigned,
    "a candidate that has made room": {
      state: "Candidate.Following.Yielding",
      context: { epoch: 7, ending: { kind: "resigned", epoch: 7 } },
      then: [{ type: "lease.held" }, "Candidate.Following.Willing"],
    },
    "halted, the leader it was": role.halted,
    "fenced, the abort not done": role.fenced,
  },
  "execution@1": {
    "just started": {
      state: "Executing",
      context: {},
      then: [{ type: "execution.waits" }, "Waiting"],
    },
    "over its time": expired,
  },
  "execution@2": {
    "just started": {
      state: "Executing",
      context: {},
      then: [{ type: "execution.withheld" }, "Withheld"],
    },
    "over its time": expired,
    "not let begin": {
      state: "Withheld",
      context: {},
      then: [{ type: "worker.leaves" }, "Abandoned"],
    },
  },
  "fleet@1": {
    active: {
      state: "Active",
      context: works,
      then: [{ type: "provider.full", untilMs: 9, reason: "quota" }, "Cooling"],
    },
    "cooling after a failure": {
      state: "Cooling",
      context: { ...works, failuresInRow: 1, untilMs: 2_000, reason: "no image" },
      then: [{ type: "time.passed", atMs: 2_000 }, "Active"],
    },
    paused: {
      state: "Paused",
      context: { ...works, reason: "at night", by: "ada" },
      then: [{ type: "fleet.resumed", by: "bob" }, "Active"],
    },
    spent: {
      state: "Spent",
      context: { ...works, reason: "max_cost" },
      then: [{ type: "budget.left" }, "Active"],
    },
    "spent, a person asked": {
      state: "Deferred",
      context: { ...works, reason: "max_cost" },
      then: [{ type: "help.came" }, "Spent"],
    },
  },
  "key@1": keys,
  "release@1": {
    "just begun": {
      state: "Rolling",
      context: begun,
      then: [{ type: "verdict.breached", reason: "worse", by: "" }, "RolledBack"],
    },
    "held, without a verdict": {
      state: "Held",
      context: { ...begun, heldBy: "limit", reason: "no verdict", by: "" },
      then: [{ type: "release.resumed", reason: "", by: "bob" }, "Rolling"],
    },
    "in its last stage": {
      state: "Rolling",
      context: { ...begun, stage: 2, reason: "proof", by: "" },
      then: [{ type: "stage.promoted", reason: "proof", by: "" }, "Completed"],
    },
    completed: {
      state: "Completed",
      context: { ...begun, stage: 2, by: "bob" },
      then: [{ type: "release.aborted", reason: "", by: "" }, "Completed"],
    },
  },
  "release-stage@1": {
    waiting: {
      state: "Waiting",
      context: { openedAtMs: null, endedAtMs: null, promotedBy: null },
      then: [{ type: "stage.opened", atMs: 5 }, "Active"],
    },
    active: {
      state: "Active",
      context: { openedAtMs: 5, endedAtMs: null, promotedBy: null },
      then: [{ type: "stage.breached", atMs: 9 }, "Breached"],
    },
    promoted: {
      state: "Promoted",
      context: { openedAtMs: 5, endedAtMs: 9, promotedBy: "operator" },
      then: [{ type: "stage.abandoned", atMs: 10 }, "Promoted"],
    },
  },
  "key@2": keys,
  "run@1": {
    "just opened": {
      state: "Open.Active",
      context: { pauseReason: null },
      then: [{ type: "run.sealed" }, "Sealed.Active"],
    },
    "sealed and paused": {
      state: "Sealed.Paused",
      context: { pauseReason: "over budget" },
      then: [{ type: "run.completed" }, "Complete"],
    },
    complete: {
      state: "Complete",
      context: { pauseReason: null },
      then: [{ type: "run.reopened" }, "Sealed.Active"],
    },
  },
  "spot-drain@1": { idle, "handing back, the deadline armed": handingBack, flushing },
  "spot-drain@2": { idle, "handing back": handingBack, flushing },
  "spot-drain@3": {
    idle,
    "handing back": {
      state: "Draining.HandingBack",
      context: { ...drain, ...noticed },
      then: [{ type: "backlog.handedBack" }, "Draining.Finishing"],
    },
    flushing: {
      state: "Draining.Flushing",
      context: { ...drain, ...noticed, untilMs: 96_000 },
      then: [{ type: "time.isUp", atMs: 96_000 }, "Drained"],
    },
    "drained on a boot, a save measured": {
      state: "Drained",
      context: { ...drain, ...noticed, untilMs: 97_000, boot: "this boot", saveCostMs: 1_000 },
      then: [{ type: "worker.started", atMs: 99_000, boot: "this boot" }, "Draining.GoingOn"],
    },
  },
  "work-item@1": items,
  "work-item@2": {
    ...items,
    "running on trial": {
      state: "Running",
      context: { ...attempt, ...budgets, trial: "01R" },
      then: [{ type: "item.erredOnTrial", ...attempt }, "Pending"],
    },
    "pending, failed by a candidate": {
      state: "Pending",
      context: { ...attempt, ...budgets, trial: "01R", tried: "01R" },
      then: [{ type: "item.assigned", ...attempt }, "Running"],
    },
  },
  "worker-stay@1": {
    "nothing known": {
      state: "Alone",
      context: {
        ...{ orphanMs: null, lifetimeMs: null, idleMs: null, boot: "", beganAtMs: 0, awaitedFromMs: 0 },
        ...{ untilMs: Number.MAX_SAFE_INTEGER, cause: null },
      },
      then: [{ type: "leader.answered", atMs: 1 }, "Idle"],
    },
    alone: {
      state: "Alone",
      context: stays,
      then: [{ type: "time.passed", atMs: 110_000 }, "Leaving"],
    },
    idle: {
      state: "Idle",
      context: { ...stays, awaitedFromMs: 80_500, untilMs: 100_500 },
      then: [{ type: "work.began" }, "Working"],
    },
    working: {
      state: "Working",
      context: { ...stays, awaitedFromMs: 80_500, untilMs: 180_000 },
      then: [{ type: "leader.lost", atMs: 81_000 }, "Alone"],
    },
    leaving: {
      state: "Leaving",
      context: { ...stays, untilMs: Number.MAX_SAFE_INTEGER, cause: "orphan" },
      then: [
        {
          ...{ type: "worker.started", atMs: 120_000, boot: "this boot" },
          limits: { orphanMs: null, lifetimeMs: null, idleMs: null },
        },
        "Alone",
      ],
    },
  },
  "worker-trust@1": {
    trusted: {
      state: "Trusted",
      context: trust,
      then: [{ type: "item.failedElsewhere" }, "Trusted"],
    },
    "trusted, after a failure": {
      state: "Trusted",
      context: { ...trust, failuresInRow: 1, failingSinceMs: 1_000 },
      then: [{ type: "item.succeeded", incarnation }, "Trusted"],
    },
    cordoned: {
      state: "Cordoned",
      context: { ...trust, failuresInRow: 5, failingSinceMs: 1_000, triedAtMs: 1_000 },
      then: [{ type: "item.failedElsewhere" }, "Trusted"],
    },
  },
  "worker-lifecycle@1": {
    "just started": {
      state: "Init+Alive",
      context: { incarnation, isToDrain: false },
      then: [{ type: "worker.welcomed", incarnation }, "Ready+Alive"],
    },
    "ready and heard of": {
      state: "Ready+Alive",
      context: { incarnation, isToDrain: false },
      then: [{ type: "beat.overdue" }, "Ready+Suspected"],
    },
    "asked to drain": {
      state: "Ready+Alive",
      context: { incarnation, isToDrain: true },
      then: [{ type: "worker.drain", incarnation }, "Draining+Alive"],
    },
    "draining and failed": {
      state: "Draining+Failed",
      context: { incarnation, isToDrain: false },
      then: [{ type: "beat.arrived", incarnation }, "Draining+Alive"],
    },
    gone: {
      state: "Gone+Removed",
      context: { incarnation, isToDrain: false },
      then: [{ type: "worker.started", incarnation: "01C" }, "Init+Alive"],
    },
  },
};

describe("golden snapshots", () => {
  const files = readdirSync(GOLDEN_FOLDER).map((file) => file.replace(/\.json$/, ""));

  it("are all expected", () => {
    expect(files.sort()).to.deep.equal(Object.keys(EXPECTED).sort());
  });

  for (const file of files) {
    const records = JSON.parse(readFileSync(`${GOLDEN_FOLDER}/${file}.json`, "utf8")) as GoldenRecords;

    it(`${file} holds what is expected of it`, () => {
      expect(Object.keys(records).sort()).to.deep.equal(Object.keys(EXPECTED[file] ?? {}).sort());
    });

    for (const [name, { address, bytes }] of Object.entries(records))
      it(`${file}, ${name}: is read and goes on`, async () => {
        const expected = EXPECTED[file]?.[name];
        expect(expected).not.to.equal(undefined);
        const clock = new VirtualClock({ wallMs: GOLDEN_WALL_MS + 1_000 });
        const system = await ActorSystem.open({
          store: new MemoryStore([{ key: actorKey(address), value: Buffer.from(bytes, "hex") }]),
          charts,
          clock,
          random: seededRandom(1),
          log: silentLogger,
          durability: "sync",
          perform: ({ type }) => {
            throw new Error(`${type} was for the process that wrote the snapshot`);
          },
          onFatal: (error) => {
            throw error;
          },
        });
        expect(system.stateOf(address)).to.equal(expected?.state);
        expect(system.contextOf(address)).to.deep.equal(expected?.context);
        if (expected !== undefined) await system.send(address, expected.then[0]);
        expect(system.stateOf(address)).to.equal(expected?.then[1]);
        await system.close();
      });
  }
});
