// The smoke itself: work is given out, some of it is stolen from a slow worker, one worker's machine is taken away in the middle,
// and in the end every item has been executed once and has its result.
import type { Clock } from "../../src/base/clock.ts";
import { sleep } from "../../src/base/clock.ts";
import type { SmokeCluster, SmokeWorker } from "./cluster.ts";
import type { Member } from "./member.ts";
import type { Preemption } from "./preemption.ts";
import { DRAIN_TARGET_MS } from "./preemption.ts";
import { demand } from "./stage.ts";
import type { Tell } from "./stage.ts";

export interface Outcome {
  readonly items: number;
  readonly steals: number;
  readonly preempted: number;
  readonly drainMs: number;
}

const SLOTS = 4;
/** By worker: one has a backlog that it does not get through, one has nothing to do before long, one is to be preempted. */
const SLEEP_MS: readonly number[] = [1_000, 40, 250];
const TO_PREEMPT = 2;
/** Enough for every worker to have a backlog, and so few that only the slow one has one a moment later. */
const FIRST_WAVE = 40;
/** The next comes when so few are left that they would last for little more than a second. */
const WAVE = 160;
const LOW = 140;
const LAST_WAVE = 20;
const LOOK_EVERY_MS = 250;

export async function perform(
  cluster: SmokeCluster,
  preemption: Preemption,
  clock: Clock,
  tell: Tell,
): Promise<Outcome> {
  const coordinator = await cluster.startCoordinator();
  tell(`the coordinator leads at ${cluster.address}`);
  const workers = await cluster.startWorkers((worker) => ({
    ...preemption.settings(worker),
    ROLLOUT_WORKER_SLOTS: String(SLOTS),
    ROLLOUT_MOCK_SLEEP: `${SLEEP_MS[worker] ?? 0}ms`,
  }));
  for (const { id } of workers)
    await coordinator.event("worker_registered", (event) => event.worker_id === id);
  tell(`${workers.length} workers have joined, each with a certificate of its own`);

  const work = new Work(cluster, clock);
  await work.submitFirst();
  tell(`${work.items} items are submitted`);
  const { victim_id, items } = await coordinator.event("work_stolen");
  tell(`${items} items are stolen from worker ${workers.findIndex(({ id }) => id === victim_id) + 1}`);

  const drained = drainOf(workers, preemption, tell);
  const announced = announce(coordinator, workers[TO_PREEMPT], preemption);
  const [{ preempted, drainMs }] = await work.keepGoingUntil(Promise.all([drained, announced]));
  await coordinator.event("worker_deregistered", (event) => event.worker_id === preempted.id);
  tell(`worker ${preempted.number + 1} has left after a drain of ${drainMs} ms`);

  await work.submitLast();
  tell(`${work.items} items in all, and the run is sealed`);
  const { done, failed } = await coordinator.event("run_completed");
  tell(`the run is complete: ${done} done, ${failed} failed`);
  demand(
    done === work.items && failed === 0,
    `${done} of ${work.items} items are done, and ${failed} failed`,
  );
  demand((await cluster.status()).state === "complete", "the run says that it is not complete");
  await checkExecutions(cluster, coordinator, work.items);
  await Promise.all(workers.filter(({ id }) => id !== preempted.id).map(({ member }) => member.stop()));
  await coordinator.stop();
  const steals = coordinator.seen("work_stolen").length;
  return { items: work.items, steals, preempted: 1, drainMs };
}

/** The items to do: enough of them for as long as it takes. */
class Work {
  readonly #cluster: SmokeCluster;
  readonly #clock: Clock;
  items = 0;

  constructor(cluster: SmokeCluster, clock: Clock) {
    this.#cluster = cluster;
    this.#clock = clock;
  }

  submitFirst(): Promise<void> {
    return this.#submit(FIRST_WAVE, false);
  }

  submitLast(): Promise<void> {
    return this.#submit(LAST_WAVE, true);
  }

  /** Submits whenever little is left, until then. */
  async keepGoingUntil<Value>(end: Promise<Value>): Promise<Value> {
    const over = new AbortController();
    const stop = (): void => over.abort();
    end.then(stop, stop);
    const [value] = await Promise.all([end, this.#keepGoing(over.signal)]);
    return value;
  }

  async #keepGoing(over: AbortSignal): Promise<void> {
    while (!over.aborted) {
      if ((await this.#cluster.status()).left < LOW) await this.#submit(WAVE, false);
      await sleep(this.#clock, LOOK_EVERY_MS, over);
    }
  }

  async #submit(count: number, isLast: boolean): Promise<void> {
    const lines = Array.from({ length: count }, (_, at) => JSON.stringify({ item: this.items + at }));
    await this.#cluster.submit(lines, isLast);
    this.items += count;
  }
}

/** In the middle of its work. */
async function announce(
  coordinator: Member,
  worker: SmokeWorker | undefined,
  preemption: Preemption,
): Promise<void> {
  if (worker === undefined) return;
  const { number, id, member } = worker;
  await coordinator.nextEvent("worker_heartbeat", ({ worker_id, load }) => worker_id === id && load > 0);
  await preemption.announce(number, member);
}

/** The first worker to drain, when it has ended well and in time. */
async function drainOf(
  workers: readonly SmokeWorker[],
  { cause }: Preemption,
  tell: Tell,
): Promise<{ readonly preempted: SmokeWorker; readonly drainMs: number }> {
  const preempted = await Promise.race(
    workers.map(async (worker) => {
      const started = await worker.member.event("drain_started");
      return { ...worker, drainCause: started.cause };
    }),
  );
  const name = `worker ${preempted.number + 1}`;
  demand(preempted.drainCause === cause, `${name} drains because of ${preempted.drainCause}`);
  tell(`${name} is preempted (${cause}) and drains`);
  const { took_ms: drainMs } = await preempted.member.event("drain_completed");
  const code = await preempted.member.ended;
  demand(code === 0, `the preempted worker ended with ${String(code)}`);
  demand(drainMs <= DRAIN_TARGET_MS[cause], `the drain took ${drainMs} ms`);
  return { preempted, drainMs };
}

/** Nothing was lost, stolen or preempted into a second execution. */
async function checkExecutions(cluster: SmokeCluster, coordinator: Member, items: number): Promise<void> {
  const executions = await cluster.executions();
  const different = new Set(executions.map(({ item }) => item)).size;
  demand(different === items, `${different} of ${items} items were executed`);
  demand(executions.length === items, `${executions.length - items} items were executed twice`);
  demand(coordinator.seen("worker_failed").length === 0, "a worker failed");
}
