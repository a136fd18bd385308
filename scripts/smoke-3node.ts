// `make smoke-3node-gcp`, `make smoke-3node-aws`: a coordinator and three workers as real processes over mutual TLS, on this
// machine or on four others. Says what happens as it happens, and ends with `smoke ok: …`, or loudly. docs/testing.md
import { readFileSync } from "node:fs";
import { systemClock } from "../src/base/clock.ts";
import { SmokeCluster } from "./smoke/cluster.ts";
import type { Launcher } from "./smoke/launcher.ts";
import { LocalLauncher } from "./smoke/local-launcher.ts";
import { perform } from "./smoke/performance.ts";
import type { Cloud, Preemption } from "./smoke/preemption.ts";
import { leftToTheCloud, servedOnLoopback, simulated } from "./smoke/preemption.ts";
import { SshLauncher } from "./smoke/ssh-launcher.ts";
import { demandBuild, limitMsOr, runSmoke } from "./smoke/stage.ts";

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
  readonly preemption: Preemption;
}

async function planOf(cloud: Cloud, isSimulated: boolean): Promise<Plan> {
  if (isOnOthers()) return cloudPlan(cloud, isSimulated);
  demandBuild();
  return {
    head: new LocalLauncher("coordinator"),
    hosts: Array.from({ length: WORKERS }, (_, at) => new LocalLauncher(`worker-${at + 1}`)),
    listen: "127.0.0.1:0",
    preemption: isSimulated ? simulated() : await servedOnLoopback(cloud, WORKERS),
  };
}

/** On other hosts, over ssh. */
function isOnOthers(): boolean {
  return process.env["ROLLOUT_SMOKE_CLOUD"] === "1";
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
    preemption: isSimulated ? simulated() : leftToTheCloud(cloud),
  };
}

/** The exit code. */
async function main(words: readonly string[]): Promise<number> {
  const cloud = words.find((word): word is Cloud => word === "aws" || word === "gcp");
  const isSimulated = words.includes("--simulate-preemption");
  if (cloud === undefined || words.length !== (isSimulated ? 2 : 1)) {
    console.error(USAGE);
    return 2;
  }
  const limitMs = limitMsOr(isOnOthers() ? CLOUD_LIMIT_MIN : LOCAL_LIMIT_MIN);
  return runSmoke(limitMs, async (stage) => {
    const { head, hosts, listen, preemption } = await planOf(cloud, isSimulated);
    const cluster = new SmokeCluster(head, hosts, listen);
    stage.afterwards(() => preemption.close());
    stage.afterwards(() => cluster.end());
    stage.explainBy(() => cluster.lastWords);
    const { drainMs, ...figures } = await perform(cluster, preemption, systemClock, stage.tell);
    return { ...figures, drain_ms: drainMs };
  });
}

process.exitCode = await main(process.argv.slice(2));
