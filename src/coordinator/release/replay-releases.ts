// The releases of a new leader, from the store: two reads, and two for each stage of the latest release. Earlier ones are over, and are
// read when somebody asks for them.
import { recordOf, readRecord, corrupt } from "../../storage/records.ts";
import { RELEASES_KEY } from "../../storage/keys.ts";
import type { Store } from "../../storage/store.ts";
import { rowFrom } from "../../runtime/standing.ts";
import { charts } from "../../../machines/index.ts";
import type { ReleaseContext } from "../../../machines/release.ts";
import { emptyStage } from "./counts.ts";
import {
  countsKey,
  countsRecord,
  releaseKey,
  releaseRecord,
  releasesRecord,
  stageKey,
  stageRecord,
} from "./records.ts";
import { releaseChart, stageChart } from "./release.ts";
import type { Release, Stage } from "./release.ts";
import { Releases } from "./releases.ts";

/** `trials` counts the attempts of a release's candidate that workers have. Throws store_corrupt or store_newer, naming the key. */
export async function replayReleases(
  store: Store,
  { nowMs, trials }: { readonly nowMs: number; readonly trials: (release: string) => number },
): Promise<Releases> {
  const record = await readRecord(store, RELEASES_KEY, releasesRecord);
  if (record === undefined) return new Releases({ record, latest: undefined, open: 0, nowMs });
  const latest = await loadRelease(store, record.latest);
  if (latest === undefined) return corrupt(store, releaseKey(record.latest), "the latest release is missing");
  return new Releases({ record, latest, open: trials(latest.id), nowMs });
}

/** Undefined for one that there has never been. Throws store_corrupt or store_newer, naming the key. */
export async function loadRelease(store: Store, id: string): Promise<Release | undefined> {
  const key = releaseKey(id);
  const record = await readRecord(store, key, releaseRecord);
  if (record === undefined) return undefined;
  const { standing, ...said } = record;
  const row = rowFrom<ReleaseContext>(charts.release, releaseChart, standing, { store, key });
  const stages = await Promise.all(
    said.terms.stages.map((spec, at) => loadStage(store, id, { number: at + 1, spec }, said)),
  );
  return { id, ...said, row, stages };
}

async function loadStage(
  store: Store,
  id: string,
  { number, spec }: Pick<Stage, "number" | "spec">,
  { terms }: Pick<Release, "terms">,
): Promise<Stage> {
  const key = stageKey(id, number);
  const [stored, counted] = await store.getMany([key, countsKey(id, number)]);
  if (stored === undefined) return corrupt(store, key, "a stage of a release is missing");
  const standing = recordOf(store, { key, value: stored }, stageRecord);
  const counts =
    counted === undefined
      ? emptyStage(terms.metrics)
      : recordOf(store, { key: countsKey(id, number), value: counted }, countsRecord);
  return {
    number,
    spec,
    counts,
    stored,
    row: rowFrom(charts["release-stage"], stageChart, standing, { store, key }),
  };
}
