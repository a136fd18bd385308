// A run for programs: everything that the commands can do to one, as methods; the commands are built on it. Nothing here decides
// anything: each method is one question to the coordinator, or a loop over one.
import { createClient } from "@connectrpc/connect";
import type { Client, Transport } from "@connectrpc/connect";
import { systemClock } from "../base/clock.ts";
import { failure } from "../base/errors.ts";
import type { WorkerId } from "../base/ids.ts";
import { parseUlid } from "../base/ids.ts";
import { systemRandom } from "../base/random.ts";
import { watchCharts } from "../client/charts.ts";
import type { ChartNews } from "../client/charts.ts";
import { watchEvents } from "../client/events.ts";
import type { RunEvent } from "../client/events.ts";
import type { AttemptLog, Item } from "../client/items.ts";
import { handOver, listCoordinators } from "../client/coordinators.ts";
import type { CoordinatorSummary, Handover } from "../client/coordinators.ts";
import { askForItem, itemOf } from "../client/items.ts";
import { askForKey, listKeys, listPartitions, skipParked, steerKeys } from "../client/keys.ts";
import type { Key, KeyPhaseName, KeySteering, Partition, SteeredKeys, WholeKey } from "../client/keys.ts";
import { plainOf } from "../client/operator-message.ts";
import { readResults } from "../client/results.ts";
import type { Result, ResultPage } from "../client/results.ts";
import type { Retried } from "../client/run-control.ts";
import { foreseeRetry, retryItems } from "../client/run-control.ts";
import { RunNews } from "../client/run-news.ts";
import type { RunStatus } from "../client/run-status.ts";
import { statusOf } from "../client/run-status.ts";
import type { Submitted } from "../client/submit.ts";
import { jsonItems, submitLines } from "../client/submit.ts";
import type { WorkerDetail, WorkerSummary } from "../client/workers.ts";
import { listWorkers, untilGone, workerDetailOf } from "../client/workers.ts";
import { loadConfig } from "../config/load.ts";
import type { ClientConfig } from "../config/resolve.ts";
import type { Task } from "../config/task.ts";
import { KeyService } from "../gen/rollout/v1/keys_pb.ts";
import { CoordinatorService } from "../gen/rollout/v1/coordinator_pb.ts";
import { FleetService } from "../gen/rollout/v1/fleet_pb.ts";
import { ReleaseService } from "../gen/rollout/v1/release_pb.ts";
import { GetAttemptLogResponseSchema, OperatorService } from "../gen/rollout/v1/run_pb.ts";
import { TOPICS } from "../observe/events.ts";
import type { Logger } from "../observe/log.ts";
import { silentLogger } from "../observe/log.ts";
import { Actors } from "./actors.ts";
import type { AnyActorType } from "./actor-now.ts";
import type {
  ConnectOptions,
  EventsOptions,
  ResultsOptions,
  RetryOptions,
  SubmitItemsOptions,
} from "./client-options.ts";
import { askingWhenAway, openOperatorClient, submittedTask } from "./operator-client.ts";
import type { ProcessPorts } from "./process-ports.ts";
import { Releases } from "./releases.ts";

/**
 * A way to a coordinator, and what is known of the run before it is asked.
 * @internal
 */
interface Way {
  readonly transport: Transport;
  readonly close: () => void;
  /** The task that items are submitted for: by that manifest, or by none. */
  readonly taskOf: (plugin: string | undefined) => Promise<Task>;
  readonly itemBytesMax: number;
}

type Ports = Pick<ProcessPorts, "clock" | "random">;

const SYSTEM: Ports = { clock: systemClock, random: systemRandom };
const PATIENCE_MS = 30_000;
const ITEM_ID = /^[0-9a-f]{64}$/;
/** Names that are looked up at the same time. */
const LOOKUPS = 16;

/**
 * Every method rejects with `RolloutError` only, whose `code` is a row of docs/errors.md: those of a coordinator that cannot be
 * reached or that refuses, `interrupted` after `close`, and what is said at the method. A coordinator that is away for a moment
 * is asked again first; after a rejection every call may simply be repeated.
 */
export class RolloutClient {
  /**
   * The coordinator's own answers, for commands that print them.
   * @internal
   */
  readonly calls: Client<typeof OperatorService>;
  readonly #coordinatorCalls: Client<typeof CoordinatorService>;
  /** @internal */
  readonly keyCalls: Client<typeof KeyService>;
  /** @internal */
  readonly fleetCalls: Client<typeof FleetService>;
  /** Other versions of the plugin, tried on some of the items. */
  readonly releases: Releases;
  readonly #way: Way;
  readonly #ports: Ports;

  private constructor(way: Way, ports: Ports) {
    this.calls = createClient(OperatorService, way.transport);
    this.#coordinatorCalls = createClient(CoordinatorService, way.transport);
    this.keyCalls = createClient(KeyService, way.transport);
    this.fleetCalls = createClient(FleetService, way.transport);
    this.releases = new Releases(createClient(ReleaseService, way.transport), ports);
    this.#way = way;
    this.#ports = ports;
  }

  /**
   * Over a way that somebody else makes.
   * @internal
   */
  static over(way: Way, ports: Ports = SYSTEM): RolloutClient {
    return new RolloutClient(way, ports);
  }

  /**
   * Reads configuration and certificate; the coordinator is called when something is asked of it. Rejects with config_… and tls_…
   * rows.
   */
  static async connect({ config: file, settings }: ConnectOptions = {}): Promise<RolloutClient> {
    const config = await loadConfig("operator", {
      file,
      environment: process.env,
      flags: settings ?? {},
      workingDirectory: process.cwd(),
      topics: TOPICS,
    });
    return RolloutClient.open(config, silentLogger);
  }

  /**
   * By a configuration that was read. Rejects with tls_… rows. `whenAway` is called when no coordinator is reached; an error
   * that it rejects with is the call's.
   * @internal
   */
  static async open(
    config: ClientConfig,
    log: Logger,
    whenAway: () => Promise<void> = () => Promise.resolve(),
  ): Promise<RolloutClient> {
    const client = await openOperatorClient(config, log);
    const way: Way = {
      transport: askingWhenAway(client.transport, whenAway),
      close: () => client.close(),
      taskOf: (plugin) => submittedTask(plugin, config),
      itemBytesMax: config.limits.payloadBytes,
    };
    return new RolloutClient(way, SYSTEM);
  }

  /**
   * Adds items and resolves when all are on the coordinator's disk. An item is any JSON value; bytes are taken as they are. Items
   * are known by their content: what is there already is not added again, so that a submission that was rejected may be repeated as a
   * whole; equal ones of one call are different items. Rejects with input_invalid for what is no item: those before it are
   * submitted. And with manifest rows, other_task, run_sealed, run_cancelled.
   */
  async submit(
    items: Iterable<unknown> | AsyncIterable<unknown>,
    { plugin, priority = 0, seal = false, key, id, ...options }: SubmitItemsOptions = {},
  ): Promise<Submitted> {
    const { transport, taskOf, itemBytesMax } = this.#way;
    const task = await taskOf(plugin);
    const { actorTypes } = task;
    if (key === undefined && actorTypes !== undefined)
      throw failure("request_invalid", {
        method: "submit",
        reason: "an event is sent to an actor by its key",
      });
    if (key === undefined && id !== undefined)
      throw failure("request_invalid", { method: "submit", reason: "an id names an item within its key" });
    const lines = jsonItems(items, itemBytesMax, key === undefined ? undefined : { key, id, actorTypes });
    const submitted = await submitLines(transport, lines, { ...options, ...this.#ports, task, priority });
    if (seal && options.dryRun !== true) await this.seal();
    return submitted;
  }

  /** Says that nothing more will come: the run is complete when what is there is final. Idempotent. */
  async seal(): Promise<void> {
    await this.calls.seal({});
  }

  /** The run in numbers, as it is now. */
  async status({ signal }: { readonly signal?: AbortSignal } = {}): Promise<RunStatus> {
    return statusOf(await this.calls.getRun({}, signal === undefined ? {} : { signal }));
  }

  /**
   * The run in numbers for who stays; one reader each.
   * @internal
   */
  news(collectMs: number): RunNews {
    return new RunNews(this.calls, { clock: this.#ports.clock, collectMs });
  }

  /**
   * Results of the items, one by one, in constant memory: as they became final, unless `order` says otherwise. With `follow` until
   * the run is over, else those that are there. A coordinator that restarts is waited for, and nothing comes twice or not at
   * all. Rejects with `interrupted` when `signal` aborts.
   */
  async *results(options: ResultsOptions = {}): AsyncGenerator<Result> {
    for await (const { results } of this.resultPages(options)) yield* results;
  }

  /** The same by pages: the cursor of one, given as `after`, is where another reading goes on, also in another process. */
  async *resultPages({ patienceMs, ...options }: ResultsOptions = {}): AsyncGenerator<ResultPage> {
    const { order = "completion", follow = false } = options;
    if (patienceMs === undefined && !follow) await this.status(options);
    yield* readResults(this.#way.transport, {
      ...{ ...options, ...this.#ports, order, follow },
      patienceMs: patienceMs ?? (follow ? Infinity : PATIENCE_MS),
    });
  }

  /** By its 64 digits, the first of them (at least 6), or the input's own id. Rejects with item_unknown, item_ambiguous. */
  async item(name: string): Promise<Item> {
    return itemOf(await askForItem(this.calls, name));
  }

  /**
   * The standard error of an item's attempt, the last 64 KiB of it; without a number that of the last attempt which
   * left something. Empty when there is none. Rejects as `item` does.
   */
  async log(name: string, attempt = 0): Promise<AttemptLog> {
    const item = ITEM_ID.test(name) ? name : (await this.item(name)).item;
    return plainOf(GetAttemptLogResponseSchema, await this.calls.getAttemptLog({ item, attempt }));
  }

  /**
   * Retries failed items, with new budgets; done ones are never touched. Repeated after a rejection it retries what is left.
   * Rejects as `item` does, before anything is retried, and with run_cancelled.
   */
  async retry({ failureClass, items: names = [], dryRun = false }: RetryOptions = {}): Promise<Retried> {
    const items: Item[] = [];
    for (let at = 0; at < names.length; at += LOOKUPS) {
      const some = names.slice(at, at + LOOKUPS);
      items.push(...(await Promise.all(some.map((name) => this.item(name)))));
    }
    if (dryRun) return foreseeRetry(this.calls, failureClass, items);
    return retryItems(this.calls, { failureClass, items: items.map(({ item }) => item) });
  }

  /** Nothing more is given out until `resume`; what executes goes on. Idempotent. */
  async pause(reason: string): Promise<void> {
    await this.calls.pause({ reason });
  }

  /** Lets a paused run go on; another one stays as it is. Idempotent. */
  async resume(): Promise<void> {
    await this.calls.resume({});
  }

  /** For good: what executes is killed and what waits never starts. Results that are there stay. Idempotent. */
  async cancel(): Promise<void> {
    await this.calls.cancel({});
  }

  /** One key; with `withState` also its state. Rejects with key_unknown. */
  async key(key: string, { withState = false } = {}): Promise<WholeKey> {
    return askForKey(this.keyCalls, key, withState);
  }

  /** All keys, or those in the states that are named. */
  keys({ phases = [] }: { readonly phases?: readonly KeyPhaseName[] } = {}): AsyncGenerator<Key> {
    return listKeys(this.keyCalls, phases);
  }

  /**
   * `pause`: nothing more of the keys starts. `resume`: it goes on. `skip`: it goes on without the item that has failed and keeps the key.
   * `retire`: forgets idle keys with their states. Each key for which that cannot be is among `refused`. Idempotent.
   */
  steerKeys(steering: KeySteering, keys: readonly string[]): Promise<SteeredKeys> {
    return steerKeys(this.keyCalls, steering, keys);
  }

  /** Durable actors of that type. `plugin`: the manifest that has them; without it that of `worker.plugins`. */
  actors<Type extends AnyActorType = AnyActorType>(type: string, plugin?: string): Actors<Type> {
    return new Actors<Type>(this, type, plugin);
  }

  /** The partitions of keys, and whose each is by the ring; none while the run has no keys. */
  partitions(): Promise<Partition[]> {
    return listPartitions(this.keyCalls);
  }

  /**
   * Skips every failed item that keeps a key; resolves with how many there were.
   * @internal
   */
  skipParked(): Promise<number> {
    return skipParked(this.keyCalls);
  }

  /** All that are known, in order of id; those that have left are for a while. */
  workers(): Promise<WorkerSummary[]> {
    return listWorkers(this.calls);
  }

  /** One of them, and what it has. Rejects with worker_unknown. */
  async worker(id: string): Promise<WorkerDetail> {
    return workerDetailOf(await this.calls.getWorker({ workerId: workerIdOf(id) }));
  }

  /** Asks a worker to leave in good order, and does not wait for it. Idempotent. Rejects with worker_unknown. */
  async drainWorker(id: string): Promise<void> {
    await this.calls.drainWorker({ workerId: workerIdOf(id) });
  }

  /** Resolves when the worker has left, or is lost on its way (`failed`). Rejects with worker_unknown. */
  async untilWorkerGone(
    id: string,
    options: { readonly signal?: AbortSignal } = {},
  ): Promise<"gone" | "failed"> {
    return untilGone(this.calls, workerIdOf(id), { ...options, clock: this.#ports.clock });
  }

  /**
   * All coordinators that are there, or were a while ago, by address.
   * @internal
   */
  coordinators(): Promise<CoordinatorSummary[]> {
    return listCoordinators(this.#coordinatorCalls);
  }

  /**
   * Has the leader make room for another coordinator, and waits for that one. Rejects with request_invalid where there is none.
   * @internal
   */
  handOver(): Promise<Handover> {
    return handOver(this.#coordinatorCalls, this.#ports.clock);
  }

  /**
   * Events of the run since its coordinator began to lead, as far as they are remembered (docs/EVENTS.md), and with `follow`
   * the following ones, over restarts of the coordinator too, until `signal` aborts. A coordinator that is not there yet is waited for then.
   */
  async *events(options: EventsOptions = {}): AsyncGenerator<RunEvent> {
    for await (const line of this.eventLines(options)) yield JSON.parse(line) as RunEvent;
  }

  /** The same as lines of JSON, without their endings. */
  eventLines({ follow = false, ...options }: EventsOptions = {}): AsyncGenerator<string> {
    return watchEvents(this.#way.transport, { ...options, ...this.#ports, follow });
  }

  /**
   * Statecharts of the coordinator as they move (`rollout machines list` names them), some items at work, and the course of the run
   * since the coordinator leads: whole in the first answer and behind each restart, then what is new, until `signal` aborts.
   */
  charts(options: Omit<EventsOptions, "follow" | "onDropped"> = {}): AsyncGenerator<ChartNews> {
    return watchCharts(this.#way.transport, { ...options, ...this.#ports });
  }

  /** Ends all calls, which reject with `interrupted`. The run goes on. Idempotent. */
  close(): void {
    this.#way.close();
  }

  [Symbol.dispose](): void {
    this.close();
  }
}

function workerIdOf(text: string): WorkerId {
  const id = parseUlid<WorkerId>(text.toUpperCase());
  if (id === undefined) throw failure("worker_unknown", { worker: text });
  return id;
}
