// A leader's numbers, series by series, after things have happened that are counted.
import { expect } from "chai";
import { addLeaderMetrics } from "../../../../src/coordinator/run/leader-metrics.ts";
import { Exposition } from "../../../../src/observe/metrics/exposition.ts";
import { metricValues } from "../../../support/metric-values.ts";
import { World } from "../../../support/world.ts";
import { ERROR, reportOf } from "../../../support/world-worker.ts";
import type { WorldWorker } from "../../../support/world-worker.ts";

const EXECUTION = { pluginVersion: "1", startedAtWallMs: 0, durationMs: 40 };

describe("the metrics of a leader", () => {
  let ledger: World;

  beforeEach(async () => {
    ledger = await World.start();
  });

  /** The series that are not 0, of those whose names begin so. */
  function shown(...names: string[]): Readonly<Record<string, number>> {
    const exposition = new Exposition();
    addLeaderMetrics(ledger.state, { waitingInputs: 3, nowMs: 0 }, exposition);
    const all = Object.entries(metricValues(exposition.text));
    const isAsked = (series: string): boolean => names.some((name) => series.startsWith(`rollout_${name}`));
    return Object.fromEntries(all.filter(([series, value]) => value !== 0 && isAsked(series)));
  }

  async function reportAfter(worker: WorldWorker, ms: number, ...outcomes: (typeof ERROR | undefined)[]) {
    ledger.pass(ms);
    const items = worker.held.slice(0, outcomes.length);
    await worker.send(items.map((item, at) => ({ ...reportOf(item, outcomes[at]), execution: EXECUTION })));
    worker.forget(items);
    await ledger.settle();
  }

  it("count items where they are, attempts as they end, and the time that they have cost", async () => {
    ledger = await World.start({ budgets: { maxAttempts: 1 } });
    const worker = await ledger.worker(1, { slots: 2, credit: 4 });
    await ledger.submit(["a", "b", "c", "d", "e"]);
    await reportAfter(worker, 1_000, undefined, undefined, ERROR);
    expect(shown("items", "attempts", "run_state", "inbox", "slots", "sessions")).to.deep.equal({
      'rollout_items{state="pending"}': 1,
      'rollout_items{state="running"}': 1,
      'rollout_items{state="done"}': 2,
      'rollout_items{state="failed"}': 1,
      'rollout_items_finished_total{class="success"}': 2,
      'rollout_items_finished_total{class="error"}': 1,
      rollout_items_waiting_at_workers: 1,
      'rollout_run_state{state="open"}': 1,
      rollout_attempts_started_total: 4,
      'rollout_attempts_ended_total{class="success"}': 2,
      'rollout_attempts_ended_total{class="error"}': 1,
      rollout_inbox_inputs: 3,
      rollout_slots: 2,
      rollout_slots_wanted: 2,
      rollout_sessions: 1,
    });
    const { rollout_dispatch_latency_seconds_sum: waited = 0, ...latency } =
      shown("dispatch_latency_seconds_");
    expect(latency).to.include({
      'rollout_dispatch_latency_seconds_bucket{le="1"}': 3,
      rollout_dispatch_latency_seconds_count: 3,
    });
    expect(waited).to.be.closeTo(3 * 0.96, 1e-9);
    expect(shown("item_duration_seconds_count")).to.deep.equal({
      'rollout_item_duration_seconds_count{outcome="success"}': 2,
      'rollout_item_duration_seconds_count{outcome="other"}': 1,
    });
  });

  it("say nothing of how long an item was with a worker that an earlier leader gave it to", async () => {
    const worker = await ledger.worker(1, { credit: 1 });
    await ledger.submit(["a"]);
    const item = worker.held[0];
    await ledger.lead();
    await worker.rejoin();
    if (item === undefined) throw new Error("it was given nothing");
    await worker.send([{ ...reportOf(item), execution: EXECUTION }]);
    expect(shown("dispatch_latency_seconds_count", "item_duration_seconds_count")).to.deep.equal({
      'rollout_item_duration_seconds_count{outcome="success"}': 1,
    });
  });

  it("count workers by what they are, those that leave and those that are lost with what they had", async () => {
    const [lost, leaving] = [await ledger.worker(1, { credit: 1 }), await ledger.worker(2)];
    await ledger.submit(["a"]);
    leaving.state = "Draining";
    await ledger.watch(6_000, [leaving]);
    expect(lost.held).to.have.length(1);
    expect(shown("workers", "worker_", "attempts_reassigned", "attempts_ended")).to.deep.equal({
      'rollout_workers{liveness="alive",state="draining"}': 1,
      'rollout_workers{liveness="failed",state="ready"}': 1,
      rollout_worker_drains_total: 1,
      rollout_worker_failures_total: 1,
      rollout_attempts_reassigned_total: 1,
      'rollout_attempts_ended_total{class="lost"}': 1,
    });
  });

  it("count steals that brought something back, late reports, results that contradict, and those who are not trusted", async () => {
    const victim = await ledger.worker(1, { slots: 2, credit: 6 });
    await ledger.submit(["a", "b", "c", "d"]);
    const thief = await ledger.worker(2, { slots: 2, credit: 4 });
    await ledger.watch(500, [victim, thief]);
    await victim.handBack(victim.held.slice(-1));
    const [first] = victim.held;
    if (first === undefined) throw new Error("it was given nothing");
    await victim.report([first]);
    const other = {
      kind: "success",
      output: Buffer.from("other"),
      digest: new Uint8Array(32).fill(9),
    } as const;
    await victim.send([reportOf(first, other), reportOf(first, ERROR)]);
    await ledger.settle();
    expect(shown("steals", "items_stolen", "stale", "conflicts")).to.deep.equal({
      rollout_steals_total: 1,
      rollout_items_stolen_total: 1,
      rollout_stale_reports_total: 1,
      rollout_conflicts_total: 1,
    });
  });
});
