// Preloaded into a process that is measured (`node --import`): watches how late its event loop is and answers SIGUSR2 with one
// line on descriptor 3. Each answer begins a new measurement. With BENCH_COLLECT in its environment it collects garbage first when
// it is asked, so that what is in use can be told from what nobody has given back yet; that takes a moment.
import { readFileSync, writeSync } from "node:fs";
import { monitorEventLoopDelay } from "node:perf_hooks";
import { setFlagsFromString } from "node:v8";
import { runInNewContext } from "node:vm";

const RESOLUTION_MS = 5;
const NANOSECONDS = 1e6;
const REPORT_FD = 3;

/** Pages of files that are mapped, as LevelDB does with its tables: the system takes them back when it wants memory. */
function residentOfFilesBytes(): number {
  const kib = /^RssFile:\s+(\d+) kB$/m.exec(readFileSync("/proc/self/status", "utf8"))?.[1];
  return Number(kib ?? 0) * 1_024;
}

/** Bytes that are reached: objects, and what they hold outside of the heap. */
function inUse(): () => number {
  if (process.env["BENCH_COLLECT"] === undefined) return () => 0;
  setFlagsFromString("--expose-gc");
  const collect = runInNewContext("gc") as () => void;
  return () => {
    // Objects that the first one lets go of may have held more.
    for (let times = 0; times < 2; times++) collect();
    const { heapUsed, external } = process.memoryUsage();
    return heapUsed + external;
  };
}

const inUseBytes = inUse();
const histogram = monitorEventLoopDelay({ resolution: RESOLUTION_MS });
histogram.enable();
let cpuBefore = process.cpuUsage();

process.on("SIGUSR2", () => {
  const { user, system } = process.cpuUsage(cpuBefore);
  // The histogram counts the interval itself; what is over it is lag.
  const lagMs = (percentile: number): number =>
    Math.max(0, histogram.percentile(percentile) / NANOSECONDS - RESOLUTION_MS);
  const report = {
    p50_ms: lagMs(50),
    p99_ms: lagMs(99),
    max_ms: Math.max(0, histogram.max / NANOSECONDS - RESOLUTION_MS),
    cpu_ms: (user + system) / 1_000,
    rss_bytes: process.memoryUsage.rss(),
    rss_peak_bytes: process.resourceUsage().maxRSS * 1_024,
    rss_of_files_bytes: residentOfFilesBytes(),
    // Last: the memory above is as it was without being looked at.
    in_use_bytes: inUseBytes(),
  };
  histogram.reset();
  cpuBefore = process.cpuUsage();
  writeSync(REPORT_FD, `${JSON.stringify(report)}\n`);
});
