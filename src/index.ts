/**
 * rollout for programs: start a cluster or connect to one, submit items, take results as they finish. docs/library.md tells of it.
 *
 * ```ts
 * import { startCluster } from "rollout";
 *
 * await using cluster = await startCluster({ command: ["wc", "-w"], workers: 4 });
 * await cluster.client.submit(["first text", "second text"], { seal: true });
 * for await (const { ok, output } of cluster.client.results({ follow: true })) {
 *   console.log(ok, Buffer.from(output).toString());
 * }
 * ```
 */
export { RolloutError } from "./base/errors.ts";
export type { ErrorCode } from "./base/errors.ts";
export type { ChartNews } from "./client/charts.ts";
export type { RunEvent } from "./client/events.ts";
export type { AttemptLog, EndedAttempt, Item } from "./client/items.ts";
export type {
  Key,
  KeyPhaseName,
  KeyRefusal,
  KeySteering,
  KeyAsks,
  KeyWithState,
  Partition,
  SteeredKeys,
  WholeKey,
} from "./client/keys.ts";
export type { FleetSummary } from "./client/fleets.ts";
export type {
  Release,
  ReleaseMetric,
  ReleaseStage,
  ReleaseState,
  ReleaseSummary,
} from "./client/releases.ts";
export type { Result, ResultPage, ResultsOrder } from "./client/results.ts";
export type { Retried } from "./client/run-control.ts";
export type { RunStatus, WorkerNumbers } from "./client/run-status.ts";
export type { NameOf, Submitted } from "./client/submit.ts";
export type { WorkerDetail, WorkerSummary } from "./client/workers.ts";
export type { ActorEvent, ActorNow, AnyActorType } from "./compose/actor-now.ts";
export type { ActorRef, Actors, WaitForOptions } from "./compose/actors.ts";
export type { CreatedRelease, CreateReleaseOptions, Releases } from "./compose/releases.ts";
export type { MetricSpec } from "./base/statistics/metric.ts";
export type { ReleaseProspect } from "./config/release-prospect.ts";
export type { ReleaseSpec, StageSpec } from "./config/release.ts";
export type { ActorModule } from "./config/manifest.ts";
export { LocalCluster, startCluster } from "./compose/local-cluster.ts";
export type { ClusterOptions } from "./compose/local-cluster.ts";
export { RolloutClient } from "./compose/rollout-client.ts";
export type {
  ConnectOptions,
  EventsOptions,
  ResultsOptions,
  RetryOptions,
  SubmitItemsOptions,
} from "./compose/client-options.ts";
export { defineBackend } from "./worker/backends/module/define-backend.ts";
export type { ItemContext } from "./worker/backends/module/item-function.ts";
