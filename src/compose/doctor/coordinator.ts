// The coordinator, asked like any command would: does it answer, does it trust us, and do its workers live?
import { showAddresses } from "../../base/address.ts";
import type { Clock } from "../../base/clock.ts";
import { printable } from "../../base/safe-text.ts";
import { momentText } from "../../cli/render/quantities.ts";
import { releaseLine } from "../../cli/render/release.ts";
import { lackOf, troubleLines } from "../../cli/render/workers.ts";
import type { HintedLine } from "../../cli/shell-words.ts";
import { leaderIn } from "../../client/coordinators.ts";
import type { CoordinatorSummary } from "../../client/coordinators.ts";
import { listFleets } from "../../client/fleets.ts";
import { isReleaseOver } from "../../client/releases.ts";
import { statusOf } from "../../client/run-status.ts";
import type { WorkerSummary } from "../../client/workers.ts";
import type { ClientConfig } from "../../config/resolve.ts";
import type { Logger } from "../../observe/log.ts";
import { findEndedRun } from "../local-run/ended-run.ts";
import { RolloutClient } from "../rollout-client.ts";
import type { Finding } from "./finding.ts";
import { fleetsFound } from "./fleets.ts";
import { good, warning } from "./finding.ts";

/** Throws the transport's rows. */
export async function examineCoordinator(
  config: ClientConfig,
  { clock, log, line }: { readonly clock: Clock; readonly log: Logger; readonly line: HintedLine },
): Promise<readonly Finding[]> {
  const ended = await findEndedRun(config.source);
  if (ended !== undefined) {
    const { message, hint } = ended.error;
    return [ended.isOver ? good("coordinator", message) : warning("coordinator", message, hint)];
  }
  const client = await RolloutClient.open(config, log);
  try {
    const startMs = clock.monotonicMs();
    const told = await client.calls.getRun({});
    const tookMs = Math.ceil(clock.monotonicMs() - startMs);
    const { state, task, release, fleets } = statusOf(told);
    const details = fleets.length === 0 ? [] : await listFleets(client.fleetCalls, { withOver: false });
    const answer = `answers at ${showAddresses(config.worker.coordinatorAddr)} within ${tookMs} ms; the run is ${state}`;
    const { formerLeadership: former } = told;
    return [
      good("coordinator", answer),
      ...leaderFound(await client.coordinators(), clock.wallMs()),
      ...(former === undefined ? [] : [good("former coordinator", former)]),
      ...(release === undefined || isReleaseOver(release) ? [] : [good("release", releaseLine(release))]),
      ...fleetsFound(details, line),
      ...workersFound(await client.workers(), task?.plugin ?? "", line),
    ];
  } finally {
    client.close();
  }
}

/** Nothing where a coordinator of an earlier version does not say it. */
function leaderFound(coordinators: readonly CoordinatorSummary[], wallMs: number): readonly Finding[] {
  const leader = leaderIn(coordinators);
  if (leader?.electedAtMs === undefined) return [];
  const { address, incarnation, epoch, electedAtMs } = leader;
  const name = printable(address === "" ? incarnation : address);
  const since = momentText(electedAtMs, wallMs);
  return [good("leader", `${name} leads in epoch ${epoch ?? "-"}, since ${since}`)];
}

/** Lines for workers in trouble; a fleet has it together. */
const TROUBLES_SHOWN = 5;

/** `plugin`: of the run's task; empty when any will do. */
function workersFound(
  workers: readonly WorkerSummary[],
  plugin: string,
  line: HintedLine,
): readonly Finding[] {
  return [workerCount(workers, plugin, line), ...troublesOf(workers)];
}

function workerCount(workers: readonly WorkerSummary[], plugin: string, line: HintedLine): Finding {
  const alive = workers.filter(
    ({ state, liveness, revoked, unfitReason }) =>
      state === "ready" && liveness === "alive" && !revoked && unfitReason === undefined,
  ).length;
  const lack = lackOf(plugin, workers);
  if (lack === "version") {
    const detail = `none of ${workers.length} known workers has the version of the run's plugin ${printable(plugin)} that it executes now`;
    return warning("workers", detail, "start one with that version's manifest, or do what is said of each");
  }
  if (lack === "plugin") {
    const detail = `none of ${workers.length} known workers can execute the run's plugin ${printable(plugin)}`;
    const hint = "start one with its --plugin, or correct the manifest's `name`";
    return warning("workers", detail, hint);
  }
  const detail = `${alive} of ${workers.length} known workers can take items`;
  return alive > 0
    ? good("workers", detail)
    : warning("workers", detail, `start one with \`${line("worker", "run")}\``);
}

function troublesOf(workers: readonly WorkerSummary[]): Finding[] {
  const lines = troubleLines(workers);
  const shown = lines.slice(0, TROUBLES_SHOWN);
  const more = lines.length - shown.length;
  const hint = "correct that: no item is charged for it meanwhile, and none gets done";
  return [...shown, ...(more > 0 ? [`${more} more workers report a problem`] : [])].map((line) =>
    warning("trouble", line, hint),
  );
}
