// Decisions of a person about releases: that one begins, that it waits or goes on, that a stage needs no verdict, that it ends. Each decision
// may come twice, and changes something once.
import type { ErrorCode } from "../../base/errors.ts";
import { begin, decide, promote } from "./course.ts";
import type { ReleaseTurn, ReleaseWorker, RunFacts } from "./ports.ts";
import { currentStage, isOver, newRelease, releaseStateOf } from "./release.ts";
import type { Release, Terms, Version } from "./release.ts";
import type { Releases } from "./releases.ts";

export interface ReleaseRequest {
  /** ULID, made by the caller. */
  readonly id: string;
  readonly terms: Terms;
  readonly candidate: Version & { readonly plugin: string };
  /** Also while no worker has the candidate. */
  readonly waits: boolean;
  /** Nothing begins: only whether it could. */
  readonly isDryRun: boolean;
  readonly by: string;
}

export interface ReleaseRefusal {
  readonly kind: "refused";
  readonly code: ErrorCode;
  readonly params: Readonly<Record<string, string | number>>;
}

export type ReleaseVerdict = { readonly kind: "release"; readonly release: Release } | ReleaseRefusal;

export type ReleaseSteering =
  | { readonly action: "pause" | "abort"; readonly reason: string }
  | { readonly action: "resume" }
  /** `stage`: one that is promoted already stays so. */
  | { readonly action: "promote"; readonly stage: number };

function refuse(code: ErrorCode, params: ReleaseRefusal["params"] = {}): ReleaseRefusal {
  return { kind: "refused", code, params };
}

/** For `release_unknown`: where no release is named, the sentence says that there has been none yet. */
export function idShown(id: string): string {
  return id === "" ? "yet" : id;
}

/** The same id again is answered as before. */
export function createRelease(
  turn: ReleaseTurn,
  releases: Releases,
  request: ReleaseRequest,
  facts: RunFacts,
): ReleaseVerdict {
  const { latest } = releases;
  if (latest?.id === request.id) return { kind: "release", release: latest };
  const refusal = refusalOf(releases, request, facts);
  if (refusal !== undefined) return refusal;
  const { id, terms, candidate, by } = request;
  const stable = {
    version: releases.reached?.version ?? ownVersion(facts),
    digest: releases.currentDigest(facts.digest ?? new Uint8Array()),
  };
  const { plugin, version, digest } = candidate;
  const named = { id, plugin, stable, candidate: { version, digest }, terms };
  const release = newRelease({ ...named, createdAtMs: Math.floor(turn.wallMs) }, by);
  if (!request.isDryRun) {
    const start = (): boolean => {
      begin(turn, release);
      return true;
    };
    releases.decided(turn, release, start, () => facts);
  }
  return { kind: "release", release };
}

function refusalOf(
  releases: Releases,
  { terms, candidate, waits }: ReleaseRequest,
  facts: RunFacts,
): ReleaseRefusal | undefined {
  const { latest } = releases;
  const { plugin, version, digest } = candidate;
  if (latest !== undefined && !isOver(latest)) return refuse("release_not_over", { release: latest.id });
  if (facts.digest === undefined) return refuse("release_no_items");
  if (facts.isOver || (facts.isSealed && facts.itemsLeft === 0)) return refuse("release_run_over");
  if (plugin !== facts.plugin) return refuse("release_plugin_other", { plugin, run: facts.plugin });
  const inUse = new Set([releases.reached?.version ?? ownVersions(facts)].flat());
  const isSameTask = Buffer.compare(digest, releases.currentDigest(facts.digest)) === 0;
  if (inUse.has(version) || isSameTask)
    return refuse("release_version_in_use", { plugin, version, what: isSameTask ? "task" : "version" });
  if (facts.itemsLeft > 0 && facts.itemsWithoutKey === 0) return refuse("release_keyed_only");
  return crewRefusal({ terms, candidate, waits }, facts);
}

function crewRefusal(
  { terms, candidate, waits }: Pick<ReleaseRequest, "terms" | "candidate" | "waits">,
  { ready }: RunFacts,
): ReleaseRefusal | undefined {
  const { plugin, version, digest } = candidate;
  const able = ready.filter((worker) => isSameVersion(worker, candidate));
  const workers = Math.max(0, ...terms.stages.map((stage) => (stage.kind === "workers" ? stage.workers : 0)));
  if (workers === 0) {
    const single = ready.find(({ loadedVersions }) => loadedVersions === 1);
    if (single !== undefined) return refuse("release_one_version", { worker: single.id });
  }
  if (waits) return undefined;
  if (able.length === 0) {
    const other = ready.find(({ plugins }) =>
      plugins.some((one) => one.name === plugin && one.version === version),
    );
    return other === undefined
      ? refuse("release_no_worker", { plugin, version })
      : refuse("release_other_file", { plugin, version, worker: other.id, digest: hex(digest) });
  }
  return workers >= ready.length && workers > 0
    ? refuse("release_workers_few", { workers, ready: ready.length })
    : undefined;
}

function isSameVersion(
  { plugins }: ReleaseWorker,
  { plugin, version, digest }: ReleaseRequest["candidate"],
): boolean {
  return plugins.some(
    ({ name, version: one, taskDigest }) =>
      name === plugin &&
      one === version &&
      taskDigest !== undefined &&
      Buffer.compare(taskDigest, digest) === 0,
  );
}

/** Versions that ready workers run as their own. */
function ownVersions({ ready, plugin }: RunFacts): string[] {
  return ready.flatMap(({ plugins }) => plugins.find(({ name }) => name === plugin)?.version ?? []);
}

/** The one that most of them run; empty while none is there. */
function ownVersion(facts: RunFacts): string {
  const counts = new Map<string, number>();
  for (const version of ownVersions(facts)) counts.set(version, (counts.get(version) ?? 0) + 1);
  const [most = ["", 0]] = [...counts].sort(([, one], [, other]) => other - one);
  return most[0];
}

const DIGITS = 12;

function hex(digest: Uint8Array): string {
  return Buffer.from(digest).toString("hex").slice(0, DIGITS);
}

export function steerRelease(
  turn: ReleaseTurn,
  releases: Releases,
  { id, by, steering }: { readonly id: string; readonly by: string; readonly steering: ReleaseSteering },
  facts: () => RunFacts,
): ReleaseVerdict {
  const { latest: release } = releases;
  if (release === undefined || (id !== "" && id !== release.id))
    return refuse("release_unknown", { release: idShown(id) });
  const refusal = isOver(release) ? refusalAtEnd(release, steering) : undefined;
  if (refusal !== undefined) return refusal;
  if (!isOver(release)) {
    const { action } = steering;
    if (action === "promote" && steering.stage > currentStage(release).number)
      return refuse("release_stage_waits", { stage: steering.stage, current: currentStage(release).number });
    releases.decided(turn, release, () => steer(turn, release, { by, steering }), facts);
  }
  // The release as it is now is on stable storage when this is answered.
  turn.requireSync();
  return { kind: "release", release };
}

/** One that is over stays as it is; asked for what it is, it is answered. */
export function refusalAtEnd(release: Release, { action }: ReleaseSteering): ReleaseRefusal | undefined {
  const state = releaseStateOf(release);
  if (state === "Completed")
    return action === "promote"
      ? undefined
      : refuse("release_completed", { release: release.id, version: release.candidate.version, action });
  return action === "abort" ? undefined : refuse("release_over", { release: release.id, action });
}

function steer(
  turn: ReleaseTurn,
  release: Release,
  { by, steering }: { readonly by: string; readonly steering: ReleaseSteering },
): boolean {
  switch (steering.action) {
    case "pause":
      return decide(turn, release, "release.paused", { by, reason: steering.reason });
    case "abort":
      return decide(turn, release, "release.aborted", { by, reason: steering.reason });
    case "resume":
      return decide(turn, release, "release.resumed", { by, reason: "" });
    case "promote":
      if (steering.stage < currentStage(release).number) return false;
      return promote(turn, release, { by, reason: `${by} has promoted stage ${steering.stage}` });
  }
}
