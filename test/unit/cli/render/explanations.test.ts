import { expect } from "chai";
import { itemSentences, itemText } from "../../../../src/cli/render/explain-item.ts";
import { workerDetailText, workerSentences } from "../../../../src/cli/render/explain-worker.ts";
import { runStatusText } from "../../../../src/cli/render/run-status.ts";
import {
  lackOf,
  lackText,
  troubleLines,
  workersText,
  workerWord,
} from "../../../../src/cli/render/workers.ts";
import { hintedLine } from "../../../../src/cli/shell-words.ts";
import type { EndedAttempt, Item } from "../../../../src/client/items.ts";
import type { RunStatus } from "../../../../src/client/run-status.ts";
import type { WorkerDetail, WorkerSummary } from "../../../../src/client/workers.ts";
import type { IncarnationId } from "../../../../src/base/ids.ts";
import { newWorkerId } from "../../../support/certificates.ts";
import { madeRelease } from "./made-release.ts";
import { madeStatus } from "../../../support/made-status.ts";
import { madeResult } from "../../../support/made-results.ts";

const NOW_MS = Date.UTC(2026, 10, 3, 12);
const WORKER = newWorkerId();
const line = hintedLine(undefined);

function item(change: Partial<Item> = {}): Item {
  return {
    item: "ab".repeat(32),
    itemId: Buffer.alloc(32, 0xab),
    id: "prompt-17",
    payload: new Uint8Array(),
    sequence: 16,
    priority: 0,
    state: "fresh",
    attempt: 0,
    charged: 0,
    maxAttempts: 3,
    lost: 0,
    maxLost: 5,
    worker: undefined,
    assignedAgeMs: undefined,
    dueAtMs: undefined,
    ahead: 4,
    alone: false,
    checkpointBytes: 0,
    attempts: [],
    result: undefined,
    ...{ key: undefined, keyPhase: undefined, aheadInKey: undefined, keyHead: undefined, origin: undefined },
    ...change,
  };
}

function attempt(change: Partial<EndedAttempt> = {}): EndedAttempt {
  return {
    attempt: 1,
    worker: WORKER,
    outcome: "timeout",
    message: "took longer than 10s",
    startedAtMs: NOW_MS - 20_000,
    durationMs: 10_012,
    endedAtMs: NOW_MS - 9_988,
    logBytes: 1_234,
    pluginVersion: "1",
    ...change,
  };
}

function run(change: Partial<RunStatus> = {}): RunStatus {
  return madeStatus({
    ...{ pending: 10, task: { plugin: "infer", summary: "infer: python3 infer.py" } },
    ...change,
  });
}

function worker(change: Partial<WorkerSummary> = {}): WorkerSummary {
  return {
    workerId: WORKER,
    incarnation: newWorkerId() as string as IncarnationId,
    state: "ready",
    liveness: "alive",
    load: 0.5,
    slots: 2,
    plugins: [{ name: "infer", version: "1", stateVersion: 0 }],
    registeredAtMs: NOW_MS - 60_000,
    lastBeatAgeMs: 200,
    held: 0,
    cordonReason: undefined,
    trouble: undefined,
    revoked: false,
    drain: undefined,
    unfitReason: undefined,
    ...change,
  };
}

const detail = (change: Partial<WorkerDetail> = {}): WorkerDetail => ({
  ...worker(),
  holds: [],
  credit: 2,
  hasSession: true,
  failuresInRow: 0,
  releasePart: undefined,
  ...change,
});

interface Around {
  readonly status?: Partial<RunStatus>;
  readonly workers?: readonly WorkerSummary[];
}

describe("the explanation of an item", () => {
  const explained = (what: Partial<Item>, { status = {}, workers = [worker()] }: Around = {}): string =>
    itemSentences({ item: item(what), run: run(status), workers, nowMs: NOW_MS, line }).join(" ");

  for (const [why, text, args] of [
    ["others go first", "4 items are ahead of it. One worker can run it.", [{}]],
    ["one goes first", "1 item is ahead of it.", [{ ahead: 1 }]],
    ["nothing goes first", "No item is ahead of it.", [{ ahead: 0 }]],
    ["too many to count go first", "10,000 or more items are ahead of it.", [{ ahead: undefined }]],
    [
      "the run is paused",
      "The run is paused (lunch): nothing is assigned until `rollout resume`.",
      [{}, { status: { state: "paused", pauseReason: "lunch" } }],
    ],
    [
      "others of its key go first",
      "2 items of its key go first, and abababababab is the next of them: items of k 1 run one at a time, in order.",
      [{ key: "k 1", keyPhase: "running", aheadInKey: 2, keyHead: "ab".repeat(32) }],
    ],
    [
      "its key is parked",
      "run one at a time, in order. Its key is parked: `rollout key get 'k 1'` says why.",
      [{ key: "k 1", keyPhase: "parked", aheadInKey: 2, keyHead: "ab".repeat(32) }],
    ],
    [
      "it is the next of its key",
      "It is the next item of its key, k 1. No item is ahead of it.",
      [{ key: "k 1", keyPhase: "waiting", aheadInKey: 0, ahead: 0 }],
    ],
    ["there are no workers", "There is no worker: `rollout worker run` starts one.", [{}, { workers: [] }]],
    [
      "all workers have left or are lost",
      "There is no worker:",
      [
        {},
        { workers: [worker({ state: "gone" }), worker({ liveness: "failed" }), worker({ revoked: true })] },
      ],
    ],
    [
      "no worker has the plugin",
      "The only worker does not have the plugin infer.",
      [{}, { workers: [worker({ plugins: [{ name: "other", version: "1", stateVersion: 0 }] })] }],
    ],
    [
      "no worker takes work",
      "No worker takes work: 1 draining, 1 suspected, 1 cordoned.",
      [
        {},
        {
          workers: [
            worker({ state: "draining" }),
            worker({ liveness: "suspected" }),
            worker({ cordonReason: "x" }),
          ],
        },
      ],
    ],
    ["the workers are full", "The worker that can run it is full.", [{}, { workers: [worker({ held: 2 })] }]],
    ["it must run alone", "It is isolated, so it waits", [{ alone: true, lost: 2 }]],
    [
      "it came back",
      "assigned again: attempt 2 ended as preempted.",
      [{ state: "returned", attempts: [attempt(), attempt({ attempt: 2, outcome: "preempted" })] }],
    ],
    [
      "it waits after a failure",
      "Attempt 1 did not succeed, so it waits 4.0 s more",
      [{ state: "delayed", attempt: 1, dueAtMs: NOW_MS + 4_000 }],
    ],
    [
      "a worker has it",
      `Worker ${WORKER} has it, for 1m 05s, as attempt 2; 1 of 3 allowed failures are used up.`,
      [{ state: "running", worker: WORKER, attempt: 2, charged: 1, assignedAgeMs: 65_000 }],
    ],
    [
      "a worker that fell silent has it",
      `That worker is suspected: \`rollout explain ${WORKER}\`.`,
      [{ state: "running", worker: WORKER, attempt: 1 }, { workers: [worker({ liveness: "suspected" })] }],
    ],
    [
      "the worker that has it has trouble",
      "That worker reports a problem: loading, for 12 s\\u001b[2J.",
      [
        { state: "running", worker: WORKER, attempt: 1 },
        { workers: [worker({ trouble: "loading, for 12 s\u001b[2J" })] },
      ],
    ],
    ["it is done", "It is done: attempt 1 succeeded on worker", [{ state: "done", result: madeResult(1) }]],
    [
      "it has failed",
      "It has failed as error with attempt 1",
      [{ state: "failed", charged: 3, result: madeResult(2) }],
    ],
    [
      "it was cancelled before it ran",
      "It has failed as cancelled: the run was cancelled",
      [
        {
          state: "failed",
          result: madeResult(2, {
            attempt: 0,
            worker: undefined,
            startedAtMs: undefined,
            durationMs: undefined,
            error: { class: "cancelled", message: "the run was cancelled" },
          }),
        },
      ],
    ],
    [
      "workers were lost with it",
      "Its worker vanished twice while it ran; it fails when that has happened 5 times.",
      [{ lost: 2 }],
    ],
    [
      "it left a checkpoint",
      "continues from a checkpoint of 2,048 bytes.",
      [{ state: "returned", checkpointBytes: 2_048 }],
    ],
  ] as const) {
    it(`says it when ${why}`, () => {
      const [what, around] = args as readonly [Partial<Item>, Around?];
      expect(explained(what, around)).to.contain(text);
    });
  }

  it("says how to have a failed one tried again", () => {
    expect(explained({ state: "failed", result: madeResult(2) })).to.contain("`rollout retry abababababab`");
  });

  it("stands under the item's names, above its attempts, and obeys nothing that others wrote", () => {
    const situation = {
      item: item({ id: "a\u001b[2J", state: "returned", attempts: [attempt({ message: "x\ny\u001b[2J" })] }),
      run: run(),
      workers: [worker()],
      nowMs: NOW_MS,
      line,
    };
    const text = itemText(situation);
    expect(text).to.match(
      /^item (?:ab){32}\n {2}It is number 17 of the run, and "a\\u001b\[2J" in the input\.\n {2}It is waiting/,
    );
    expect(text).to.match(
      /ATTEMPT {2}OUTCOME .*\n {6}1 {2}timeout .* 10\.0 s {2}1,234 B {2}x\\ny\\u001b\[2J\n$/,
    );
    expect(text).to.not.contain("\u001b");
  });
});

describe("the explanation of an item while a release is under way", () => {
  const explained = (what: Partial<Item>, release: RunStatus["release"]): string =>
    itemSentences({ item: item(what), run: run({ release }), workers: [worker()], nowMs: NOW_MS, line }).join(
      " ",
    );
  const sentence = "Under way is a release of version 2: rolling, stage 1 of 3 (10%): too few items.";

  it("names the release for an item that waits, and for no other", () => {
    expect(explained({}, madeRelease())).to.contain(sentence);
    expect(explained({ state: "done" }, madeRelease())).to.not.contain("release");
  });

  it("does not mention a release that is over", () => {
    expect(explained({}, madeRelease({ state: "completed" }))).to.not.contain("release");
    expect(explained({}, undefined)).to.not.contain("release");
  });

  it("says whom to ask where no worker has the version that the run executes", () => {
    const workers = [worker({ unfitReason: "it does not have version 2 of infer" })];
    expect(itemSentences({ item: item(), run: run(), workers, nowMs: NOW_MS, line })).to.include(
      `No worker has the version of the plugin infer that the run executes now: \`rollout explain ${WORKER}\` says what to do.`,
    );
  });
});

describe("the explanation of a worker", () => {
  const explained = (what: Partial<WorkerDetail>, status: Partial<RunStatus> = {}): string =>
    workerSentences(detail(what), run(status), line).join(" ");

  for (const [why, text, args] of [
    ["it has left", "It has drained and left", [{ state: "gone" }]],
    [
      "it is lost",
      "It has failed. It was last heard 9.0 s ago.",
      [{ liveness: "failed", lastBeatAgeMs: 9_000 }],
    ],
    [
      "it is revoked",
      "Its certificate was revoked: the coordinator accepts nothing from it, and it cannot come back. It has 2 items, which go to other workers",
      [{ revoked: true, liveness: "suspected", held: 2 }],
    ],
    [
      "it was revoked when it had left",
      "was revoked: it cannot come back",
      [{ revoked: true, state: "gone" }],
    ],
    ["it was removed", "the coordinator has forgotten it", [{ liveness: "removed" }]],
    ["it is late", "Its heartbeat is late. It was last heard 200 ms ago.", [{ liveness: "suspected" }]],
    ["it drains", "It is draining: it gets no new items", [{ state: "draining" }]],
    [
      "it drains, and has said how far it is",
      "It drains because AWS is about to take its machine away; items that still execute in 1m 30s are abandoned.",
      [{ state: "draining", drain: { state: "Draining.Finishing", cause: "aws", leftMs: 90_000 } }],
    ],
    ["it has only started", "It is starting", [{ state: "init" }]],
    [
      "it is cordoned",
      "It is cordoned and gets no items: 5 failures in a row.",
      [{ cordonReason: "5 failures in a row" }],
    ],
    ["it has no session", "so it has not asked for items", [{ hasSession: false, credit: 0 }]],
    ["the run is paused", "The run is paused (lunch)", [{}, { state: "paused", pauseReason: "lunch" }]],
    ["it has not the plugin", "the run needs the plugin infer", [{ plugins: [] }]],
    [
      "its versions are other tasks than the run's",
      "It gets no items: its own version of infer, 2\\u001b[2J, is another task than the run's.",
      [{ unfitReason: "its own version of infer, 2\u001b[2J, is another task than the run's" }],
    ],
    [
      "it is full",
      "It has 3 items for 2 slots, and was last heard 200 ms ago. It gets no more items because it is full.",
      [{ held: 3, credit: 0 }],
    ],
    ["nothing is waiting", "It has room for 2 more, and no item is waiting.", [{}, { pending: 0 }]],
    [
      "what waits may not start yet",
      "the items that wait may not start yet",
      [{}, { pending: 2, delayed: 2 }],
    ],
    ["it is about to get something", "and gets the items that wait", [{}]],
    [
      "its backend has trouble",
      "was last heard 200 ms ago. It reports a problem: loading, for 12 s\\u001b[2J.",
      [{ trouble: "loading, for 12 s\u001b[2J" }],
    ],
    ["it fails all the time", "Its last 4 attempts failed.", [{ failuresInRow: 4 }]],
  ] as const) {
    it(`says it when ${why}`, () => expect(explained(args[0], args[1])).to.contain(text));
  }

  it("says its part in a release that is under way, last", () => {
    const releasePart = "it has both versions\u001b[2J, and counts for version 2";
    const release = madeRelease();
    expect(explained({ releasePart }, { release }).split(". ").at(-1)).to.equal(
      `Release ${release.release} tries version 2: it has both versions\\u001b[2J, and counts for version 2.`,
    );
    expect(explained({}, { release })).to.not.contain("Release");
  });

  it("shows the first of its items, and how many more there are", () => {
    const holds = Array.from({ length: 25 }, (_, at) => ({
      item: at.toString(16).padStart(64, "0"),
      attempt: 1,
    }));
    const text = workerDetailText(detail({ holds, held: 25 }), run(), { nowMs: NOW_MS, line });
    expect(text).to.contain("\n    … 5 more\n").and.contain("1m ago");
    expect(text.match(/ attempt 1\n/g)).to.have.length(20);
  });
});

describe("the list of workers", () => {
  it("says of each in one word how it is", () => {
    const words = [
      worker(),
      worker({ liveness: "failed" }),
      worker({ state: "draining", liveness: "suspected" }),
      worker({ state: "draining" }),
      worker({ state: "gone", liveness: "removed" }),
      worker({ cordonReason: "x" }),
      worker({ state: "draining", cordonReason: "x" }),
      worker({ revoked: true }),
      worker({ revoked: true, liveness: "failed", cordonReason: "x" }),
      worker({ revoked: true, state: "gone" }),
    ].map(workerWord);
    expect(words).to.deep.equal([
      ...["ready", "failed", "suspected", "draining", "gone", "cordoned", "draining"],
      ...["revoked", "revoked", "gone"],
    ]);
  });

  it("has a column for the state, and says where to read why", () => {
    expect(workersText([worker({ liveness: "failed" })], line)).to.match(
      /^WORKER +STATE +ITEMS +SLOTS +LOAD .*\n\w+ {2}failed {2}/,
    );
    expect(workersText([worker({ cordonReason: "x" })], line)).to.match(
      /`rollout explain WORKER` says why .*\n$/,
    );
    expect(workersText([], line)).to.contain("No workers yet");
  });
});

describe("the trouble of workers", () => {
  const trouble = "waiting for the server at http://127.0.0.1:8000: the connection was refused, for 40 s";

  it("stands under the list of workers, a line for each that is still there, and for what one has left for", () => {
    const gone = worker({ state: "gone", trouble: "the backend of job is broken: x" });
    const lost = worker({ liveness: "failed", trouble: "x" });
    const all = [
      worker(),
      worker({ trouble }),
      worker({ liveness: "suspected", trouble: "a\u001b[2J" }),
      gone,
      lost,
    ];
    expect(workersText(all, line).split("\n").slice(-4)).to.deep.equal([
      `worker ${WORKER}: ${trouble}`,
      `worker ${WORKER}: a\\u001b[2J`,
      `worker ${WORKER}: the backend of job is broken: x`,
      "",
    ]);
    expect(troubleLines([worker({ trouble })], () => "worker 1")).to.deep.equal([`worker 1: ${trouble}`]);
    expect(troubleLines([worker()])).to.deep.equal([]);
  });

  it("names a worker none of whose versions the run executes, unless that worker is lost", () => {
    const unfitReason = "it does not have version 2 of infer";
    expect(troubleLines([worker({ trouble, unfitReason })])).to.deep.equal([
      `worker ${WORKER}: ${trouble}`,
      `worker ${WORKER}: it gets no items: ${unfitReason}`,
    ]);
    expect(troubleLines([worker({ liveness: "failed", unfitReason })])).to.deep.equal([]);
  });

  it("is a lack of all workers where none has the plugin, or the version of it", () => {
    const unfit = worker({ unfitReason: "it does not have version 2 of infer" });
    const bare = worker({ plugins: [] });
    expect(lackOf("infer", [unfit, bare])).to.equal("version");
    expect(lackOf("infer", [bare])).to.equal("plugin");
    expect(lackOf("infer", [unfit, bare, worker()])).to.equal(undefined);
    expect(lackOf("infer", [unfit, worker({ state: "gone" })])).to.equal("version");
    expect(lackOf("infer", [worker({ liveness: "failed", unfitReason: "x" })])).to.equal(undefined);
    expect(lackOf("", [bare])).to.equal(undefined);
    expect(lackText("version", "infer")).to.contain("No worker has the version of the plugin infer");
  });
});

describe("the status of a run", () => {
  const text = (change: Partial<RunStatus>): string => runStatusText(run(change), { kind: "unknown" }, line);

  it("is a block of aligned numbers, without counts that are 0", () => {
    const status = {
      ...({
        state: "sealed",
        pending: 1_869,
        delayed: 12,
        running: 8,
        executing: 6,
        done: 120,
        failed: 3,
      } as const),
      ...{
        failedByClass: { error: 2, timeout: 1 },
        workers: { ...run().workers, ready: 4, revoked: 2, cordoned: 1 },
      },
    };
    expect(text(status)).to.equal(
      [
        "The run is sealed: it ends with the last of its items.",
        "  task: infer: python3 infer.py",
        "  2,000 items",
        "    120 done",
        "      3 failed     2 error, 1 timeout",
        "      6 executing",
        "      2 assigned   not started",
        "  1,869 waiting    12 of them after a failure",
        "  no estimate yet",
        "  workers: 4 ready, 2 revoked, 1 cordoned: `rollout worker list` says why",
        "",
      ].join("\n"),
    );
    expect(text({ pending: 0, done: 1 })).to.not.match(/failed|executing|waiting/);
  });

  for (const [state, sentence] of [
    [
      { state: "paused", pauseReason: "5 failures" },
      "The run is paused (5 failures): `rollout resume` lets it go on.",
    ],
    [{ state: "complete" }, "The run is complete."],
    [{ state: "cancelled" }, "The run is cancelled."],
    [{ pending: 0, task: undefined }, "no items yet: `rollout submit` adds some"],
  ] as const) {
    it(`says "${sentence}"`, () => expect(text(state)).to.contain(sentence));
  }

  it("does not count as executing more than workers have, whatever their last beats said", () => {
    expect(text({ running: 2, executing: 5 }))
      .to.contain("2 executing")
      .and.not.contain("assigned");
  });
});

describe("a command that a text names", () => {
  const there = hintedLine("my cluster");
  const seen = { item: item(), run: run(), workers: [worker()], nowMs: NOW_MS, line: there };
  const paused = run({ state: "paused" });
  const pace = { kind: "unknown" } as const;
  const cordoned = { ...run().workers, cordoned: 1 };
  const suspected = [worker({ liveness: "suspected" })];
  const failed = item({ state: "failed", result: madeResult(2) });

  for (const [words, text] of [
    ["resume", itemText({ ...seen, run: paused })],
    ["worker run", itemText({ ...seen, workers: [] })],
    [
      `explain ${WORKER}`,
      itemText({ ...seen, item: item({ state: "running", worker: WORKER }), workers: suspected }),
    ],
    ["retry abababababab", itemText({ ...seen, item: failed })],
    ["retry abababababab", itemSentences({ ...seen, item: failed }).join(" ")],
    ["resume", workerDetailText(detail(), paused, { nowMs: NOW_MS, line: there })],
    ["resume", workerSentences(detail(), paused, there).join(" ")],
    ["worker run", workersText([], there)],
    ["explain WORKER", workersText([worker({ cordonReason: "x" })], there)],
    ["resume", runStatusText(paused, pace, there)],
    ["submit", runStatusText(run({ pending: 0 }), pace, there)],
    ["worker run", runStatusText(run(), pace, there)],
    ["worker list", runStatusText(run({ workers: cordoned }), pace, there)],
  ] as const) {
    it(`is about the configuration that the user has named: ${words}`, () => {
      expect(text).to.contain(`\`rollout ${words} -c 'my cluster'\``);
    });
  }
});
