// A release in memory: what it tries against what, how far it has come by its chart, and its stages with theirs.
//
// The room: `releases` answers the rest of the coordinator, `release` is one of them, `course` moves it by its charts, `arms` says which version
// an item gets, `attempts` follows what was given out, `counts` and `verdict` say what became of it and what follows, `promoters` when that is
// looked at, `operator` what a person decides; `records` and `replay-releases` store it and read it back. `ports` is all that the room sees of the
// coordinator: nothing in it knows the ledger.
import { charts } from "../../../machines/index.ts";
import type { StageContext, StageEvent } from "../../../machines/release-stage.ts";
import type { ReleaseContext, ReleaseEvent, ReleaseInput } from "../../../machines/release.ts";
import { assert } from "../../base/assert.ts";
import type { ReleaseSpec, StageSpec } from "../../config/release.ts";
import { compile } from "../../runtime/compile.ts";
import type { CompiledChart, Row } from "../../runtime/compile.ts";
import { emptyStage } from "./counts.ts";
import type { StageCounts } from "./counts.ts";

export const releaseChart: CompiledChart<ReleaseContext, ReleaseEvent, ReleaseInput> = compile(
  charts.release.machine,
);
export const stageChart: CompiledChart<StageContext, StageEvent, unknown> = compile(
  charts["release-stage"].machine,
);

/** A version of the run's plugin, and the digest of the task that it runs. */
export interface Version {
  readonly version: string;
  readonly digest: Uint8Array;
}

/** By what a release is judged: its spec without the path of a file. */
export type Terms = Omit<ReleaseSpec, "plugin">;

export interface Stage {
  /** Counts from 1. */
  readonly number: number;
  readonly spec: StageSpec;
  row: Row<StageContext>;
  readonly counts: StageCounts;
  /** Its row in the store, as it was last written; null before that. */
  stored: Uint8Array | null;
}

export interface Release {
  /** ULID. */
  readonly id: string;
  readonly plugin: string;
  readonly stable: Version;
  readonly candidate: Version;
  readonly terms: Terms;
  /** Wall time. */
  readonly createdAtMs: number;
  endedAtMs: number | null;
  row: Row<ReleaseContext>;
  readonly stages: readonly Stage[];
  /** Nobody is there who could be given the candidate, and that was said. */
  isWaiting: boolean;
}

export type ReleaseName = "Rolling" | "Held" | "Completed" | "RolledBack" | "Aborted" | "Ended";
export type StageName = "Waiting" | "Active" | "Promoted" | "Breached" | "Abandoned";

export function releaseStateOf({ row }: Pick<Release, "row">): ReleaseName {
  return releaseChart.nameOf(row) as ReleaseName;
}

export function stageStateOf({ row }: Pick<Stage, "row">): StageName {
  return stageChart.nameOf(row) as StageName;
}

/** A final state hears nothing more. */
export function isOver(release: Pick<Release, "row">): boolean {
  const state = releaseStateOf(release);
  return state !== "Rolling" && state !== "Held";
}

/** The one that it is in, or was in when it ended. */
export function currentStage({ row, stages }: Pick<Release, "row" | "stages">): Stage {
  const stage = stages[row.context.stage - 1];
  assert(stage !== undefined, "a release is in one of its stages");
  return stage;
}

export function newRelease(
  named: Pick<Release, "id" | "plugin" | "stable" | "candidate" | "terms" | "createdAtMs">,
  by: string,
): Release {
  const { stages, onBreach, metrics } = named.terms;
  return {
    ...named,
    ...{ endedAtMs: null, isWaiting: false },
    row: releaseChart.initial({ stages: stages.length, holdsOnBreach: onBreach === "hold", by }),
    stages: stages.map((spec, at) => ({
      ...{ number: at + 1, spec, row: stageChart.initial(undefined) },
      ...{ counts: emptyStage(metrics), stored: null },
    })),
  };
}
