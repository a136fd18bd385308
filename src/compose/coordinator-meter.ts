// A coordinator process for its metrics: what it counts over all its leaderships, what it knows while it follows, and what the leader that it may be
// adds.
import type { StallWatch } from "../coordinator/lead/stall-watch.ts";
import { countBy } from "../observe/metrics/count-by.ts";
import type { Exposition } from "../observe/metrics/exposition.ts";
import { Histogram } from "../observe/metrics/histogram.ts";
import type { Durability } from "../storage/store.ts";
import type { CoordinatorDesk } from "./coordinator-desk.ts";

export class CoordinatorMeter {
  readonly #renewals = countBy("rollout_lease_renewals_total", "result");
  readonly #commits = {
    sync: new Histogram("rollout_store_commit_seconds"),
    flush: new Histogram("rollout_store_commit_seconds"),
  };
  readonly #syncs = new Histogram("rollout_store_fsync_seconds");
  #takeovers = 0;
  #replayMs: number | undefined;

  readonly onRenewal = (isRenewed: boolean): void => {
    this.#renewals[isRenewed ? "renewed" : "failed"]++;
  };

  readonly onAnswered = (durability: Durability, tookMs: number): void => {
    this.#commits[durability].observeMs(tookMs);
  };

  readonly onSynced = (tookMs: number): void => {
    this.#syncs.observeMs(tookMs);
  };

  /** It has come to lead. */
  took({ replayMs }: { readonly replayMs: number }): void {
    this.#takeovers++;
    this.#replayMs = replayMs;
  }

  addTo(exposition: Exposition, store: StallWatch, desk: CoordinatorDesk): void {
    const { own, leading, leader } = desk;
    const { role, rehearsalMs } = own.row;
    const ageMs = desk.snapshotAgeMs;
    exposition.add("rollout_is_leader", leading !== undefined);
    exposition.addState("rollout_coordinator_role", "role", ROLE[role]);
    const epoch = leading?.epoch ?? leader?.epoch ?? null;
    if (epoch !== null) exposition.add("rollout_epoch", epoch);
    exposition.add("rollout_takeovers_total", this.#takeovers);
    if (this.#replayMs !== undefined) exposition.add("rollout_replay_seconds", this.#replayMs / 1_000);
    if (rehearsalMs !== null) exposition.add("rollout_rehearsal_seconds", rehearsalMs / 1_000);
    if (ageMs !== undefined) exposition.add("rollout_snapshot_age_seconds", ageMs / 1_000);
    if (store.supports.multiProcess) exposition.add("rollout_database_answers", desk.hasStore);
    exposition.addEach("rollout_lease_renewals_total", "result", this.#renewals);
    for (const durability of ["sync", "flush"] as const)
      exposition.addHistogram("rollout_store_commit_seconds", this.#commits[durability], { durability });
    exposition.addHistogram("rollout_store_fsync_seconds", this.#syncs);
    exposition.add("rollout_store_unanswered_seconds", store.unansweredMs / 1_000);
    exposition.add("rollout_intake_bytes", desk.intakeBytes);
    leading?.coordinator.addMetrics(exposition);
  }
}

const ROLE = {
  Following: "following",
  Claiming: "claiming",
  Leader: "leader",
  Fenced: "fenced",
  Halted: "halted",
} as const;
