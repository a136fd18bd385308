// The course of a release: every step of it and of its stages, by their charts and nowhere else, with the rows that a step changes and the
// events that say it. A step is committed together with the expectation that the stage is as this leader has it: of two that overlap
// one promotes.
import { charts } from "../../../machines/index.ts";
import type { StageEvent } from "../../../machines/release-stage.ts";
import type { ReleaseEvent } from "../../../machines/release.ts";
import { assert } from "../../base/assert.ts";
import type { Effect as ChartEffect } from "../../runtime/compile.ts";
import { standingOf } from "../../runtime/standing.ts";
import { encodeRecord } from "../../storage/codec.ts";
import type { ReleaseTurn } from "./ports.ts";
import { releaseKey, releaseRecord, stageKey, stageRecord } from "./records.ts";
import { currentStage, isOver, releaseChart, releaseStateOf, stageChart, stageStateOf } from "./release.ts";
import type { Release, Stage } from "./release.ts";

/** The one who decides, empty for the verdict; and why, in words for a person. */
export interface Decision {
  readonly by: string;
  readonly reason: string;
}

/** The first stage opens with the release. */
export function begin(turn: ReleaseTurn, release: Release): void {
  const { id, plugin, stable, candidate, stages } = release;
  for (const stage of stages) writeStage(turn, release, stage);
  moveStage(turn, release, currentStage(release), { type: "stage.opened", atMs: atMs(turn) });
  writeRelease(turn, release);
  turn.requireSync();
  turn.emit("release_started", {
    ...{ release: id, plugin, stages: stages.length },
    ...{ stable_version: stable.version, candidate_version: candidate.version },
  });
}

/**
 * The current stage is promoted, and the next one opens. The last one, which is all items, is promoted as it opens. False when the
 * release is where nothing is promoted.
 */
export function promote(turn: ReleaseTurn, release: Release, decision: Decision): boolean {
  const isForced = decision.by !== "";
  const type = isForced ? "stage.forced" : "stage.promoted";
  const stage = currentStage(release);
  if (!moveRelease(turn, release, { type, ...decision })) return false;
  end(turn, release, stage, type);
  if (isOver(release)) return true;
  const next = currentStage(release);
  moveStage(turn, release, next, { type: "stage.opened", atMs: atMs(turn) });
  if (next.number === release.stages.length) {
    moveRelease(turn, release, { type, ...decision });
    moveStage(turn, release, next, { type, atMs: atMs(turn) });
  }
  return true;
}

/** Any other step. False when the chart has nothing to do with it where the release is. */
export function decide(
  turn: ReleaseTurn,
  release: Release,
  type: Exclude<ReleaseEvent["type"], "stage.promoted" | "stage.forced">,
  decision: Decision,
): boolean {
  const stage = currentStage(release);
  if (!moveRelease(turn, release, { type, ...decision })) return false;
  if (!isOver(release)) return true;
  end(turn, release, stage, type === "verdict.breached" ? "stage.breached" : "stage.abandoned");
  for (const one of release.stages)
    moveStage(turn, release, one, { type: "stage.abandoned", atMs: atMs(turn) });
  return true;
}

/** A stage that another leader has ended stays as it is: the batch does not commit. */
function end(
  turn: ReleaseTurn,
  release: Release,
  stage: Stage,
  type: Exclude<StageEvent["type"], "stage.opened">,
): void {
  assert(stageStateOf(stage) === "Active", "a stage that has ended never changes");
  turn.expect({ key: stageKey(release.id, stage.number), value: stage.stored });
  moveStage(turn, release, stage, { type, atMs: atMs(turn) });
}

function moveRelease(turn: ReleaseTurn, release: Release, event: ReleaseEvent): boolean {
  const effects: ChartEffect[] = [];
  const from = releaseStateOf(release);
  const stage = release.row.context.stage;
  const after = releaseChart.step(release.row, event, effects);
  if (after === release.row) return false;
  release.row = after;
  if (isOver(release)) release.endedAtMs = atMs(turn);
  const to = releaseStateOf(release);
  turn.stepped({ chart: "release", address: `release/${release.id}`, event: event.type, from, to });
  for (const { type } of effects) announce(turn, release, { effect: type, stage });
  writeRelease(turn, release);
  turn.requireSync();
  return true;
}

function moveStage(turn: ReleaseTurn, release: Release, stage: Stage, event: StageEvent): void {
  const from = stageStateOf(stage);
  const after = stageChart.step(stage.row, event, []);
  if (after === stage.row) return;
  stage.row = after;
  const address = `release-stage/${release.id}/${stage.number}`;
  turn.stepped({ chart: "release-stage", address, event: event.type, from, to: stageStateOf(stage) });
  writeStage(turn, release, stage);
}

/** Leaves with the commit of the step, so it is said once, and never of what did not happen. */
function announce(
  turn: ReleaseTurn,
  release: Release,
  { effect, stage }: { readonly effect: string; readonly stage: number },
): void {
  const { reason, by, heldBy } = release.row.context;
  const about = { release: release.id, stage };
  switch (effect) {
    case "announcePromoted":
      return turn.emit("stage_promoted", {
        ...about,
        promoted_by: by === "" ? "verdict" : "operator",
        reason,
      });
    case "announceCompleted":
      return turn.emit("release_completed", { release: release.id, version: release.candidate.version });
    case "announceHeld":
      turn.recallTrials();
      return turn.emit("release_held", { ...about, held_by: heldBy ?? "operator", reason });
    case "announceResumed":
      return turn.emit("release_resumed", about);
    case "announceRolledBack":
      turn.recallTrials();
      return turn.emit("release_rolled_back", { ...about, reason });
    case "announceAborted":
      turn.recallTrials();
      return turn.emit("release_aborted", { ...about, reason });
    case "announceEnded":
      turn.recallTrials();
      return turn.emit("release_ended", { ...about, reason });
    default:
      assert(false, `nothing carries out ${effect} of a release`);
  }
}

export function writeRelease(turn: ReleaseTurn, release: Release): void {
  const key = releaseKey(release.id);
  const standing = standingOf(charts.release.machine, releaseChart, release.row);
  turn.put({ key, value: encodeRecord(releaseRecord, key, { ...release, standing }) });
}

function writeStage(turn: ReleaseTurn, release: Release, stage: Stage): void {
  const key = stageKey(release.id, stage.number);
  const value = encodeRecord(
    stageRecord,
    key,
    standingOf(charts["release-stage"].machine, stageChart, stage.row),
  );
  stage.stored = value;
  turn.put({ key, value });
}

/** Stages are timed by the steady clock, which the next leader goes on with. */
function atMs({ steadyMs }: ReleaseTurn): number {
  return Math.floor(steadyMs);
}
