// `make smoke-3node-gcp`, `make smoke-3node-aws`: a coordinator and three workers as real processes over mutual TLS, on this
// machine or on four others. Says what happens as it happens, and ends with `smoke ok: …`, or loudly. docs/SMOKE.md
import { existsSync, readFileSync } from "node:fs";
import { fileURLToPath } from "node:url";
import { sleep, systemClock } from "../src/base/clock.ts";
import { SmokeCluster } from "./smoke/cluster.ts";
import type { Launcher } from "./smoke/launcher.ts";
import { LocalLauncher } from "./smoke/local-launcher.ts";
import { perform } from "./smoke/performance.ts";
import type { Outcome } from "./smoke/performance.ts";
import type { Cloud, Preemption } from "./smoke/preemption.ts";
import { leftToTheCloud, servedOnLoopback, simulated } from "./smoke/preemption.ts";
import { SshLauncher } from "./smoke/ssh-launcher.ts";

const USAGE = "usage: smoke-3node.ts aws|gcp [--simulate-preemption]";
const WORKERS = 3;
const LOCAL_LIMIT_MIN = 0.5;
/** Clouds preempt when they like. */
const CLOUD_LIMIT_MIN = 60;
const CLOUD_PORT = "50051";

interface Plan {
  readonly head: Launcher;
  readonly hosts: readonly Launcher[];
  readonly listen: string;
  readonly limitMs: number;
  readonly preemption: Preemption;
}

async function planOf(cloud: Cloud, isSimulated: boolean): Promise<Plan> {
  if (process.env["ROLLOUT_SMOKE_CLOUD"] === "1") return cloudPlan(cloud, isSimulated);
  if (!existsSync(fileURLToPath(new URL("../dist/src/cli/main.js", import.meta.url))))
    throw new Error("nothing is built: run `make build` first");
  return {
    head: new LocalLauncher("coordinator"),
    hosts: Array.from({ length: WORKERS }, (_, at) => new LocalLauncher(`worker-${at + 1}`)),
    listen: "127.0.0.1:0",
    limitMs: limitMsOr(LOCAL_LIMIT_MIN),
    preemption: isSimulated ? simulated() : await servedOnLoopback(cloud, WORKERS),
  };
}

function limitMsOr(usualMin: number): number {
  return Number(process.env["ROLLOUT_SMOKE_MINUTES"] ?? usualMin) * 60_000;
}

function cloudPlan(cloud: Cloud, isSimulated: boolean): Plan {
  const { env } = process;
  const destinations = (env["ROLLOUT_SMOKE_HOSTS"] ?? "").split(",").filter((host) => host !== "");
  if (destinations.length !== WORKERS + 1)
    throw new Error(`ROLLOUT_SMOKE_HOSTS has to name ${WORKERS + 1} hosts, separated by commas`);
  const { version } = JSON.parse(readFileSync(new URL("../package.json", import.meta.url), "utf8")) as Record<
    string,
    string
  >;
  const [head, ...hosts] = destinations.map(
    (destination) =>
      new SshLauncher({
        destination,
        ssh: (env["ROLLOUT_SMOKE_SSH"] ?? "ssh -o BatchMode=yes").split(" "),
        program: env["ROLLOUT_SMOKE_PROGRAM"] ?? "rollout",
        version: version ?? "",
      }),
  );
  if (head === undefined) throw new Error("there is no host for the coordinator");
  const isLoopback = /^(127\.|localhost$)/.test(head.address);
  return {
    head,
    hosts,
    listen: `${isLoopback ? "127.0.0.1" : "0.0.0.0"}:${env["ROLLOUT_SMOKE_PORT"] ?? CLOUD_PORT}`,
    limitMs: limitMsOr(CLOUD_LIMIT_MIN),
    preemption: isSimulated ? simulated() : leftToTheCloud(cloud),
  };
}

/** Rejects when the time is over, or somebody has had enough. */
function limited(limitMs: number, enough: AbortSignal): Promise<never> {
  const over = sleep(systemClock, limitMs, enough).then((): never => {
    throw new Error(enough.aborted ? "interrupted" : `it took longer than ${limitMs / 1_000} s`);
  });
  // It is of interest only while somebody waits.
  over.catch(() => undefined);
  return over;
}

/** The exit code. */
async function main(words: readonly string[]): Promise<number> {
  const cloud = words.find((word): word is Cloud => word === "aws" || word === "gcp");
  const isSimulated = words.includes("--simulate-preemption");
  if (cloud === undefined || words.length !== (isSimulated ? 2 : 1)) {
    console.error(USAGE);
    return 2;
  }
  const startedMs = systemClock.monotonicMs();
  const seconds = (): string => ((systemClock.monotonicMs() - startedMs) / 1_000).toFixed(1);
  const tell = (sentence: string): void => console.log(`${seconds().padStart(6)} s  ${sentence}`);
  const enough = new AbortController();
  for (const signal of ["SIGINT", "SIGTERM"] as const) process.once(signal, () => enough.abort());
  let plan: Plan | undefined;
  let cluster: SmokeCluster | undefined;
  let outcome: Outcome | undefined;
  try {
    plan = await planOf(cloud, isSimulated);
    cluster = new SmokeCluster(plan.head, plan.hosts, plan.listen);
    const performed = perform(cluster, plan.preemption, systemClock, tell);
    outcome = await Promise.race([performed, limited(plan.limitMs, enough.signal)]);
  } catch (error) {
    if (cluster !== undefined) console.error(cluster.lastWords);
    console.error(
      `smoke failed after ${seconds()} s: ${error instanceof Error ? error.message : String(error)}`,
    );
  } finally {
    enough.abort();
    await cluster?.end();
    await plan?.preemption.close();
  }
  if (outcome === undefined) return 1;
  const { items, steals, preempted, drainMs } = outcome;
  const figures = {
    items,
    steals,
    preempted,
    drain_ms: drainMs,
    seconds: seconds(),
  };
  console.log(
    `smoke ok: ${Object.entries(figures)
      .map(([name, value]) => `${name}=${value}`)
      .join(" ")}`,
  );
  return 0;
}

process.exitCode = await main(process.argv.slice(2));
