// The trial of a quorum, its coordinators and its workers: one of each kind is killed, each back before the next, and then
// everything of one host, all with work under way. In the end each item has one result.
import { sleep, systemClock } from "../../src/base/clock.ts";
import type { RolloutClient } from "../../src/compose/rollout-client.ts";
import type { Coordinators } from "./coordinators.ts";
import type { Member } from "./member.ts";
import { hostName } from "./quorum-plan.ts";
import type { Quorum } from "./quorum.ts";
import { demand } from "./stage.ts";
import type { Tell } from "./stage.ts";
import { tallyResults } from "./tally.ts";
import { SteadyWork } from "./steady-work.ts";

const HOSTS = [0, 1, 2] as const;
const WORKER = { ROLLOUT_WORKER_SLOTS: "4", ROLLOUT_MOCK_SLEEP: "400ms" };
const LOOK_MS = 20;
/** Patroni's `ttl` of 20 s, a look every 5 s, and the promotion. */
const DATABASE_TAKEOVER_MAX_MS = 60_000;
const PATIENCE_MS = 120_000;
/** Results that must be recorded before something else is killed. */
const RESULTS_BETWEEN = 100;

export class QuorumTrial {
  readonly #quorum: Quorum;
  readonly #coordinators: Coordinators;
  readonly #tell: Tell;
  readonly #workers: Member[] = [];
  readonly #databaseTakeoversMs: number[] = [];
  readonly #resultsAfterDatabaseMs: number[] = [];
  #takeoverMs = 0;
  #work: SteadyWork | undefined;

  constructor(quorum: Quorum, coordinators: Coordinators, tell: Tell) {
    [this.#quorum, this.#coordinators, this.#tell] = [quorum, coordinators, tell];
  }

  async perform(): Promise<Readonly<Record<string, string | number>>> {
    const client = await this.#begin();
    try {
      const work = new SteadyWork(client);
      this.#work = work;
      const faults = async (): Promise<void> => {
        await this.#calm();
        await this.#loseEtcd();
        await this.#losePrimary();
        await this.#losePatroni();
        await this.#loseStandby();
        await this.#loseLeader();
        await this.#loseWorker();
        await this.#loseHost();
      };
      await work.during(faults());
      this.#tell(`${work.items} items in all, and the run is sealed`);
      await until("the end of the run", async () => (await work.status())?.state === "complete");
      const { items, duplicated } = await tallyResults(client);
      const lost = work.items - items;
      demand(lost === 0, `${lost} results are lost`);
      demand(duplicated === 0, `${duplicated} results are there twice`);
      await Promise.all(this.#workers.map((worker) => worker.stop()));
      return {
        ...{ items: work.items, lost, duplicated, takeover_ms: this.#takeoverMs },
        database_takeover_ms: this.#databaseTakeoversMs.join(),
        results_after_database_ms: this.#resultsAfterDatabaseMs.join(),
        coordinator_restarts: this.#coordinators.restarts,
      };
    } finally {
      client.close();
    }
  }

  async #begin(): Promise<RolloutClient> {
    const { primary, synchronous } = await this.#quorum.untilWhole();
    this.#tell(
      `the Postgres of ${hostName(primary)} is the primary, and commits wait for that of ${hostName(synchronous)}`,
    );
    for (const at of HOSTS) this.#coordinators.keep(at);
    const client = await this.#coordinators.client();
    for (const at of HOSTS) this.#workers[at] = await this.#coordinators.startWorker(at + 1, WORKER);
    return client;
  }

  /** Everything is there, and results are recorded. */
  async #calm(): Promise<void> {
    await inTime("everything to be back", this.#quorum.untilWhole());
    const work = this.#demandWork();
    await until("three coordinators, of which one leads", async () => {
      const all = await work.coordinators();
      const present = all.filter((each) => each.present);
      return present.length === HOSTS.length && present.filter(({ role }) => role === "leader").length === 1;
    });
    await until("three workers", async () => (await work.workersAlive()) === HOSTS.length);
    const done = (await work.status())?.done ?? 0;
    await until("more results", async () => ((await work.status())?.done ?? 0) >= done + RESULTS_BETWEEN);
    demand(
      this.#workers.every(({ isRunning }) => isRunning),
      "a worker has ended",
    );
    this.#tell(
      `all is there; coordinator ${this.#leader + 1} leads, and ${(await work.status())?.done} results are recorded`,
    );
  }

  async #loseEtcd(): Promise<void> {
    const at = await this.#quorum.etcdLeader();
    this.#tell(`the etcd of ${hostName(at)} is killed, which leads the others; nothing should wait for it`);
    await this.#quorum.host(at).kill("etcd");
    await this.#resultsSince(systemClock.monotonicMs());
    await this.#quorum.host(at).start("etcd");
    await this.#calm();
  }

  async #losePrimary(): Promise<void> {
    const { primary } = await this.#quorum.untilWhole();
    const host = this.#quorum.host(primary);
    await this.#untilTakenOver(
      primary,
      `the Postgres of ${host.name}, the primary, and its Patroni`,
      async () => {
        await host.kill("patroni");
        host.killPostgres();
      },
    );
    await host.start("patroni");
    await this.#calm();
  }

  /** The primary's Patroni alone: its Postgres lives on and does not know that it is over, but has no standby any more. */
  async #losePatroni(): Promise<void> {
    const { primary } = await this.#quorum.untilWhole();
    const host = this.#quorum.host(primary);
    await this.#untilTakenOver(
      primary,
      `the Patroni of the primary, ${host.name}, whose Postgres lives on,`,
      () => host.kill("patroni"),
    );
    await host.start("patroni");
    await this.#calm();
  }

  async #loseStandby(): Promise<void> {
    const { synchronous } = await this.#quorum.untilWhole();
    const host = this.#quorum.host(synchronous);
    this.#tell(
      `the Postgres of ${host.name} is killed, for which commits wait: they wait until Patroni names another`,
    );
    const sinceMs = systemClock.monotonicMs();
    host.killPostgres();
    this.#tell(`results are recorded again after ${await this.#resultsSince(sinceMs)} ms`);
    await this.#calm();
  }

  async #loseLeader(): Promise<void> {
    const at = this.#leader;
    this.#tell(
      `coordinator ${at + 1} is killed, which leads: another one leads when the lease was quiet for 5 s`,
    );
    const sinceMs = systemClock.monotonicMs();
    await this.#coordinators.kill(at);
    this.#takeoverMs = await this.#resultsSince(sinceMs);
    this.#tell(
      `coordinator ${this.#leader + 1} leads; results are recorded again after ${this.#takeoverMs} ms`,
    );
    this.#coordinators.keep(at);
    await this.#calm();
  }

  async #loseWorker(): Promise<void> {
    this.#tell(
      "worker 1 is killed: the items that it has are given to others when it was silent for long enough",
    );
    await this.#workers[0]?.kill();
    await this.#resultsSince(systemClock.monotonicMs());
    this.#workers[0] = await this.#coordinators.startWorker(1, WORKER);
    await this.#calm();
  }

  /** The one with the primary, where the leader is brought first. */
  async #loseHost(): Promise<void> {
    const { primary } = await this.#quorum.untilWhole();
    while (this.#leader !== primary) {
      const { tookMs } = await this.#demandWork().handOver();
      this.#tell(
        `the leader steps down; coordinator ${this.#leader + 1} leads after ${Math.round(tookMs)} ms`,
      );
    }
    const host = this.#quorum.host(primary);
    await this.#untilTakenOver(
      primary,
      `everything of ${host.name}, where the primary and the leader are,`,
      async () => {
        const dead = [host.kill("etcd"), host.kill("patroni"), this.#coordinators.kill(primary)];
        host.killPostgres();
        await Promise.all([...dead, this.#workers[primary]?.kill()]);
      },
    );
    await host.start("etcd");
    await host.start("patroni");
    this.#coordinators.keep(primary);
    this.#workers[primary] = await this.#coordinators.startWorker(primary + 1, WORKER);
    await this.#calm();
  }

  /** Kills the primary in some way, and waits until another one takes commits, and results are recorded again. */
  async #untilTakenOver(primary: number, lost: string, kill: () => Promise<void>): Promise<void> {
    this.#tell(
      `${lost} is killed: waiting until Patroni promotes another (ttl 20 s, a look every 5 s; 60 s at most)`,
    );
    const [restarts, epoch] = [this.#coordinators.restarts, this.#coordinators.leading?.epoch];
    const killedMs = systemClock.monotonicMs();
    await kill();
    const others = HOSTS.filter((at) => at !== primary);
    const backMs = await inTime("a new primary", this.#quorum.probe(others).acknowledged());
    const tookMs = Math.round(backMs - killedMs);
    this.#databaseTakeoversMs.push(tookMs);
    this.#tell(`another Postgres acknowledges commits after ${tookMs} ms`);
    demand(tookMs <= DATABASE_TAKEOVER_MAX_MS, "the database was taken over too late");
    const resultMs = await this.#resultsSince(backMs);
    const isSame = this.#coordinators.leading?.epoch === epoch;
    this.#resultsAfterDatabaseMs.push(resultMs);
    this.#tell(
      `coordinator ${this.#leader + 1} ${isSame ? "leads on" : "leads"}, and results are recorded ${resultMs} ms later; ` +
        `${this.#coordinators.restarts - restarts} coordinators had to start again`,
    );
  }

  /** How long after that moment results are recorded. */
  async #resultsSince(sinceMs: number): Promise<number> {
    const work = this.#demandWork();
    const before = await work.status();
    let done = before?.done;
    await until("results", async () => {
      const now = (await work.status())?.done;
      const hasMore = now !== undefined && done !== undefined && now > done;
      done ??= now;
      return hasMore;
    });
    return Math.round(systemClock.monotonicMs() - sinceMs);
  }

  get #leader(): number {
    return this.#coordinators.leading?.at ?? -1;
  }

  #demandWork(): SteadyWork {
    if (this.#work === undefined) throw new Error("nothing was submitted yet");
    return this.#work;
  }
}

async function until(wanted: string, isSo: () => Promise<boolean>): Promise<void> {
  const endMs = systemClock.monotonicMs() + PATIENCE_MS;
  while (!(await isSo())) {
    if (systemClock.monotonicMs() > endMs) throw new Error(`${PATIENCE_MS / 1_000} s without ${wanted}`);
    await sleep(systemClock, LOOK_MS);
  }
}

async function inTime<Value>(wanted: string, awaited: Promise<Value>): Promise<Value> {
  let value: { readonly it: Value } | undefined;
  let failed: { readonly error: unknown } | undefined;
  awaited.then(
    (it) => (value = { it }),
    (error: unknown) => (failed = { error }),
  );
  await until(wanted, async () => value !== undefined || failed !== undefined);
  if (failed !== undefined) throw failed.error;
  return (value as unknown as { readonly it: Value }).it;
}
