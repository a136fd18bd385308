// `make run`: a cluster on this machine, from nothing to nothing in a quarter of a minute. A coordinator and three workers are
// started as anybody would start them, one worker is killed, one is told to stop, and everything that is shown comes from
// the coordinator's event stream (docs/EVENTS.md).
import { execFile } from "node:child_process";
import { existsSync } from "node:fs";
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";
import { systemClock } from "../src/base/clock.ts";
import { Member } from "./local-cluster/member.ts";
import type { ClusterEvent } from "./local-cluster/member.ts";
import { Story } from "./local-cluster/story.ts";
import { Workers } from "./local-cluster/workers.ts";

const PROGRAM = fileURLToPath(new URL("../bin/run.js", import.meta.url));
const BUILT = fileURLToPath(new URL("../dist/src/cli/main.js", import.meta.url));
const WORKERS = 3;
/** Long enough to read what stands there. */
const PAUSE_MS = 1_500;

interface Joined {
  readonly process: Member;
  readonly id: string;
}

class LocalCluster {
  readonly #directory: string;
  readonly #story: Story;
  readonly #workers: Workers;
  readonly #members: Member[] = [];
  #isEnding = false;
  #environment: Readonly<Record<string, string>> = { ROLLOUT_TRANSPORT_LISTEN_ADDR: "127.0.0.1:0" };

  constructor(directory: string, story: Story, workers: Workers) {
    this.#directory = directory;
    this.#story = story;
    this.#workers = workers;
  }

  /** Runs a command to its end and gives what it printed. */
  async run(...words: string[]): Promise<string> {
    this.#story.command(`rollout ${words.join(" ")}`);
    const { stdout } = await promisify(execFile)(process.execPath, [PROGRAM, ...words], {
      cwd: this.#directory,
      env: this.#processEnvironment(),
    });
    return stdout;
  }

  async startCoordinator(): Promise<Member> {
    const coordinator = this.#start("coordinator", "run");
    coordinator.onEvent((event) => this.#workers.take(event));
    const { address, epoch } = await coordinator.event("coordinator_leading");
    this.#environment = { ...this.#environment, ROLLOUT_WORKER_COORDINATOR_ADDR: String(address) };
    this.#story.tell(`the coordinator leads at ${String(address)}, epoch ${String(epoch)}`);
    return coordinator;
  }

  /** A worker that the coordinator has heard of. Call it again when it has resolved: each event is of the last one. */
  async startWorker(coordinator: Member): Promise<Joined> {
    const registered = coordinator.nextEvent("worker_registered");
    const worker = this.#start("worker", "run");
    const event = await Promise.race([registered, worker.untimelyEnd]);
    const id = String(event["worker_id"]);
    this.#workers.started(id, worker.pid);
    this.#story.tell(`worker ${this.#workers.nameOf(id)} has joined, with a certificate of its own`);
    return { process: worker, id };
  }

  /** Ends what still runs in good order: workers first, so that somebody hears their goodbye. */
  async end(): Promise<void> {
    this.#isEnding = true;
    for (const member of this.#members.toReversed()) await member.stop();
  }

  #start(...words: string[]): Member {
    this.#story.command(`rollout ${words.join(" ")}`);
    const member = new Member(PROGRAM, words, { cwd: this.#directory, env: this.#processEnvironment() });
    this.#members.push(member);
    return member;
  }

  /** Without settings of the user's own, which belong to another cluster. */
  #processEnvironment(): NodeJS.ProcessEnv {
    if (this.#isEnding) throw new Error("the cluster is coming to its end");
    const own = Object.entries(process.env).filter(([name]) => !name.startsWith("ROLLOUT_"));
    return { ...Object.fromEntries(own), ...this.#environment };
  }
}

/** The performance: three join, one is killed, one leaves. */
async function perform(cluster: LocalCluster, story: Story, workers: Workers): Promise<void> {
  await cluster.run("init");
  const coordinator = await cluster.startCoordinator();
  const joined: Joined[] = [];
  while (joined.length < WORKERS) joined.push(await cluster.startWorker(coordinator));
  const [killed, stopped] = joined;
  if (killed === undefined || stopped === undefined) throw new Error("there are fewer than two workers");
  await story.pause(PAUSE_MS);

  story.command(`kill -9 ${killed.process.pid}`, `worker ${workers.nameOf(killed.id)}`);
  killed.process.kill();
  workers.killed(killed.id);
  const suspected = await coordinator.event("worker_suspected", killed.id);
  story.tell(`worker ${workers.nameOf(killed.id)} is suspected: its heartbeat is late by ${late(suspected)}`);
  const failed = await coordinator.event("worker_failed", killed.id);
  story.tell(`worker ${workers.nameOf(killed.id)} has failed: its heartbeat is late by ${late(failed)}`);
  await story.pause(PAUSE_MS);

  story.command(`kill ${stopped.process.pid}`, `worker ${workers.nameOf(stopped.id)}`);
  void stopped.process.stop();
  await coordinator.event("worker_deregistered", stopped.id);
  story.tell(`worker ${workers.nameOf(stopped.id)} has said goodbye and left: not a failure`);
  await story.pause(PAUSE_MS);

  const list = await cluster.run("worker", "list");
  story.quote(list);
}

function late(event: ClusterEvent): string {
  return `${(Number(event["late_ms"]) / 1_000).toFixed(1)} s`;
}

/** The exit code. */
async function main(): Promise<number> {
  if (!existsSync(BUILT)) {
    console.error("error: nothing is built (run `make run`, or `make build` first)");
    return 2;
  }
  const interrupted = new AbortController();
  for (const signal of ["SIGINT", "SIGTERM"] as const) process.on(signal, () => interrupted.abort());
  process.stdout.on("error", () => interrupted.abort());
  const interruption = new Promise<"interrupted">((resolve) => {
    interrupted.signal.addEventListener("abort", () => resolve("interrupted"));
  });

  const directory = await mkdtemp(join(tmpdir(), "rollout-local-cluster-"));
  const workers = new Workers(systemClock);
  const story = new Story(process.stdout, systemClock, () => workers.table());
  const cluster = new LocalCluster(directory, story, workers);
  story.begin(`A cluster on this machine: a coordinator and ${WORKERS} workers`, `in ${directory}`);
  try {
    const outcome = await Promise.race([perform(cluster, story, workers).then(() => "done"), interruption]);
    if (outcome === "done") {
      story.end(workers.summary());
      return 0;
    }
    story.end("Interrupted: ending what was started.");
    return 4;
  } catch (error) {
    story.end(`It went wrong: ${error instanceof Error ? error.message : String(error)}`);
    return 1;
  } finally {
    await cluster.end();
    await rm(directory, { recursive: true, force: true });
    story.farewell("Every process has ended, and the directory is gone.");
  }
}

process.exitCode = await main();
