// A coordinator's charts, told to the inspector that `inspect.stately` names: its own role, and while it leads its run, workers and some items.
//
// Keeps true: charts of a leadership are seen as operators see them, by the leader's own answers, after their steps were committed (C2);
// while no inspector is there, nothing is looked at.
import { createClient, createRouterTransport } from "@connectrpc/connect";
import type { Client, ConnectRouter } from "@connectrpc/connect";
import type { RoleContext } from "../../machines/coordinator-role.ts";
import { sleep } from "../base/clock.ts";
import type { IncarnationId } from "../base/ids.ts";
import { statusOf } from "../client/run-status.ts";
import type { RunStatus } from "../client/run-status.ts";
import { listWorkers } from "../client/workers.ts";
import type { ResolvedConfig } from "../config/resolve.ts";
import { OperatorService } from "../gen/rollout/v1/run_pb.ts";
import type { AtWork, HistoryPoint, Transition, WatchChartsResponse } from "../gen/rollout/v1/run_pb.ts";
import { StatelySender } from "../inspector/stately-sender.ts";
import type { Facts, ToldActor } from "../inspector/told-charts.ts";
import { isChartName } from "../inspector/told-charts.ts";
import type { ChartStep } from "../runtime/driver.ts";
import type { ProcessPorts } from "./process-ports.ts";

type Calls = Client<typeof OperatorService>;
type Told = Pick<ToldActor, "sessionId" | "name" | "parentId" | "chart">;

/** Workers that are told of from the beginning; others when they make a step. */
const WORKERS_AT_FIRST = 500;
const AGAIN_MS = 5_000;
const NAME_DIGITS = 12;
const ITEM = "work-item/";

export class ToldCoordinator {
  readonly #config: ResolvedConfig;
  readonly #ports: ProcessPorts;
  readonly #incarnation: IncarnationId;
  readonly #sender: StatelySender;
  /** While an inspector is there. */
  #present: AbortSignal | undefined;
  #leading: { readonly calls: Calls; readonly signal: AbortSignal } | undefined;
  #runFacts: Facts;

  constructor(url: string, config: ResolvedConfig, ports: ProcessPorts, incarnation: IncarnationId) {
    this.#config = config;
    this.#ports = ports;
    this.#incarnation = incarnation;
    this.#runFacts = { run_id: config.runId };
    const onOpen = (signal: AbortSignal): void => {
      this.#present = signal;
      this.#look();
    };
    this.#sender = new StatelySender({ url, ...ports, onOpen });
  }

  /** A step of its role. */
  readonly onStep = ({ event, from, to, context }: ChartStep): void => {
    const { epoch } = context as RoleContext;
    const facts = { incarnation: this.#incarnation, epoch };
    const { sessionId } = this.#root;
    if (from === "") this.#sender.place(this.#told(this.#root), to, facts);
    else this.#sender.step(sessionId, { event, state: to, facts, atMs: this.#nowMs() });
  };

  /** Its charts are told until the function that it returns is called. */
  lead(routes: (router: ConnectRouter) => void): () => void {
    const ending = new AbortController();
    const calls = createClient(OperatorService, createRouterTransport(routes));
    this.#leading = { calls, signal: ending.signal };
    this.#look();
    return () => {
      ending.abort();
      this.#leading = undefined;
      for (const sessionId of [...this.#sender.sessions])
        if (sessionId !== this.#root.sessionId) this.#sender.end(sessionId);
    };
  }

  close(): void {
    this.#sender.close();
  }

  #look(): void {
    if (this.#leading === undefined || this.#present === undefined || this.#present.aborted) return;
    const { calls, signal } = this.#leading;
    void this.#follow(calls, AbortSignal.any([signal, this.#present]));
  }

  async #follow(calls: Calls, signal: AbortSignal): Promise<void> {
    while (!signal.aborted) {
      await this.#watch(calls, signal).catch((err: unknown) => {
        if (!signal.aborted) this.#ports.log.debug("the inspector is not told of the run for now", { err });
      });
      await sleep(this.#ports.clock, AGAIN_MS, signal);
    }
  }

  async #watch(calls: Calls, signal: AbortSignal): Promise<void> {
    let isFirst = true;
    for await (const news of calls.watchCharts({}, { signal })) {
      this.#takeHistory(news);
      // The first ones are of before: all of it is in how things stand.
      if (isFirst) await this.#placeAll(calls);
      else for (const step of news.transitions) this.#step(step);
      isFirst = false;
      if (news.atWork !== undefined) this.#takeItems(news.atWork);
    }
  }

  async #placeAll(calls: Calls): Promise<void> {
    this.#place(this.#run, stateOfRun(statusOf(await calls.getRun({}))), this.#runFacts);
    const workers = await listWorkers(calls);
    for (const { workerId, incarnation, state, liveness, cordonReason } of workers.slice(
      0,
      WORKERS_AT_FIRST,
    )) {
      if (state === "unknown" || liveness === "unknown") continue;
      const place = `${capitalised(state)}+${capitalised(liveness)}`;
      this.#place(this.#actor("worker-lifecycle", workerId), place, { worker_id: workerId, incarnation });
      const trust = cordonReason === undefined ? "Trusted" : "Cordoned";
      this.#place(this.#actor("worker-trust", workerId), trust, { worker_id: workerId });
    }
  }

  #takeHistory({ history }: WatchChartsResponse): void {
    const point = history?.points.at(-1);
    if (point === undefined) return;
    const { pending, delayed, running, done, failed, workers }: HistoryPoint = point;
    this.#runFacts = { run_id: this.#config.runId, pending, delayed, running, done, failed, workers };
  }

  #takeItems({ items }: AtWork): void {
    const atWork = new Set<string>();
    for (const { item, worker, attempt } of items) {
      const told = this.#actor("work-item", item);
      atWork.add(told.sessionId);
      // Its steps say where it is; one that made none while it was looked at is with a worker.
      if (!this.#sender.isKnown(told.sessionId)) this.#place(told, "Running", { item, worker, attempt });
    }
    for (const sessionId of [...this.#sender.sessions])
      if (sessionId.startsWith(ITEM) && !atWork.has(sessionId)) this.#sender.end(sessionId);
  }

  #step({ chart, actor, event, from, to, atMs }: Transition): void {
    if (!isChartName(chart)) return;
    const told = chart === "run" ? this.#run : this.#actor(chart, actor);
    const facts = chart === "run" ? this.#runFacts : factsOf(told, actor);
    if (!this.#sender.isKnown(told.sessionId)) this.#place(told, from, facts);
    this.#sender.step(told.sessionId, { event, state: to, atMs, ...(chart === "run" && { facts }) });
    if (event === "worker.expired")
      for (const one of ["spot-drain", "worker-trust", "worker-lifecycle"] as const)
        this.#sender.end(this.#actor(one, actor).sessionId);
  }

  #place(told: Told, state: string, facts: Facts): void {
    this.#sender.place(this.#told(told), state, facts);
  }

  #told(told: Told): ToldActor {
    return { ...told, rootId: this.#root.sessionId };
  }

  get #root(): Told {
    const sessionId = `coordinator-role/${this.#incarnation}`;
    return { sessionId, chart: "coordinator-role", name: "coordinator", parentId: undefined };
  }

  get #run(): Told {
    return {
      ...{ sessionId: `run/${this.#config.runId}`, chart: "run", name: "run" },
      parentId: this.#root.sessionId,
    };
  }

  #actor(chart: ToldActor["chart"], id: string): Told {
    const isOfWorker = chart === "worker-trust" || chart === "spot-drain";
    const parentId = isOfWorker ? `worker-lifecycle/${id}` : this.#run.sessionId;
    const name = `${chart} ${chart === "work-item" ? id.slice(0, NAME_DIGITS) : id}`;
    // The worker tells of its drain by itself; this is the drain as its beats say it.
    const sessionId = chart === "spot-drain" ? `${chart}/${id}/by-beats` : `${chart}/${id}`;
    return { sessionId, chart, name, parentId };
  }

  #nowMs(): number {
    return this.#ports.clock.wallMs();
  }
}

function factsOf({ chart }: Told, actor: string): Facts {
  if (chart === "fleet") return { fleet: actor };
  if (chart === "allocation") return { allocation: actor };
  if (chart === "release" || chart === "release-stage") return { release: actor };
  return chart === "work-item" ? { item: actor } : { worker_id: actor };
}

/** As its chart names it. */
function stateOfRun({ state, sealed }: RunStatus): string {
  if (state === "complete" || state === "cancelled") return capitalised(state);
  return `${sealed ? "Sealed" : "Open"}.${state === "paused" ? "Paused" : "Active"}`;
}

function capitalised(word: string): string {
  return word.charAt(0).toUpperCase() + word.slice(1);
}
