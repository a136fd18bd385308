import { expect } from "chai";
import { sleep } from "../../../../src/base/clock.ts";
import type { ProgressView } from "../../../../src/cli/render/progress.ts";
import type { RunStatus } from "../../../../src/client/run-status.ts";
import { ProgressWatch } from "../../../../src/compose/local-run/progress-watch.ts";
import type { RolloutClient } from "../../../../src/compose/rollout-client.ts";
import { madeStatus } from "../../../support/made-status.ts";
import { VirtualClock } from "../../../support/virtual-clock.ts";

const TOTAL = 1_000;

function statusOf(done: number, ready: number, change: Partial<RunStatus> = {}): RunStatus {
  const { workers } = madeStatus();
  return madeStatus({
    ...{ pending: TOTAL - done, running: ready, executing: ready, done },
    ...{ workers: { ...workers, ready }, ...change },
  });
}

const troubled = { state: "ready", liveness: "alive", trouble: "waiting for the server" };

describe("watching a local run", () => {
  let clock: VirtualClock;
  let status: RunStatus;
  let views: ProgressView[];
  let said: string[];
  let watch: ProgressWatch;

  beforeEach(() => {
    clock = new VirtualClock();
    status = statusOf(0, 0);
    [views, said] = [[], []];
    const display = {
      update: (view: ProgressView) => views.push(view),
      say: (sentence: string) => said.push(sentence),
      end: () => undefined,
    };
    const client = {
      news: (collectMs: number) => ({
        next: async (signal: AbortSignal) => {
          await sleep(clock, collectMs, signal);
          return { status };
        },
      }),
      workers: () => Promise.resolve([troubled, troubled]),
    } as unknown as RolloutClient;
    watch = new ProgressWatch({ client, display, clock, slots: 4, expected: () => TOTAL });
    watch.start();
  });

  afterEach(async () => {
    const stopped = watch.stop();
    await clock.advance(1_000);
    await stopped;
  });

  /** So many seconds in which so many items finish each. */
  async function work(
    seconds: number,
    perSecond: number,
    ready = 4,
    change: Partial<RunStatus> = {},
  ): Promise<void> {
    for (let tick = 0; tick < seconds * 2; tick++) {
      status = statusOf(status.done + perSecond / 2, ready, change);
      await clock.advance(500);
    }
  }

  const pace = (): ProgressView["pace"] | undefined => views.at(-1)?.pace;

  it("estimates nothing before everything is submitted, and then only from what happened since", async () => {
    watch.submitted(500);
    await work(20, 2);
    expect(new Set(views.map((view) => view.pace.kind))).to.deep.equal(new Set(["unknown"]));
    watch.submitted(undefined);
    await work(1, 20);
    expect(pace()).to.deep.equal({ kind: "unknown" });
    await work(10, 20);
    expect(pace()).to.have.property("perSecond").within(18, 22);
  });

  it("estimates anew when one more worker has joined", async () => {
    watch.submitted(undefined);
    await work(10, 4, 1);
    expect(pace()).to.have.property("kind", "steady");
    await work(1, 40, 4);
    expect(pace()).to.deep.equal({ kind: "unknown" });
    await work(8, 40, 4);
    expect(pace()).to.have.property("perSecond").within(36, 44);
  });

  it("reports a worker that stops answering, and its return, but not while the worker leaves", async () => {
    watch.submitted(undefined);
    await work(2, 2);
    const without = { workers: { ready: 3, draining: 0, suspected: 1, failed: 0, cordoned: 0, revoked: 0 } };
    await work(5, 2, 3, without);
    expect(said).to.have.length(1);
    expect(said[0]).to.match(/^1 of 4 workers does not answer/);
    await work(5, 2);
    expect(said.slice(1)).to.deep.equal(["every worker answers again"]);
    watch.say("leaving");
    await work(5, 2, 3, without);
    expect(said).to.have.length(2);
  });

  it("still counts the workers at the end, when they have left", async () => {
    expect(views.at(-1)?.workers.hadSome ?? false).to.equal(false);
    await work(2, 2);
    await work(2, 2, 0);
    expect(views.at(-1)?.workers).to.include({ ready: 0, hadSome: true });
  });

  it("reports why nothing finishes, for as long as workers say so", async () => {
    const still = { running: 4, finishedPerSecond: [0, 0, 0, 0, 0] };
    await work(2, 0, 4, still);
    expect(views.at(-1)?.situation).to.equal("a worker: waiting for the server (and 1 more)");
    await work(2, 2, 4, { ...still, finishedPerSecond: [0, 0, 0, 0, 2] });
    expect(views.at(-1)?.situation).to.equal(undefined);
  });

  it("notices that all that is left stands in parked keys, once everything was submitted and not before", async () => {
    let parked: unknown;
    void watch.parked.then((what) => (parked = what));
    const keys = {
      total: 9,
      waiting: 0,
      running: 0,
      parked: 2,
      itemsBehindParked: 7,
      parkedActions: 0,
      statesSent: 0,
      statesSaved: 0,
      oldestReadyAgeMs: undefined,
    };
    const inside = { pending: 0, running: 0, done: 3, failed: 1, stopped: 0 };
    const stuck = { state: "sealed", sealed: true, pending: 7, running: 0, keys } as const;
    status = madeStatus(stuck);
    await clock.advance(2_000);
    expect(parked, "of a run of before").to.equal(undefined);
    watch.submitted(undefined);
    for (const change of [
      { running: 1 },
      { pending: 8 },
      { sealed: false, state: "open" as const },
      { pending: 0 },
      { inside: { ...inside, running: 1 } },
      { inside: { ...inside, pending: 1 } },
      { timers: { armed: 1, nextInMs: 60_000 } },
    ]) {
      status = madeStatus({ ...stuck, ...change });
      await clock.advance(2_000);
      expect(parked, JSON.stringify(change)).to.equal(undefined);
    }
    // Items from inside alone are enough.
    status = madeStatus({ ...stuck, pending: 0, inside: { ...inside, pending: 7 } });
    await clock.advance(2_000);
    expect(parked).to.deep.equal({ items: 7, keys: 2 });
  });
});
