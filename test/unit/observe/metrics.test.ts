import { expect } from "chai";
import { countBy } from "../../../src/observe/metrics/count-by.ts";
import { Exposition } from "../../../src/observe/metrics/exposition.ts";
import { Histogram } from "../../../src/observe/metrics/histogram.ts";
import { METRICS, metricOf } from "../../../src/observe/metrics/metric-table.ts";
import type { MetricName } from "../../../src/observe/metrics/metric-table.ts";
import { ProcessMeter } from "../../../src/observe/metrics/process-meter.ts";
import { metricValues } from "../../support/metric-values.ts";
import { VirtualClock } from "../../support/virtual-clock.ts";

describe("metrics", () => {
  it("are shown in the order of the table, each with its help and type above its series", () => {
    const counts = countBy("rollout_lease_renewals_total", "result");
    counts.renewed += 2;
    const exposition = new Exposition();
    exposition.addEach("rollout_lease_renewals_total", "result", counts);
    exposition.add("rollout_slots", 4);
    exposition.addState("rollout_coordinator_role", "role", "leader");
    expect(exposition.text).to.equal(`# HELP rollout_slots Slots of all workers that are heard.
# TYPE rollout_slots gauge
rollout_slots 4
# HELP rollout_coordinator_role 1 for the role that this coordinator is in, 0 for the others.
# TYPE rollout_coordinator_role gauge
rollout_coordinator_role{role="following"} 0
rollout_coordinator_role{role="claiming"} 0
rollout_coordinator_role{role="leader"} 1
rollout_coordinator_role{role="fenced"} 0
rollout_coordinator_role{role="halted"} 0
# HELP rollout_lease_renewals_total Renewals of the lease. Stays 0 where one coordinator has the database for itself.
# TYPE rollout_lease_renewals_total counter
rollout_lease_renewals_total{result="renewed"} 2
rollout_lease_renewals_total{result="failed"} 0
`);
  });

  it("put an observation into the first bucket that is large enough, and into all behind it", () => {
    const histogram = new Histogram("rollout_turn_inputs");
    for (const value of [1, 2, 2, 3, 5_000]) histogram.observe(value);
    const exposition = new Exposition();
    exposition.addHistogram("rollout_turn_inputs", histogram);
    expect(metricValues(exposition.text)).to.include({
      'rollout_turn_inputs_bucket{le="1"}': 1,
      'rollout_turn_inputs_bucket{le="2"}': 3,
      'rollout_turn_inputs_bucket{le="4"}': 4,
      'rollout_turn_inputs_bucket{le="1024"}': 4,
      'rollout_turn_inputs_bucket{le="+Inf"}': 5,
      rollout_turn_inputs_sum: 5_008,
      rollout_turn_inputs_count: 5,
    });
  });

  it("have buckets that ascend, and labels of words that need no backslash", () => {
    for (const name of Object.keys(METRICS) as MetricName[]) {
      const { buckets = [], labels = {}, help, type } = metricOf(name);
      expect(buckets, name).to.deep.equal([...new Set(buckets)].toSorted((one, other) => one - other));
      expect(buckets.length > 0, name).to.equal(type === "histogram");
      expect(name.endsWith("_total"), name).to.equal(type === "counter");
      for (const text of Object.values(labels).flat()) expect(text, name).to.match(/^[a-z_]+$/);
      expect(help, name).to.match(/^[^\\\n]+\.$/);
    }
  });

  it("of a process say how late its event loop was, and what the kernel says of it", async () => {
    const clock = new VirtualClock();
    let lateMs = 0;
    const late = Object.assign(Object.create(clock) as VirtualClock, {
      monotonicMs: () => clock.monotonicMs() + lateMs,
      wallMs: () => clock.wallMs(),
      after: (delayMs: number, callback: () => void) => clock.after(delayMs, callback),
    });
    const meter = new ProcessMeter(late);
    await clock.advance(100);
    lateMs = 40;
    await clock.advance(100);
    const exposition = new Exposition();
    meter.addTo(exposition);
    const values = metricValues(exposition.text);
    expect(values["rollout_event_loop_lag_seconds_sum"]).to.be.closeTo(0.04, 1e-9);
    expect(values["rollout_event_loop_lag_seconds_count"]).to.equal(2);
    expect(values["process_resident_memory_bytes"]).to.be.within(2e7, 2e10);
    expect(values["process_open_fds"]).to.be.greaterThan(2);
    expect(values["process_max_fds"]).to.be.greaterThan(values["process_open_fds"] ?? Infinity);
    expect(values["process_cpu_seconds_total"]).to.be.greaterThan(0);
    expect(values["process_start_time_seconds"]).to.be.closeTo(clock.wallMs() / 1_000 - 0.2, 1e-3);
    meter.stop();
    expect(clock.armed).to.equal(0);
  });
});
