// A run for programs: everything that the commands can do to one, as methods; the commands are built on it. Nothing here decides
// anything: each method is one question to the coordinator, or a loop over one.
import type { Transport } from "@connectrpc/connect";
import { systemClock } from "../base/clock.ts";
import { failure } from "../base/errors.ts";
import type { WorkerId } from "../base/ids.ts";
import { parseUlid } from "../base/ids.ts";
import { systemRandom } from "../base/random.ts";
import { watchEvents } from "../client/events.ts";
import type { RunEvent, WatchOptions } from "../client/events.ts";
import type { AttemptLog, Item } from "../client/items.ts";
import { readAttemptLog, readItem } from "../client/items.ts";
import { jsonItems } from "../client/json-items.ts";
import type { WorkerSummary } from "../client/list-workers.ts";
import { listWorkers } from "../client/list-workers.ts";
import { readResults } from "../client/results.ts";
import type { ReadOptions, Result, ResultPage } from "../client/results.ts";
import type { Retried } from "../client/run-control.ts";
import { cancelRun, foreseeRetry, pauseRun, resumeRun, retryItems } from "../client/run-control.ts";
import type { RunStatus } from "../client/run-status.ts";
import { readRunStatus, sealRun } from "../client/run-status.ts";
import type { Submitted, SubmitOptions } from "../client/submit.ts";
import { submitLines } from "../client/submit.ts";
import type { WorkerDetail } from "../client/worker-control.ts";
import { drainWorker, readWorker, untilGone } from "../client/worker-control.ts";
import { loadConfig } from "../config/load.ts";
import type { ClientConfig } from "../config/resolve.ts";
import type { Task } from "../config/task.ts";
import { TOPICS } from "../observe/events.ts";
import type { Logger } from "../observe/log.ts";
import { silentLogger } from "../observe/log.ts";
import { askingWhenAway, openOperatorClient } from "./operator-client.ts";
import type { ProcessPorts } from "./process-ports.ts";
import { submittedTask } from "./submitted-task.ts";

export interface ConnectOptions {
  /** Path of the configuration file; `rollout.toml` in the working directory unless said. */
  readonly config?: string;
  /** Values that count in place of the file's, by the names of flags: `{ "coordinator-addr": "10.0.0.7:50051" }`. */
  readonly settings?: Readonly<Record<string, string>>;
}

export interface SubmitItemsOptions extends Pick<SubmitOptions, "onProgress" | "dryRun" | "reopen"> {
  /** Manifest of the plugin that executes the items; without it that of `worker.plugins`, or `mock`. */
  readonly plugin?: string | undefined;
  /** Higher goes first, -100 to 100; 0 unless said. */
  readonly priority?: number;
  /** Say that nothing more will come: the run ends with the last of its items. */
  readonly seal?: boolean;
}

export interface ResultsOptions extends Partial<Omit<ReadOptions, "clock" | "random" | "patienceMs">> {
  /**
   * How long a coordinator that does not answer is waited for. Unless said, not at all at first; later for ever with `follow`, and
   * for half a minute without.
   */
  readonly patienceMs?: number;
}

export type EventsOptions = Partial<Omit<WatchOptions, "clock" | "random">>;

export interface RetryOptions {
  /** Only failures of this class: `error`, `timeout`, `crash`, `too_large`, `poison` or `cancelled`. */
  readonly failureClass?: string | undefined;
  /** Items by name, as `item` takes them; without any all that failed. */
  readonly items?: readonly string[];
  /** Only count what would be taken back. */
  readonly dryRun?: boolean;
}

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
  readonly #way: Way;
  readonly #ports: Ports;

  private constructor(way: Way, ports: Ports) {
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
    { plugin, priority = 0, seal = false, ...options }: SubmitItemsOptions = {},
  ): Promise<Submitted> {
    const { transport, taskOf, itemBytesMax } = this.#way;
    const task = await taskOf(plugin);
    const lines = jsonItems(items, itemBytesMax);
    const submitted = await submitLines(transport, lines, { ...options, ...this.#ports, task, priority });
    if (seal && options.dryRun !== true) await sealRun(transport);
    return submitted;
  }

  /** Says that nothing more will come: the run is complete when what is there is final. Idempotent. */
  seal(): Promise<void> {
    return sealRun(this.#way.transport);
  }

  /** The run in numbers, as it is now. */
  status({ signal }: { readonly signal?: AbortSignal } = {}): Promise<RunStatus> {
    return readRunStatus(this.#way.transport, signal);
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
    if (patienceMs === undefined) await this.status(options);
    yield* readResults(this.#way.transport, {
      ...{ ...options, ...this.#ports, order, follow },
      patienceMs: patienceMs ?? (follow ? Infinity : PATIENCE_MS),
    });
  }

  /** By its 64 digits, the first of them (at least 6), or the input's own id. Rejects with item_unknown, item_ambiguous. */
  item(name: string): Promise<Item> {
    return readItem(this.#way.transport, name);
  }

  /**
   * The standard error of an item's attempt, the last 64 KiB of it; without a number that of the last attempt which
   * left something. Empty when there is none. Rejects as `item` does.
   */
  async log(name: string, attempt = 0): Promise<AttemptLog> {
    const { transport } = this.#way;
    const itemId = ITEM_ID.test(name) ? Buffer.from(name, "hex") : (await readItem(transport, name)).itemId;
    return readAttemptLog(transport, itemId, attempt);
  }

  /**
   * Takes failed items back with new budgets; done ones are never touched. Repeated after a rejection it takes back what is left.
   * Rejects as `item` does, before anything is taken back, and with run_cancelled.
   */
  async retry({ failureClass, items: names = [], dryRun = false }: RetryOptions = {}): Promise<Retried> {
    const { transport } = this.#way;
    const items: Item[] = [];
    for (let at = 0; at < names.length; at += LOOKUPS) {
      const some = names.slice(at, at + LOOKUPS);
      items.push(...(await Promise.all(some.map((name) => readItem(transport, name)))));
    }
    if (dryRun) return foreseeRetry(transport, failureClass, items);
    return retryItems(transport, { failureClass, items: items.map(({ itemId }) => itemId) });
  }

  /** Nothing more is given out until `resume`; what executes goes on. Idempotent. */
  pause(reason: string): Promise<void> {
    return pauseRun(this.#way.transport, reason);
  }

  /** Lets a paused run go on; another one stays as it is. Idempotent. */
  resume(): Promise<void> {
    return resumeRun(this.#way.transport);
  }

  /** For good: what executes is killed and what waits never starts. Results that are there stay. Idempotent. */
  cancel(): Promise<void> {
    return cancelRun(this.#way.transport);
  }

  /** All that are known, in order of id; those that have left are for a while. */
  workers(): Promise<WorkerSummary[]> {
    return listWorkers(this.#way.transport);
  }

  /** One of them, and what it has. Rejects with worker_unknown. */
  async worker(id: string): Promise<WorkerDetail> {
    return readWorker(this.#way.transport, workerIdOf(id));
  }

  /** Asks a worker to leave in good order, and does not wait for it. Idempotent. Rejects with worker_unknown. */
  async drainWorker(id: string): Promise<void> {
    await drainWorker(this.#way.transport, workerIdOf(id));
  }

  /** Resolves when the worker has left, or is lost on its way (`failed`). Rejects with worker_unknown. */
  async untilWorkerGone(
    id: string,
    options: { readonly signal?: AbortSignal } = {},
  ): Promise<"gone" | "failed"> {
    return untilGone(this.#way.transport, workerIdOf(id), { ...options, clock: this.#ports.clock });
  }

  /**
   * Events of the run since its coordinator began to lead, as far as they are remembered (docs/EVENTS.md), and with `follow`
   * the following ones, over restarts of the coordinator too, until `signal` aborts.
   */
  async *events(options: EventsOptions = {}): AsyncGenerator<RunEvent> {
    for await (const line of this.eventLines(options)) yield JSON.parse(line) as RunEvent;
  }

  /** The same as lines of JSON, without their endings. */
  eventLines({ follow = false, ...options }: EventsOptions = {}): AsyncGenerator<string> {
    return watchEvents(this.#way.transport, { ...options, ...this.#ports, follow });
  }

  /** Ends all calls, which reject with `interrupted`. The run goes on. Idempotent. */
  close(): void {
    this.#way.close();
  }

  [Symbol.dispose](): void {
    this.close();
  }
}

/** In any case of its letters. */
function workerIdOf(text: string): WorkerId {
  const id = parseUlid<WorkerId>(text.toUpperCase());
  if (id === undefined) throw failure("worker_unknown", { worker: text });
  return id;
}
