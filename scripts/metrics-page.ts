// The page of metrics, from their table.
import { METRICS, metricOf } from "../src/observe/metrics/metric-table.ts";
import type { MetricName } from "../src/observe/metrics/metric-table.ts";
import type { MetricSource } from "../src/observe/metrics/metric-values.ts";

type Table = (titles: readonly string[], rows: readonly (readonly string[])[]) => string;

const SECTIONS: Readonly<Record<MetricSource, readonly [title: string, text: string]>> = {
  leader: [
    "Of the coordinator that leads",
    "The run, its items and its workers. Only the one that leads has them, so a sum over all coordinators counts nothing twice. Counters and " +
      "histograms begin at 0 with each leadership, which Prometheus' `rate()` and `increase()` take as they take a restart; the gauges are the ledger's " +
      "own numbers, and go on.",
  ],
  coordinator: [
    "Of each coordinator",
    "Whether it leads or follows. Counters and histograms count since its process began.",
  ],
  worker: ["Of each worker", "Counters and histograms count since its process began."],
  process: ["Of each process", "Of coordinators and of workers."],
};

export function metricsPage(generated: string, table: Table): string {
  const sections = (Object.keys(SECTIONS) as MetricSource[]).map((source) => {
    const [title, text] = SECTIONS[source];
    const names = (Object.keys(METRICS) as MetricName[]).filter((name) => metricOf(name).of === source);
    return `## ${title}\n\n${text}\n\n${table(["Metric", "Type", "Labels", "Meaning"], names.map(rowOf))}`;
  });
  return `# Metrics

${generated}

With \`coordinator.monitor_addr\` and \`worker.monitor_addr\` a coordinator and a worker answer \`/metrics\` in Prometheus' text format, at the port of
the [probes](OPERATIONS.md#probes): on loopback alone, and off unless it is set.

- [packaging/prometheus/prometheus.yml](../packaging/prometheus/prometheus.yml) is an example of how they are scraped. The label \`run\`, which it sets, tells
  runs apart.
- [packaging/prometheus/alerts.yml](../packaging/prometheus/alerts.yml) has the alerts: what [OPERATIONS.md](OPERATIONS.md) names to an operator.
- [packaging/grafana/rollout.json](../packaging/grafana/rollout.json) is a dashboard for Grafana (Dashboards, New, Import), which asks for the data source.

A label has the values that stand here and no others: nothing names an item or a worker, so a cluster of any size has as many series as a small one.
Workers are told apart by the \`instance\` of their own scrapes. Times are in seconds, sizes in bytes. There are no metrics of partitions, as there are no
partitions.

${sections.join("\n\n")}
`;
}

function rowOf(name: MetricName): string[] {
  const { type, help, labels = {} } = metricOf(name);
  const shown = Object.entries(labels).map(
    ([label, values]) => `\`${label}\`: ${values.map((value) => `\`${value}\``).join(", ")}`,
  );
  return [`\`${name}\``, type, shown.join("; "), help];
}
