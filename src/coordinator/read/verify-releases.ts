// The rows of releases, looked at as a whole: each can be read, and every release has all of its stages.
import type { Damage } from "../../storage/codec.ts";
import { decodeRecord } from "../../storage/codec.ts";
import { RELEASES_KEY, RELEASES_PREFIX } from "../../storage/keys.ts";
import { pagesUnder } from "../../storage/records.ts";
import type { Store } from "../../storage/store.ts";
import {
  isReleaseKey,
  recordOfReleaseRow,
  releaseKey,
  releaseRecord,
  releasesRecord,
  stageKey,
} from "../release/records.ts";

const PAGE = 1_000;

/** The first thing that is wrong; undefined when nothing is. The rows must not change meanwhile. */
export async function verifyReleases(store: Store): Promise<Damage | undefined> {
  const bytes = await store.get(RELEASES_KEY);
  if (bytes === undefined) return undefined;
  const latest = decodeRecord(releasesRecord, RELEASES_KEY, bytes);
  if (latest.kind !== "ok") return latest;
  const found = new Set<string>();
  const expected = new Set([releaseKey(latest.value.latest)]);
  for await (const page of pagesUnder(store, RELEASES_PREFIX, PAGE))
    for (const { key, value } of page) {
      const decoded = decodeRecord<unknown>(recordOfReleaseRow(key), key, value);
      if (decoded.kind !== "ok") return decoded;
      found.add(key);
      if (isReleaseKey(key)) for (const stage of stagesOf(key, value)) expected.add(stage);
    }
  const missing = [...expected].find((key) => !found.has(key));
  return missing === undefined
    ? undefined
    : { kind: "corrupt", key: missing, reason: "a row of a release is missing" };
}

function stagesOf(key: string, value: Uint8Array): string[] {
  const decoded = decodeRecord(releaseRecord, key, value);
  const id = key.slice(RELEASES_PREFIX.length);
  return decoded.kind === "ok" ? decoded.value.terms.stages.map((_, at) => stageKey(id, at + 1)) : [];
}
