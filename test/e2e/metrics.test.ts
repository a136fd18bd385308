// Metrics as an operator has them: two coordinators over one Postgres and two workers, scraped by a real Prometheus by the scrape configuration that
// is shipped; each query of the dashboard is asked, and each alert is seen to fire on the state that it is for.
import { cp, readFile, writeFile } from "node:fs/promises";
import { expect } from "chai";
import { metricOf, METRICS } from "../../src/observe/metrics/metric-table.ts";
import type { MetricName } from "../../src/observe/metrics/metric-table.ts";
import { withCluster } from "../support/cluster.ts";
import type { Cluster } from "../support/cluster.ts";
import { eventually } from "../support/eventually.ts";
import { freePort, restartableAddress } from "../support/listeners.ts";
import { metricValues } from "../support/metric-values.ts";
import { usePostgresDatabase } from "../support/postgres-database.ts";
import { demandPrometheus, promtool, startPrometheus } from "./prometheus.ts";
import type { Prometheus } from "./prometheus.ts";
import { repositoryFile } from "../../scripts/generate-docs.ts";
import { withDirectory } from "../support/temporary-directory.ts";
import { alertTests, ALERTS } from "./alert-series.ts";

const PACKAGED = repositoryFile("packaging/prometheus");
const SCRAPED_EVERY = "200ms";
const ITEMS = 400;
/** In place of what Grafana puts there: all of this test, so that what has moved once is seen whenever it is asked for. */
const WINDOW = "1h";

/** On a busy machine their conditions hold in truth, and for some minutes. */
const OF_SPEED = ["RolloutStoreSlow", "RolloutStoreStalled", "RolloutCoordinatorLate"];

type Values = Readonly<Record<string, number>>;

interface Panel {
  readonly title: string;
  readonly targets?: readonly { readonly expr: string; readonly datasource: { readonly uid: string } }[];
}

interface Dashboard {
  readonly panels: readonly Panel[];
  readonly annotations: { readonly list: readonly { readonly expr: string }[] };
  readonly templating: { readonly list: readonly { readonly name: string; readonly type: string }[] };
}

async function readDashboard(): Promise<Dashboard> {
  return JSON.parse(await readFile(repositoryFile("packaging/grafana/rollout.json"), "utf8")) as Dashboard;
}

/** As Grafana asks it, with every run chosen. */
function asAsked(expression: string): string {
  return expression.replaceAll("$__rate_interval", WINDOW).replaceAll("$run", ".*");
}

describe("metrics", () => {
  const database = usePostgresDatabase();

  before(demandPrometheus);

  it("are scraped by Prometheus; each query of the dashboard has data, no alert is wrong, promtool has nothing to say", async () => {
    await withScrapedCluster(async (prometheus, addresses) => {
      const dashboard = await readDashboard();
      expect(dashboard.templating.list.map(({ name, type }) => [name, type])).to.deep.equal([
        ["datasource", "datasource"],
        ["run", "query"],
      ]);
      const targets = dashboard.panels.flatMap(({ targets: own = [] }) => own);
      expect(new Set(targets.map(({ datasource }) => datasource.uid))).to.deep.equal(
        new Set(["${datasource}"]),
      );
      const answered = targets.map(({ expr }) =>
        eventually(`data for ${expr}`, async () =>
          (await prometheus.query(asAsked(expr))).some(({ value }) => Number.isFinite(value)),
        ),
      );
      await Promise.all(answered);
      for (const { expr } of dashboard.annotations.list) await prometheus.query(asAsked(expr));

      const names = Object.keys(ALERTS).toSorted();
      // None is on in a cluster that is well: the other test has the states that they are for.
      const rules = await eventually(
        "all alerts evaluated, and none on since there is a leader",
        async () => {
          const found = await prometheus.rules();
          const isQuiet = found.every(
            ({ name, health, state }) =>
              health !== "ok" || state === "inactive" || (OF_SPEED.includes(name) && state === "pending"),
          );
          return found.length === names.length && isQuiet && found;
        },
      );
      expect(rules.filter(({ health }) => health !== "ok")).to.deep.equal([]);
      expect(rules.map(({ name }) => name).toSorted()).to.deep.equal(names);

      await eventually("all items final", async () => {
        const leader = metricValues(await readMetrics(addresses[0] ?? ""));
        const final = ["done", "failed"].map((state) => leader[`rollout_items{state="${state}"}`] ?? 0);
        return final.reduce((sum, count) => sum + count) === ITEMS;
      });
      const pages = await Promise.all(addresses.map(readMetrics));
      expectAgreement(pages.map(metricValues));
      for (const page of pages) expect(promtool(["check", "metrics"], page)).to.equal("");
      const shown = new Set(
        pages.flatMap((page) => [...page.matchAll(/^# TYPE (\S+)/gm)].map(([, name]) => name)),
      );
      expect([...shown].toSorted()).to.deep.equal(Object.keys(METRICS).toSorted());
      expectBounded(pages.join(""));
    });
  });

  it("have alerts that fire on the state that each is for, and not beside it", async () => {
    await withDirectory(async (directory) => {
      await cp(`${PACKAGED}/alerts.yml`, `${directory}/alerts.yml`);
      await writeFile(`${directory}/tests.yml`, JSON.stringify(alertTests("alerts.yml")));
      expect(promtool(["check", "rules", `${directory}/alerts.yml`])).to.contain(
        `SUCCESS: ${Object.keys(ALERTS).length} rules found`,
      );
      expect(promtool(["test", "rules", `${directory}/tests.yml`])).to.contain("SUCCESS");
    });
  });

  /** `addresses`: the monitor of the leader, of a follower, and of a worker. */
  async function withScrapedCluster(
    use: (prometheus: Prometheus, addresses: readonly string[]) => Promise<void>,
  ): Promise<void> {
    const monitors = await Promise.all([1, 2, 3].map(async () => `127.0.0.1:${await freePort()}`));
    const [leader = "", follower = "", worker = ""] = monitors;
    const coordinators = [await restartableAddress(), await restartableAddress()];
    const settings = {
      "storage.path": undefined,
      "storage.url": database.urlWithoutPassword,
      "storage.password_file": database.passwordFile,
      "worker.coordinator_addr": coordinators,
      "coordinator.heartbeat_interval": "300ms",
      "mock.sleep": "20ms",
      "worker.slots": 4,
      "mock.failure_percent": 20,
      "run.max_attempts": 2,
    };
    await withCluster(settings, async (cluster) => {
      const prometheus = await startScraper(cluster, { coordinators: [leader, follower], worker });
      try {
        await startCoordinator(cluster, coordinators[0] ?? "", leader).event("coordinator_leading");
        startCoordinator(cluster, coordinators[1] ?? "", follower);
        cluster.launchWorker({ args: ["--monitor-addr", worker] });
        // A rate is seen of numbers that grow from one scrape to another.
        await eventually("each is scraped", async () => {
          const up = await prometheus.query("up == 1");
          return up.length === monitors.length;
        });
        const { added } = await cluster.submit(Array.from({ length: ITEMS }, (_, at) => ({ at })));
        expect(added).to.equal(ITEMS);
        await use(prometheus, monitors);
      } finally {
        await prometheus.close();
      }
    });
  }
});

function startCoordinator(cluster: Cluster, address: string, monitor: string) {
  return cluster.launchCoordinator({
    args: ["--listen-addr", address, "--advertised-addr", address, "--coordinator-monitor-addr", monitor],
  });
}

/** By the files that are shipped, with other addresses and times. */
async function startScraper(
  cluster: Cluster,
  { coordinators, worker }: { readonly coordinators: readonly string[]; readonly worker: string },
): Promise<Prometheus> {
  await cp(`${PACKAGED}/alerts.yml`, cluster.file("alerts.yml"));
  const packaged = await readFile(`${PACKAGED}/prometheus.yml`, "utf8");
  const own = packaged
    .replaceAll("_interval: 15s", `_interval: ${SCRAPED_EVERY}`)
    .replace('["127.0.0.1:7712"]', JSON.stringify(coordinators))
    .replace('["127.0.0.1:7713"]', JSON.stringify([worker]));
  await writeFile(cluster.file("prometheus.yml"), own);
  promtool(["check", "config", cluster.file("prometheus.yml")]);
  return startPrometheus(cluster.directory);
}

async function readMetrics(address: string): Promise<string> {
  const response = await fetch(`http://${address}/metrics`);
  expect(response.headers.get("content-type")).to.equal("text/plain; version=0.0.4; charset=utf-8");
  return response.text();
}

/** Numbers of different processes that have to be the same when nothing happens any more. */
function expectAgreement([leader = {}, follower = {}, worker = {}]: readonly Values[]): void {
  const sum = (values: Values, name: string): number =>
    Object.entries(values)
      .filter(([series]) => series.startsWith(`${name}{`))
      .reduce((total, [, value]) => total + value, 0);
  const [done, failed] = ["done", "failed"].map((state) => leader[`rollout_items{state="${state}"}`]);
  expect(sum(leader, "rollout_items")).to.equal(ITEMS);
  expect(leader['rollout_items_finished_total{class="success"}']).to.equal(done);
  expect(leader['rollout_items_finished_total{class="error"}']).to.equal(failed);
  const started = leader["rollout_attempts_started_total"] ?? 0;
  expect(started).to.be.greaterThan(ITEMS);
  for (const kind of ["success", "error"])
    expect(worker[`rollout_worker_attempts_ended_total{class="${kind}"}`], kind).to.equal(
      leader[`rollout_attempts_ended_total{class="${kind}"}`],
    );
  expect(sum(leader, "rollout_attempts_ended_total")).to.equal(started);
  expect(sum(leader, "rollout_item_duration_seconds_count")).to.equal(started);
  expect(worker["rollout_worker_item_duration_seconds_count"]).to.equal(started);
  expect(worker["rollout_worker_item_duration_seconds_sum"]).to.be.greaterThan(0.015 * started);
  expect(leader["rollout_dispatch_latency_seconds_count"]).to.equal(started);
  expect(worker["rollout_worker_beats_total"]).to.be.at.least(
    worker["rollout_worker_beat_round_trip_seconds_count"] ?? Infinity,
  );
  expect([leader["rollout_slots"], worker["rollout_worker_slots"]]).to.deep.equal([4, 4]);
  expect([leader, follower].map((each) => each["rollout_is_leader"])).to.deep.equal([1, 0]);
  expect([leader, follower].map((each) => each["rollout_takeovers_total"])).to.deep.equal([1, 0]);
  expect(follower["rollout_epoch"]).to.equal(leader["rollout_epoch"]);
  expect(leader['rollout_lease_renewals_total{result="renewed"}']).to.be.greaterThan(0);
}

/** Each label has a value that the table names. */
function expectBounded(text: string): void {
  for (const [, series = "", labels = ""] of text.matchAll(/^(\w+)\{(.*)\} /gm)) {
    const name = series.replace(/_(?:bucket|sum|count)$/, "");
    const known = (name in METRICS ? name : series) as MetricName;
    for (const [, label = "", value = ""] of labels.matchAll(/(\w+)="([^"]*)"/g))
      if (label !== "le") expect(metricOf(known).labels?.[label], `${series} ${label}`).to.include(value);
  }
}
