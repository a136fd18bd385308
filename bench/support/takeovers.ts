// Takeovers, one after the other: three coordinators over a Postgres and two workers, as processes, with everything between them over
// proxies that can be cut. Before each the workers have as much as they take, and nothing of it ends; so the first item that begins
// beyond that was given out by the successor.
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { assert } from "../../src/base/assert.ts";
import { findFreePort } from "../../src/base/address.ts";
import { sleep, systemClock } from "../../src/base/clock.ts";
import { systemRandom } from "../../src/base/random.ts";
import type { RolloutClient } from "../../src/compose/rollout-client.ts";
import { Coordinators } from "../../scripts/smoke/coordinators.ts";
import type { Leading } from "../../scripts/smoke/coordinators.ts";
import { tallyResults } from "../../scripts/smoke/tally.ts";
import { startTcpProxy } from "../../test/support/tcp-proxy.ts";
import type { TcpProxy } from "../../test/support/tcp-proxy.ts";
import { Gate } from "./gate.ts";

export const FAULTS = [
  "kill -9",
  "SIGSTOP",
  "cut from Postgres",
  "cut from the workers",
  "step-down",
] as const;
export type Fault = (typeof FAULTS)[number];

interface Takeover {
  /** From the fault to the first item that the successor gave out. */
  readonly tookMs: number;
  /** From the fault until another one leads. */
  readonly ledMs: number;
}

/** The figures of a row of takeovers of one kind. */
export interface Takeovers {
  readonly times: readonly Takeover[];
  readonly items: number;
  /** Items without a result. */
  readonly lost: number;
  /** Results beyond one for each item. */
  readonly duplicated: number;
  /** Items that were executed more than once, which recorded one result. */
  readonly executedAgain: number;
}

const COORDINATORS = 3;
const WORKERS = 2;
const SLOTS = 4;
const ITEMS_AT_ONCE = 600;
const ITEMS_LEFT_MIN = 300;
/** For so long nothing has changed: nothing is on its way any more. */
const CALM_MS = 300;
const LOOK_MS = 10;
/** The leader says with each of its heartbeats who is there, and a fault comes at any moment between two of them. */
const HEARTBEAT_MS = 1_000;
const LOOK_AROUND_MS = 50;
const PATIENCE_MS = 60_000;

export async function measureTakeovers(fault: Fault, count: number, postgres: string): Promise<Takeovers> {
  const scene = await Scene.set(postgres);
  try {
    const times: Takeover[] = [];
    while (times.length < count) times.push(await scene.takeover(fault));
    return { times, ...(await scene.finish()) };
  } catch (error) {
    throw new Error(`${fault}: ${String(error)}\n${scene.lastWords}`, { cause: error });
  } finally {
    await scene.strike();
  }
}

interface Wires {
  /** Between everybody else and the coordinator. */
  readonly network: TcpProxy;
  /** Between the coordinator and the database. */
  readonly database: TcpProxy;
}

class Scene {
  readonly #group: Coordinators;
  readonly #wires: readonly Wires[];
  readonly #gate: Gate;
  readonly #directory: string;
  readonly #plugin: string;
  #client: RolloutClient | undefined;
  #leading: Leading = { at: 0, epoch: -1 };
  /** The one that led before stands by. */
  #recovered: Promise<void> = Promise.resolve();
  #items = 0;

  private constructor(group: Coordinators, wires: readonly Wires[], gate: Gate) {
    [this.#group, this.#wires, this.#gate] = [group, wires, gate];
    this.#directory = mkdtempSync(join(tmpdir(), "rollout-bench-"));
    this.#plugin = join(this.#directory, "gate.toml");
    writeFileSync(this.#plugin, gate.manifest);
  }

  static async set(postgres: string): Promise<Scene> {
    const wires: Wires[] = [];
    const places = [];
    for (let at = 0; at < COORDINATORS; at++) {
      const [port, url] = [await findFreePort(), new URL(postgres)];
      const [network, database] = [await startTcpProxy(port), await startTcpProxy(Number(url.port))];
      wires.push({ network, database });
      url.host = database.address;
      places.push({ listens: `127.0.0.1:${port}`, reached: network.address, postgres: url.href });
    }
    const scene = new Scene(await Coordinators.prepare(places), wires, await Gate.make());
    await scene.#begin();
    return scene;
  }

  get lastWords(): string {
    return this.#group.lastWords;
  }

  async takeover(fault: Fault): Promise<Takeover> {
    const { at, epoch } = this.#leading;
    const before = await this.#saturate();
    await sleep(systemClock, HEARTBEAT_MS * systemRandom.unit());
    const faultMs = systemClock.monotonicMs();
    const recover = await this.#inflict(fault, at);
    // A leader that steps down gives out work until it does.
    const isAlive = fault === "step-down";
    if (!isAlive) this.#gate.open();
    const led = this.#group
      .untilLed(epoch)
      .then((leading) => ({ leading, ledMs: systemClock.monotonicMs() - faultMs }));
    if (isAlive) void led.then(() => this.#gate.open());
    const begunMs = await inTime("an item of the successor", this.#gate.untilBegun(before));
    this.#gate.close();
    const { leading, ledMs } = await led;
    this.#leading = leading;
    this.#recovered = inTime("the one before to stand by", recover());
    // It is waited for before the next fault.
    this.#recovered.catch(() => undefined);
    return { tookMs: begunMs - faultMs, ledMs };
  }

  /** Everything comes to its end. */
  async finish(): Promise<Omit<Takeovers, "times">> {
    const client = this.#demandClient();
    await this.#recovered;
    this.#gate.open();
    await client.seal();
    await inTime(
      "the end of the run",
      this.#until(async () => (await client.status()).state === "complete"),
    );
    const { items: recorded, duplicated } = await tallyResults(client);
    const [items, executedAgain] = [this.#items, this.#gate.begunAgain];
    return { items, lost: items - recorded, duplicated, executedAgain };
  }

  async strike(): Promise<void> {
    this.#client?.close();
    await this.#group.end();
    await this.#gate.stop();
    for (const { network, database } of this.#wires) {
      await network.close();
      await database.close();
    }
    rmSync(this.#directory, { recursive: true, force: true });
  }

  async #begin(): Promise<void> {
    for (let at = 0; at < COORDINATORS; at++) this.#group.start(at);
    this.#leading = await inTime("a leader", this.#group.untilLed());
    for (let at = 0; at < COORDINATORS; at++)
      if (at !== this.#leading.at) await inTime("a follower", this.#group.untilFollowing(at));
    const variables = { ROLLOUT_WORKER_SLOTS: String(SLOTS), ROLLOUT_WORKER_PLUGINS: this.#plugin };
    for (let number = 1; number <= WORKERS; number++) await this.#group.startWorker(number, variables);
    this.#client = await this.#group.client();
  }

  /** Returns how many executions will have begun when the workers have begun all that they were given. */
  async #saturate(): Promise<number> {
    const client = this.#demandClient();
    await this.#recovered;
    const { pending } = await client.status();
    if (pending < ITEMS_LEFT_MIN) {
      const lines = Array.from({ length: ITEMS_AT_ONCE }, (_, n) => ({ n: this.#items + n }));
      await client.submit(lines, { plugin: this.#plugin });
      this.#items += ITEMS_AT_ONCE;
    }
    const allPresent = async (): Promise<boolean> =>
      (await client.coordinators()).filter(({ present }) => present).length === COORDINATORS;
    await inTime("coordinators that all are there", this.#until(allPresent, LOOK_AROUND_MS));
    let calm = { running: -1, begun: -1, sinceMs: 0 };
    const isCalm = async (): Promise<boolean> => {
      const { running } = await client.status();
      const [begun, nowMs] = [this.#gate.begun, systemClock.monotonicMs()];
      if (running !== calm.running || begun !== calm.begun) calm = { running, begun, sinceMs: nowMs };
      return this.#gate.held === WORKERS * SLOTS && nowMs - calm.sinceMs >= CALM_MS;
    };
    await inTime("workers that have all that they take", this.#until(isCalm));
    return calm.begun + calm.running - this.#gate.held;
  }

  /** Returns what brings everything back. */
  async #inflict(fault: Fault, at: number): Promise<() => Promise<void>> {
    const leader = this.#group.member(at);
    const [pid, wires] = [leader.pid, this.#wires[at]];
    assert(pid !== undefined && wires !== undefined, "the leader is a process behind wires");
    const startAgain = async (): Promise<void> => {
      await leader.ended;
      this.#group.start(at);
      await this.#group.untilFollowing(at);
    };
    switch (fault) {
      case "kill -9":
        process.kill(pid, "SIGKILL");
        return startAgain;
      case "SIGSTOP":
        process.kill(pid, "SIGSTOP");
        return async () => {
          process.kill(pid, "SIGCONT");
          await startAgain();
        };
      case "cut from Postgres":
        wires.database.cut();
        return async () => {
          await leader.ended;
          wires.database.heal();
          await startAgain();
        };
      case "cut from the workers": {
        wires.network.cut();
        const followed = leader.seen("coordinator_following").length;
        return async () => {
          wires.network.heal();
          await this.#until(async () => leader.seen("coordinator_following").length > followed);
        };
      }
      case "step-down": {
        const followed = leader.seen("coordinator_following").length;
        const handedOver = this.#demandClient().handOver();
        handedOver.catch(() => undefined);
        return async () => {
          await handedOver;
          await this.#until(async () => leader.seen("coordinator_following").length > followed);
        };
      }
    }
  }

  async #until(isSo: () => Promise<boolean>, lookMs = LOOK_MS): Promise<void> {
    while (!(await isSo())) await sleep(systemClock, lookMs);
  }

  #demandClient(): RolloutClient {
    assert(this.#client !== undefined, "the scene has begun");
    return this.#client;
  }
}

async function inTime<Value>(wanted: string, waited: Promise<Value>): Promise<Value> {
  const over = new AbortController();
  const late = sleep(systemClock, PATIENCE_MS, over.signal).then(() => {
    if (!over.signal.aborted) throw new Error(`${PATIENCE_MS / 1_000} s without ${wanted}`);
    return waited;
  });
  try {
    return await Promise.race([waited, late]);
  } finally {
    over.abort();
  }
}
