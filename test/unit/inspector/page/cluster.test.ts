// The cluster as the page knows it, by the news that it was told.
import { expect } from "chai";
import { Cluster, STEPS_KEPT } from "../../../../src/inspector/page/known/cluster.ts";
import { itemState } from "../../../../src/inspector/page/known/row-states.ts";
import { actorsOf } from "../../../../src/inspector/page/known/actors.ts";
import type { PageNews, Step } from "../../../../src/inspector/page-messages.ts";
import { madeCluster, runNumbers, workerId, workerRow } from "../../../support/made-cluster.ts";

function told(...news: readonly PageNews[]): Cluster {
  const cluster = new Cluster();
  for (const one of news) cluster.take(one, 0);
  return cluster;
}

function step(number: number, to: string, changes: Partial<Step> = {}): Step {
  return {
    number,
    at_ms: number,
    chart: "run",
    actor: "",
    event: "run.paused",
    from: "Open.Active",
    to,
    ...changes,
  };
}

describe("the cluster as the page knows it", () => {
  it("has each step once, however often it is told, and no more than so many", () => {
    const cluster = told({
      kind: "steps",
      steps: [step(1, "Open.Paused"), step(2, "Open.Active")],
      dropped: 3,
    });
    cluster.take({ kind: "steps", steps: [step(2, "Open.Active"), step(3, "Open.Paused")], dropped: 1 }, 0);
    expect(cluster.movesOf("run", "").map(({ number }) => number)).to.deep.equal([1, 2, 3]);
    expect(cluster.dropped).to.equal(4);
    for (let number = 4; number < 3 * STEPS_KEPT; number++)
      cluster.take(
        { kind: "steps", steps: [step(number, "Open.Paused", { actor: String(number) })], dropped: 0 },
        0,
      );
    expect(cluster.steps.length).to.be.within(STEPS_KEPT, 1.2 * STEPS_KEPT);
    expect(cluster.steps.at(-1)?.number).to.equal(3 * STEPS_KEPT - 1);
  });

  it("begins anew with a server that counts anew, and forgets the run when it is another one", () => {
    const whole = madeCluster({ workers: 3 });
    const cluster = told(...whole, { kind: "steps", steps: [step(900, "Open.Paused")], dropped: 0 });
    const [hello] = whole;
    if (hello?.kind !== "hello") throw new Error("hello comes first");
    cluster.take(hello, 0);
    expect([cluster.steps.length, cluster.workers.size]).to.deep.equal([0, 3]);
    cluster.take({ kind: "steps", steps: [step(1, "Open.Paused")], dropped: 0 }, 0);
    expect(cluster.steps).to.have.length(1);
    cluster.take({ ...hello, run: { run_id: "01OTHER", addresses: [] } }, 0);
    expect([cluster.workers.size, cluster.status, cluster.history.points.length]).to.deep.equal([
      0,
      undefined,
      0,
    ]);
  });

  it("knows the state of an actor by its row, by its last step, and by the row again when steps were missed", () => {
    const cluster = told({ kind: "workers", anew: true, changed: [workerRow(0)], gone: [] });
    const actor = workerId(0);
    const state = (): string | null => cluster.stateOf("worker-lifecycle", actor);
    expect(state()).to.equal("Ready+Alive");
    expect(cluster.stateOf("spot-drain", actor)).to.equal("Idle");
    expect(cluster.stateOf("worker-trust", actor)).to.equal("Trusted");
    expect(cluster.stateOf("worker-lifecycle", workerId(9))).to.equal(null);
    const late = step(1, "Ready+Suspected", { chart: "worker-lifecycle", actor });
    cluster.take({ kind: "steps", steps: [late], dropped: 0 }, 1_000);
    // The row is older.
    expect(state()).to.equal("Ready+Suspected");
    cluster.take({ kind: "workers", anew: false, changed: [workerRow(0)], gone: [] }, 2_000);
    expect(state()).to.equal("Ready+Suspected");
    cluster.take({ kind: "workers", anew: false, changed: [workerRow(0)], gone: [] }, 9_000);
    expect(state()).to.equal("Ready+Alive");
    expect(cluster.rowAgeMs(actor, 9_500)).to.equal(500);
  });

  it("knows the run, its coordinators and items by their words", () => {
    const said = (state: string, sealed: boolean): string | null =>
      told({ kind: "status", status: runNumbers([], { state, sealed }) }).stateOf("run", "");
    expect([
      said("open", false),
      said("sealed", true),
      said("paused", true),
      said("paused", false),
    ]).to.deep.equal([...["Open.Active", "Sealed.Active", "Sealed.Paused", "Open.Paused"]]);
    expect([said("complete", true), said("unknown", false)]).to.deep.equal(["Complete", null]);
    const cluster = told(...madeCluster({ workers: 70 }));
    const coordinators = actorsOf(cluster, "coordinator-role", "").choices;
    expect(coordinators.map(({ actor, state }) => `${actor} ${state ?? "?"}`)).to.deep.equal([
      ...["10.0.0.5:7070 Leader", "10.0.0.4:7070 null", "10.0.0.6:7070 Candidate.Following"].map((words) =>
        words.replace("null", "?"),
      ),
    ]);
    expect(actorsOf(cluster, "worker-lifecycle", "")).to.deep.include({ more: 10 });
    expect(actorsOf(cluster, "worker-lifecycle", workerId(3).toLowerCase()).choices).to.have.length(1);
    expect(["fresh", "delayed", "failed", "unknown"].map(itemState)).to.deep.equal([
      "Pending",
      "Pending",
      "Failed",
      null,
    ]);
  });

  it("keeps each point of the course once, in order of time", () => {
    const cluster = told(...madeCluster({ workers: 1 }));
    const { points } = cluster.history;
    const last = points.slice(-2);
    cluster.take({ kind: "history", anew: false, interval_ms: 5_000, points: last }, 0);
    expect(cluster.history.points).to.deep.equal(points);
    cluster.take({ kind: "history", anew: true, interval_ms: 10_000, points: last }, 0);
    expect(cluster.history).to.deep.equal({ intervalMs: 10_000, points: last });
  });
});
