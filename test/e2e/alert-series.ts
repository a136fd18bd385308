// Series on which each alert of packaging/prometheus/alerts.yml has to fire, in the notation of `promtool test rules`: a value, what is added each
// minute, and how often. Each has a second state, next to the first, on which it must not.

interface AlertCase {
  /** Series → its values, a minute apart. */
  readonly on: Readonly<Record<string, string>>;
  /** The labels of the alert that fires, beside its severity. */
  readonly labels: Readonly<Record<string, string>>;
  readonly off: Readonly<Record<string, string>>;
}

const MINUTES = 45;
const steady = (value: number): string => `${value}x${MINUTES}`;
const growing = (by: number): string => `0+${by}x${MINUTES}`;
const RUN = { run: "a" };
const AT = { run: "a", instance: "h:1" };
const COORDINATOR = { ...AT, job: "rollout-coordinator" };
const WORKER = { ...AT, job: "rollout-worker" };

function series(name: string, labels: Readonly<Record<string, string>>): string {
  const shown = Object.entries(labels).map(([label, value]) => `${label}="${value}"`);
  return `${name}{${shown.join(",")}}`;
}

const attempts = (kind: string): string =>
  series("rollout_attempts_ended_total", { ...COORDINATOR, class: kind });
const items = (state: string): string => series("rollout_items", { ...COORDINATOR, state });
const workers = (liveness: string, state: string): string =>
  series("rollout_workers", { ...COORDINATOR, liveness, state });
const lease = series("rollout_lease_renewals_total", { ...COORDINATOR, result: "failed" });
const leader = (instance: string): string => series("rollout_is_leader", { ...COORDINATOR, instance });
const finished = series("rollout_items_finished_total", { ...COORDINATOR, class: "success" });
const epoch = series("rollout_epoch", COORDINATOR);
const bucket = (name: string, le: string): string => series(`${name}_bucket`, { ...COORDINATOR, le });
const inState = (state: string): string => series("rollout_run_state", { ...COORDINATOR, state });

/** One that grows on, so that it is well all the time. */
function only(
  name: string,
  labels: Readonly<Record<string, string>>,
  [bad, good]: readonly [string, string],
  alert: Readonly<Record<string, string>>,
): AlertCase {
  const one = series(name, labels);
  return { on: { [one]: bad }, labels: alert, off: { [one]: good } };
}

function slow(name: string): AlertCase {
  const [fast, late, all] = [bucket(name, "0.01"), bucket(name, "1"), bucket(name, "+Inf")];
  return {
    on: { [fast]: growing(90), [late]: growing(100), [all]: growing(100) },
    labels: AT,
    off: { [fast]: growing(100), [late]: growing(100), [all]: growing(100) },
  };
}

/** Every alert there is. */
export const ALERTS: Readonly<Record<string, AlertCase>> = {
  RolloutNoLeader: {
    on: { [leader("h:1")]: steady(0), [leader("h:2")]: steady(0) },
    labels: RUN,
    off: { [leader("h:1")]: steady(0), [leader("h:2")]: steady(1) },
  },
  RolloutNoCoordinator: {
    on: { [items("done")]: steady(1) },
    labels: {},
    off: { [leader("h:1")]: steady(1) },
  },
  RolloutSeveralLeaders: {
    on: { [leader("h:1")]: steady(1), [leader("h:2")]: steady(1) },
    labels: RUN,
    off: { [leader("h:1")]: steady(1), [leader("h:2")]: steady(0) },
  },
  RolloutProcessDown: only("up", WORKER, [steady(0), steady(1)], WORKER),
  RolloutEpochChangesOften: { on: { [epoch]: growing(1) }, labels: RUN, off: { [epoch]: "7x30 8x15" } },
  RolloutLeaseRenewalsFail: { on: { [lease]: growing(1) }, labels: RUN, off: { [lease]: steady(1) } },
  RolloutDatabaseAway: only("rollout_database_answers", COORDINATOR, [steady(0), steady(1)], COORDINATOR),
  RolloutSnapshotOld: only("rollout_snapshot_age_seconds", COORDINATOR, [steady(90), steady(1)], COORDINATOR),
  RolloutStoreStalled: only(
    "rollout_store_unanswered_seconds",
    COORDINATOR,
    [steady(9), steady(1)],
    COORDINATOR,
  ),
  RolloutStoreSlow: slow("rollout_store_fsync_seconds"),
  RolloutCoordinatorLate: slow("rollout_event_loop_lag_seconds"),
  RolloutInboxFull: only("rollout_inbox_refused_total", COORDINATOR, [growing(5), steady(5)], RUN),
  RolloutFilesShort: {
    on: {
      [series("process_open_fds", WORKER)]: steady(95),
      [series("process_max_fds", WORKER)]: steady(100),
    },
    labels: WORKER,
    off: {
      [series("process_open_fds", WORKER)]: steady(85),
      [series("process_max_fds", WORKER)]: steady(100),
    },
  },
  RolloutNothingFinishes: {
    on: { [items("running")]: steady(4), [finished]: steady(7) },
    labels: RUN,
    off: { [items("running")]: steady(4), [finished]: "7x36 8x8" },
  },
  RolloutEverythingFails: {
    on: {
      [attempts("error")]: growing(9),
      [attempts("crash")]: growing(1),
      [attempts("success")]: growing(0.5),
    },
    labels: RUN,
    off: {
      [attempts("error")]: growing(8),
      [attempts("success")]: growing(2),
      [attempts("lost")]: growing(50),
    },
  },
  RolloutNobodyWorks: {
    on: {
      ...{ [items("pending")]: steady(3), [items("delayed")]: steady(1), [inState("open")]: steady(1) },
      ...{ [inState("sealed")]: steady(0), [workers("alive", "ready")]: steady(0) },
    },
    labels: RUN,
    off: {
      ...{ [items("pending")]: steady(3), [items("delayed")]: steady(1), [inState("open")]: steady(0) },
      ...{ [inState("sealed")]: steady(0), [workers("alive", "ready")]: steady(0) },
    },
  },
  RolloutItemsSetAside: {
    on: { [items("set_aside")]: steady(2) },
    labels: RUN,
    off: { [items("failed")]: steady(2) },
  },
  RolloutConflicts: only("rollout_conflicts_total", COORDINATOR, ["0x30 1x15", steady(1)], RUN),
  RolloutWorkersFail: {
    on: {
      [series("rollout_worker_failures_total", COORDINATOR)]: growing(1),
      [workers("alive", "ready")]: steady(20),
    },
    labels: RUN,
    off: {
      [series("rollout_worker_failures_total", COORDINATOR)]: growing(1),
      [workers("alive", "ready")]: steady(200),
    },
  },
  RolloutWorkersCordoned: only("rollout_workers_cordoned", COORDINATOR, [steady(1), steady(0)], RUN),
  RolloutWorkerFenced: only("rollout_worker_is_fenced", WORKER, [steady(1), steady(0)], WORKER),
  RolloutDrainLong: {
    on: { [series("rollout_worker_drain_state", { ...WORKER, state: "flushing" })]: steady(1) },
    labels: AT,
    off: { [series("rollout_worker_drain_state", { ...WORKER, state: "idle" })]: steady(1) },
  },
  RolloutProcessesDoNotStart: only(
    "rollout_worker_processes_started_total",
    { ...WORKER, result: "failed" },
    [growing(1), steady(4)],
    AT,
  ),
};

const SEVERITY: Readonly<Record<string, string>> = {
  ...{ RolloutNoLeader: "page", RolloutNoCoordinator: "page", RolloutSeveralLeaders: "page" },
  ...{ RolloutDatabaseAway: "page", RolloutStoreStalled: "page", RolloutEverythingFails: "page" },
};

/** Each alert has a run that it is to fire for, and one that it is not; only the one that fires when there is nothing has to be alone. */
export function alertTests(ruleFile: string): object {
  const { RolloutNoCoordinator: alone, ...together } = ALERTS;
  if (alone === undefined) throw new Error("the alert on nothing at all is gone");
  return {
    rule_files: [ruleFile],
    evaluation_interval: "1m",
    tests: [
      testOf(
        Object.entries(together).flatMap(([name, { on, off }]) => [
          ...inputs(on, name),
          ...inputs(off, `${name} off`),
        ]),
        Object.entries(together).map(([name, { labels }]) => expectation(name, labels)),
      ),
      testOf(inputs(alone.on, "a"), [expectation("RolloutNoCoordinator", alone.labels)]),
      testOf(inputs(alone.off, "a"), [{ ...expectation("RolloutNoCoordinator", {}), exp_samples: [] }]),
    ],
  };
}

function testOf(input_series: object[], promql_expr_test: object[]): object {
  return { interval: "1m", input_series, promql_expr_test };
}

function inputs(found: Readonly<Record<string, string>>, run: string): object[] {
  return Object.entries(found).map(([one, values]) => ({
    series: one.replace('run="a"', `run="${run}"`),
    values,
  }));
}

function expectation(alertname: string, labels: Readonly<Record<string, string>>): object {
  const severity = SEVERITY[alertname] ?? "ticket";
  const run = "run" in labels ? { run: alertname } : {};
  const all = { alertname, alertstate: "firing", severity, ...labels, ...run };
  const shown = Object.entries(all).map(([label, value]) => `${label}="${value}"`);
  const expr = `ALERTS{alertname="${alertname}", alertstate="firing", run=~"(${alertname}.*)?"}`;
  return { expr, eval_time: "44m", exp_samples: [{ labels: `ALERTS{${shown.join(", ")}}`, value: 1 }] };
}
