// The part of a worker in the release that is under way: whether it counts for the candidate, which items it is given, and why not others.
import { hasVersion } from "../release/arms.ts";
import { currentStage, releaseStateOf } from "../release/release.ts";
import type { Release } from "../release/release.ts";
import type { CoordinatorState, WorkerRow } from "../turn/state.ts";
import { isHeard, serves } from "../turn/state.ts";
import { shareOf } from "./release-status.ts";

/** A clause about the worker. Empty where there is no such release, and for one that does not have the plugin or has not said what it has. */
export function releasePartOf(state: Pick<CoordinatorState, "task" | "releases">, row: WorkerRow): string {
  const { releases } = state;
  const { latest } = releases;
  if (latest === undefined || !releases.isLive || !isHeard(row) || row.lastBeatMs === undefined) return "";
  const { plugin, stable, candidate } = latest;
  if (!row.plugins.some(({ name }) => name === plugin)) return "";
  const [old, tried] = [`version ${stable.version}`, `version ${candidate.version}`];
  if (!serves(state, row)) {
    const later = hasVersion(row, plugin, candidate)
      ? `, and gets ${tried} when the release is complete`
      : "";
    return `it counts for neither version${later}`;
  }
  if (!releases.hasCandidate(row))
    return `it does not count for ${tried}, because ${lackOf(row, latest)}; its items are of ${old}, and are not compared`;
  const counts = `it has both versions, and counts for ${tried}`;
  if (releaseStateOf(latest) === "Held")
    return `${counts}; while the release is held its items are of ${old}`;
  const share = shareOf(currentStage(latest).spec);
  switch (releases.deskOf(row)) {
    case "candidate":
      return `${counts}; it is of the ${share} whose items are of ${tried}`;
    case "stable":
      return `${counts}; it is not of the ${share} with ${tried}, so its items are of ${old}, and are compared`;
    case "by item":
    case "none":
      return `${counts}; ${share} of its items are of ${tried}`;
  }
}

/** Why it cannot be given the candidate. */
function lackOf(row: WorkerRow, { plugin, candidate }: Release): string {
  const { version } = candidate;
  if (row.lacks === version) return `it has handed version ${version} back since its last beat`;
  // Then it holds one version at a time: it has the candidate.
  if (hasVersion(row, plugin, candidate))
    return "it holds one version at a time, and the release goes by items";
  const named = row.plugins.find((one) => one.name === plugin && one.version === version);
  if (named === undefined) return `it does not have version ${version}`;
  return named.taskDigest === undefined
    ? "it does not say which tasks its versions run"
    : `its version ${version} is another task than the release's of that version`;
}
