// The lock on charts: which structure each version of each chart has, in test/machines/structure.json. A snapshot names
// the version that wrote it, so a version that anybody's disk may hold never changes its meaning.
//
// The rule: a line of the lock is never changed. A chart that changes gets a new version, a migration from the old one,
// and a line more. Until a version is in a release nobody has such a snapshot, and a person may delete its line and its
// golden file to have them written anew; a version that is listed under `released` stays for good, and so does its file.
import { structureHash } from "../src/runtime/chart-structure.ts";
import type { Chart } from "../machines/migration.ts";

export interface StructureLock {
  /** `chart@version`, added when a release of rollout goes out with it. */
  readonly released: readonly string[];
  /** By chart id and version. */
  readonly structures: Readonly<Record<string, Readonly<Record<string, string>>>>;
}

export const LOCK_FILE = "test/machines/structure.json";
export const GOLDEN_FOLDER = "test/machines/golden";

type Charts = Readonly<Record<string, Chart>>;

/** Things that a person has to do before these charts may be used; empty when the charts and the lock agree. */
export function lockProblems(lock: StructureLock, charts: Charts): string[] {
  const current = Object.entries(charts).map(([id, { machine }]) => {
    const version = machine.version ?? "";
    const locked = lock.structures[id]?.[version];
    const found = structureHash(machine);
    if (locked === undefined) return `${id} ${version} is not in ${LOCK_FILE}: run \`npm run machines:lock\``;
    return locked === found ? undefined : changedProblem(lock, id, version, { locked, found });
  });
  const older = Object.entries(lock.structures).flatMap(([id, versions]) =>
    Object.keys(versions).map((version) => unreachableProblem(charts[id], id, version)),
  );
  const released = lock.released.map((name) => {
    const [id = "", version = ""] = name.split("@");
    return lock.structures[id]?.[version] === undefined
      ? `${name} is released: put its line back`
      : undefined;
  });
  return [...current, ...older, ...released].filter((problem) => problem !== undefined);
}

/** The lock with a line more for each version that it does not have. Existing lines stay as they are. */
export function withNewVersions(lock: StructureLock, charts: Charts): StructureLock {
  const structures: Record<string, Record<string, string>> = {};
  for (const [id, versions] of Object.entries(lock.structures)) structures[id] = { ...versions };
  for (const [id, { machine }] of Object.entries(charts))
    structures[id] = { [machine.version ?? ""]: structureHash(machine), ...structures[id] };
  return { ...lock, structures };
}

function changedProblem(
  lock: StructureLock,
  id: string,
  version: string,
  { locked, found }: { locked: string; found: string },
): string {
  const whatElse = lock.released.includes(`${id}@${version}`)
    ? "it is released"
    : `or, as it is in no release yet, delete its line in ${LOCK_FILE} and its file in ${GOLDEN_FOLDER}`;
  return (
    `${id} ${version} has changed its structure (${locked} is locked, ${found} found): give it a new version and a ` +
    `migration from ${version} (${whatElse}), then run \`npm run machines:lock\``
  );
}

/** Every locked version must still become the current one. */
function unreachableProblem(chart: Chart | undefined, id: string, version: string): string | undefined {
  if (chart === undefined)
    return `${id} is locked and not in the registry: snapshots of it could not be read`;
  const { machine, migrations } = chart;
  let at: string | undefined = version;
  for (let steps = 0; at !== machine.version && steps <= migrations.length; steps++)
    at = migrations.find(({ from }) => from === at)?.to;
  return at === machine.version
    ? undefined
    : `${id} ${version} has no migration to ${machine.version ?? ""}: snapshots of it could not be read`;
}
