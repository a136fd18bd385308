// The release of a simulated run, if it has one: the candidate, by which terms it is judged, and what a person does about it.
import { createHash } from "node:crypto";
import type { ReleaseSpec, StageSpec } from "../../src/config/release.ts";
import type { Random } from "../../src/base/random.ts";
import { between, happens } from "./world.ts";

/** How a candidate is bad, on items that it has not failed before. */
export type Badness = "errs" | "falls" | "kills" | "crawls";

export interface ReleaseSettings {
  /** Undefined: it is as good as the old version. */
  readonly badness: Badness | undefined;
  readonly spec: Omit<ReleaseSpec, "plugin">;
  /** When it begins at the latest, and the longest time between two doings of a person. */
  readonly beginsWithinMs: number;
  readonly doings: readonly ReleaseDoing[];
  /** The chance that a process of a worker has one of the two versions only. */
  readonly oneVersion: number;
  /** Versions that a worker has open at once. */
  readonly loadedVersions: number;
  /** It is begun once more when it is over and has not reached all items. */
  readonly isAgain: boolean;
}

export type ReleaseDoing = "pause" | "resume" | "promote" | "abort";

export const PLUGIN = "mock";
export const STABLE_VERSION = "1";
export const CANDIDATE_VERSION = "2";
export const CANDIDATE_DIGEST = createHash("sha256").update("sim, another one").digest();
const ALL: StageSpec = { kind: "items", share: 1, minItems: 1, minTimeMs: 0, maxItems: undefined };
/** A candidate that is good is proven with few items, and one that is bad breaks this soon. */
const WIDE = 0.85;
const NARROW = 0.05;

export function drawRelease(random: Random): ReleaseSettings {
  const badness = happens(random, 0.5) ? BADNESSES[Math.floor(random.unit() * BADNESSES.length)] : undefined;
  const isOfWorkers = happens(random, 0.25);
  const spec = drawSpec(random, badness !== undefined, isOfWorkers);
  return {
    badness,
    spec,
    beginsWithinMs: happens(random, 0.8) ? 500 : 6_000,
    doings: happens(random, 0.5) ? drawDoings(random) : [],
    oneVersion: happens(random, 0.5) ? 0.3 : 0,
    loadedVersions: isOfWorkers && happens(random, 0.5) ? 1 : 2,
    isAgain: happens(random, 0.5),
  };
}

const BADNESSES: readonly Badness[] = ["errs", "errs", "falls", "kills", "crawls"];

function drawSpec(random: Random, isBad: boolean, isOfWorkers: boolean): ReleaseSettings["spec"] {
  const minItems = 1 + Math.floor(random.unit() * 5);
  const maxItems = happens(random, 0.1) ? minItems + 2 : undefined;
  const stage = { minItems, minTimeMs: happens(random, 0.2) ? 1_500 : 0, maxItems };
  const share = between(random, 0.3, 0.6);
  const stages: StageSpec[] = isOfWorkers
    ? [{ ...stage, kind: "workers", workers: 1 }]
    : [{ ...stage, kind: "items", share }];
  if (happens(random, 0.5))
    stages.push(
      isOfWorkers
        ? { ...stage, kind: "workers", workers: 2 }
        : { ...stage, kind: "items", share: Math.min(0.9, share + 0.3) },
    );
  return {
    ...{ alpha: 0.2, onBreach: happens(random, 0.3) ? "hold" : "rollback" },
    stages: [...stages, ALL],
    metrics: [{ kind: "errors", maxWorse: isBad ? NARROW : WIDE }],
  };
}

function drawDoings(random: Random): ReleaseDoing[] {
  const count = 1 + Math.floor(random.unit() * 4);
  const choices: readonly ReleaseDoing[] = ["pause", "resume", "resume", "promote", "promote", "abort"];
  return Array.from({ length: count }, () => choices[Math.floor(random.unit() * choices.length)] ?? "resume");
}
