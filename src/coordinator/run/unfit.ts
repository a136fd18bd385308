// Why a worker that has the run's plugin is given nothing: none of its versions is the task that the run executes now.
import type { CoordinatorState, WorkerRow } from "../turn/state.ts";
import { isHeard, serves } from "../turn/state.ts";

/** In words for a person, with what to do. Empty for one that can execute it, does not have the plugin, or has not said what it has. */
export function unfitReasonOf(state: Pick<CoordinatorState, "task" | "releases">, row: WorkerRow): string {
  const { task, releases } = state;
  if (task === null || !isHeard(row) || row.lastBeatMs === undefined || serves(state, row)) return "";
  const { plugin, digest } = task;
  const versions = row.plugins.filter(({ name }) => name === plugin);
  const [own] = versions;
  if (own === undefined) return "";
  const { reached } = releases;
  if (reached !== undefined) {
    const now = `version ${reached.version} of ${plugin}, which the run executes since its release`;
    const isThere = versions.some(({ version }) => version === reached.version);
    if (isThere && row.lacks !== reached.version)
      return `its version ${reached.version} of ${plugin} is another task than the release's of that version: give it the same manifest`;
    return `it does not have ${now}: start it with that manifest as --plugin, or put it into its --plugin-dir`;
  }
  const right = versions.find(
    ({ taskDigest }) => taskDigest !== undefined && Buffer.compare(taskDigest, digest) === 0,
  );
  const differs = `its own version of ${plugin}, ${own.version}, is another task than the run's`;
  if (right === undefined)
    return `${differs}: start it with the manifest that the run began with as its first --plugin`;
  return `${differs}, which is its version ${right.version}: start it with that manifest as its first --plugin`;
}
