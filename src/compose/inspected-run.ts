// The run that `rollout inspect` shows, over the library's client: as the hub asks for it, and as an operator acts on it. The client is one
// for both. Keeps true: after a failure the configuration is read again, as a local run's names another address when its coordinator
// listens; what is done is done by the same code as by the commands.
import { systemClock } from "../base/clock.ts";
import { RolloutError } from "../base/errors.ts";
import type { HintedLine } from "../cli/shell-words.ts";
import type { ChartNews } from "../client/charts.ts";
import { jsonOf } from "../client/operator-message.ts";
import type { WorkerSummary } from "../client/workers.ts";
import type { ClientConfig } from "../config/resolve.ts";
import { ReleaseStatusSchema } from "../gen/rollout/v1/release_pb.ts";
import { WorkerInfoSchema } from "../gen/rollout/v1/run_pb.ts";
import type { Deed, Explained, ReleaseNow, RunNumbers, WorkerRow } from "../inspector/page-messages.ts";
import type { Operator } from "../inspector/page-server.ts";
import type { ChartsNews, RunSession, RunSource } from "../inspector/run-source.ts";
import type { Explanation } from "./explanation.ts";
import { explainItem, explainWorker } from "./explanation.ts";
import type { RolloutClient } from "./rollout-client.ts";
import type { Outcome } from "./run-deeds.ts";
import { cancelRun, drainWorkers, pauseRun, resumeRun, retryItems, UNNAMED_REASON } from "./run-deeds.ts";
import { lookAtRun, runObject } from "./run-sight.ts";
import type { Known } from "./run-sight.ts";

export interface InspectedRunPorts {
  /** Reads the configuration anew. */
  readonly load: () => Promise<ClientConfig>;
  readonly open: (config: ClientConfig) => Promise<RolloutClient>;
  readonly line: HintedLine;
}

export class InspectedRun implements RunSource, Operator {
  readonly #ports: InspectedRunPorts;
  #client: Promise<RolloutClient> | undefined;

  constructor(ports: InspectedRunPorts) {
    this.#ports = ports;
  }

  async open(): Promise<RunSession> {
    const current = this.#current();
    const client = await current;
    let known: Known | undefined;
    let release: ReleaseNow | null | undefined;
    return {
      look: async ({ whole }) => {
        const workers = known === undefined || whole ? await client.workers() : undefined;
        if (workers !== undefined) known = { workers, coordinators: await client.coordinators() };
        const status = await numbersOf(client, known ?? {});
        release = await releaseOf(client, status, release);
        return { status, workers: workers?.map(workerRow), release };
      },
      watch: (signal) => chartsOf(client, signal),
      close: () => this.#drop(current),
    };
  }

  async explainItem(name: string): Promise<Explained> {
    return explained(await this.#ask((client) => explainItem(client, name, this.#words())));
  }

  async explainWorker(id: string): Promise<Explained | undefined> {
    const explanation = await this.#ask((client) => explainWorker(client, id, this.#words()));
    return explanation === undefined ? undefined : explained(explanation);
  }

  async perform(deed: Deed): Promise<string> {
    const outcomes = await this.#ask((client) => done(client, deed));
    return outcomes
      .map(({ text }) => text)
      .join("")
      .trimEnd();
  }

  /** Idempotent. */
  close(): void {
    if (this.#client !== undefined) this.#drop(this.#client);
  }

  #words(): { readonly nowMs: number; readonly line: HintedLine } {
    return { nowMs: systemClock.wallMs(), line: this.#ports.line };
  }

  async #ask<Result>(use: (client: RolloutClient) => Promise<Result>): Promise<Result> {
    const current = this.#current();
    try {
      return await use(await current);
    } catch (error) {
      // A refusal is an answer; after anything else the coordinator may have another address.
      if (error instanceof RolloutError && error.row.retry !== "never") this.#drop(current);
      throw error;
    }
  }

  #current(): Promise<RolloutClient> {
    if (this.#client !== undefined) return this.#client;
    const opened = this.#ports.load().then((config) => this.#ports.open(config));
    this.#client = opened;
    opened.catch(() => this.#drop(opened));
    return opened;
  }

  #drop(client: Promise<RolloutClient>): void {
    if (this.#client === client) this.#client = undefined;
    client.then(
      (opened) => opened.close(),
      () => undefined,
    );
  }
}

async function numbersOf(client: RolloutClient, known: Known): Promise<RunNumbers> {
  return runObject(await lookAtRun(client, known)) as unknown as RunNumbers;
}

/** One that is over is asked for once. */
async function releaseOf(
  client: RolloutClient,
  { release }: RunNumbers,
  before: ReleaseNow | null | undefined,
): Promise<ReleaseNow | null> {
  if (release === undefined || release === null) return null;
  const isSame = before?.release === release.release && before.state === release.state;
  if (isSame && release.state !== "rolling" && release.state !== "held") return before;
  return jsonOf(ReleaseStatusSchema, await client.releases.get(release.release)) as unknown as ReleaseNow;
}

/** The fields that the page reads, as `worker list --json` has them. */
function workerRow(worker: WorkerSummary): WorkerRow {
  const {
    worker_id,
    incarnation,
    state,
    liveness,
    load,
    slots,
    held,
    plugins,
    last_beat_age_ms,
    cordon_reason,
    trouble,
    revoked,
    drain,
  } = jsonOf(WorkerInfoSchema, worker) as unknown as WorkerRow;
  return {
    ...{ worker_id, incarnation, state, liveness, load, slots, held, plugins },
    ...{ last_beat_age_ms, cordon_reason, trouble, revoked, drain },
  };
}

/** Ends with an error where the client would go on: there may be another address then. */
async function* chartsOf(client: RolloutClient, signal: AbortSignal): AsyncGenerator<ChartsNews> {
  const broken = new AbortController();
  let trouble: RolloutError | undefined;
  const onTrouble = (error: RolloutError | undefined): void => {
    trouble = error;
    if (error !== undefined) broken.abort();
  };
  for await (const news of client.charts({ signal: AbortSignal.any([signal, broken.signal]), onTrouble }))
    yield chartsNews(news);
  if (trouble !== undefined) throw trouble;
}

function chartsNews({ transitions, dropped, happenings, history, atWork }: ChartNews): ChartsNews {
  return {
    steps: transitions.map(({ atMs, ...step }) => ({ at_ms: atMs, ...step })),
    dropped,
    happenings: happenings.map(({ atMs, topic, fields }) => ({
      ...{ at_ms: atMs, topic },
      fields: JSON.parse(fields) as Record<string, unknown>,
    })),
    history: history && {
      ...{ anew: history.anew, interval_ms: history.intervalMs },
      points: history.points.map(({ atMs, ...point }) => ({ at_ms: atMs, ...point })),
    },
    atWork: atWork?.items.map(({ assignedAtMs, ...item }) => ({ ...item, assigned_at_ms: assignedAtMs })),
  };
}

async function done(client: RolloutClient, deed: Deed): Promise<readonly Outcome[]> {
  switch (deed.deed) {
    case "pause":
      return [await pauseRun(client, UNNAMED_REASON)];
    case "resume":
      return [await resumeRun(client)];
    case "cancel":
      // The page has asked.
      return [await cancelRun(client, () => Promise.resolve())];
    case "drain":
      return drainWorkers(client, [deed.worker_id], false);
    case "retry":
      return [await retryItems(client, deed.item === undefined ? {} : { items: [deed.item] })];
  }
}

function explained({ object, text }: Explanation): Explained {
  return { object, lines: text.trimEnd().split("\n") };
}
