import { expect } from "chai";
import { runStatusText } from "../../../../src/cli/render/run-status.ts";
import { lackText } from "../../../../src/cli/render/workers.ts";
import { hintedLine } from "../../../../src/cli/shell-words.ts";
import type { RunStatus } from "../../../../src/client/run-status.ts";
import { madeRelease } from "./made-release.ts";
import { madeStatus } from "../../../support/made-status.ts";

const PACE = { kind: "steady", perSecond: 4, left: { atLeastMs: 60_000, atMostMs: 120_000 } } as const;

function textOf(state: RunStatus["state"], change: Partial<RunStatus> = {}, lack?: string): string {
  const status = madeStatus({
    ...{ state, pending: 6, done: 4, sealed: true },
    pauseReason: state === "paused" ? "by an operator" : undefined,
    workers: { ...madeStatus().workers, ready: 2 },
    ...change,
  });
  return runStatusText(status, PACE, hintedLine(undefined), lack);
}

describe("the status of a run", () => {
  it("shows the pace while the run goes on", () => {
    expect(textOf("sealed")).to.contain("left").and.contain("4.0/s");
  });

  it("says in its first line what all workers lack, or that none is there", () => {
    const first = (text: string): string => text.split("\n")[0] ?? "";
    expect(first(textOf("sealed", {}, lackText("plugin", "infer")))).to.equal(
      "The run is sealed: it ends with the last of its items. No worker can execute the plugin infer.",
    );
    const workers = { ready: 0, draining: 0, suspected: 0, failed: 0, cordoned: 0, revoked: 0 };
    expect(first(textOf("sealed", { workers }))).to.contain(" There is no worker.");
    expect(first(textOf("complete", { workers, pending: 0 }))).to.not.contain("worker");
    expect(first(textOf("sealed"))).to.not.contain("worker");
  });

  it("says in a line how the release stands, also when it is over, and nothing where there was none", () => {
    const isOver = { state: "rolled_back", reason: "errors\u001b[2J" } as const;
    expect(textOf("sealed", { release: madeRelease() })).to.contain(
      "\n  release of version 2: rolling, stage 1 of 3 (10%): too few items\n",
    );
    expect(textOf("sealed", { release: madeRelease(isOver) })).to.contain(
      "\n  release of version 2: rolled back: errors\\u001b[2J\n",
    );
    expect(textOf("sealed")).to.not.contain("release");
  });

  it("says how many items wait behind parked keys, and what helps", () => {
    const keys = {
      total: 9,
      waiting: 0,
      running: 0,
      parked: 2,
      itemsBehindParked: 5,
      parkedActions: 0,
      statesSent: 0,
      statesSaved: 0,
      oldestReadyAgeMs: undefined,
    };
    expect(textOf("sealed", { keys })).to.contain(
      "\n  2 keys are parked, and 5 items wait behind them: `rollout key list --parked` says why, " +
        "`rollout retry --failed` tries failed items again, `rollout key skip --all` goes on without them\n",
    );
    expect(textOf("sealed", { keys: { ...keys, parked: 0, itemsBehindParked: 0 } })).to.not.contain("parked");
    expect(
      textOf("sealed", { keys: { ...keys, parked: 0, itemsBehindParked: 1, parkedActions: 1 } }),
    ).to.contain(
      "  the named actions of 1 actor are parked, and 1 item waits behind them: `rollout key list --parked`",
    );
    expect(textOf("sealed", { keys: { ...keys, parked: 2, parkedActions: 3 } })).to.contain(
      "  2 keys and the named actions of 3 actors are parked, and 5 items wait behind them: ",
    );
    expect(textOf("cancelled", { keys })).to.not.contain("parked");
  });

  it("says what goes on between actors, and for which timers it waits", () => {
    const inside = { pending: 2, running: 1, done: 1_200, failed: 1, stopped: 3 };
    const timers = { armed: 12, nextInMs: 29 * 86_400_000 };
    expect(textOf("sealed", { inside, timers })).to.contain(
      "\n  inside, between actors: 1,200 done, 1 failed, 1 with workers, 2 waiting, 3 stopped, because what they were for was left" +
        "\n  waits for 12 timers, the next in 29d 0h\n",
    );
    expect(textOf("sealed", { timers: { armed: 1, nextInMs: 0 } })).to.contain(
      "\n  waits for 1 timer, due now\n",
    );
    expect(textOf("cancelled", { timers })).to.not.contain("timer");
  });

  it("says why items fail", () => {
    const message = {
      failureClass: "crash",
      message: "no memory",
      items: 2,
      attempts: 0,
      item: "cd".repeat(32),
    };
    expect(textOf("sealed", { failed: 2, failureMessages: [message] })).to.contain(
      "\n  2 crash, such as item cdcdcdcdcdcd: no memory\n",
    );
  });

  for (const state of ["paused", "complete", "cancelled"] as const) {
    it(`shows no pace when the run is ${state}`, () => {
      expect(textOf(state)).to.not.match(/left|\/s/);
    });
  }
});
