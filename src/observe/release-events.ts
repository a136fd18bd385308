// The events of releases; see events.ts. Each says an act that an operator can see, and is said once for it.
import { number, text } from "./event-row.ts";
import type { EventRow } from "./event-row.ts";

const RELEASE = text("the release");
const STAGE = number("the stage that this is about, counted from 1");
const REASON = text("why, in words");

export const RELEASE_EVENTS = {
  release_started: {
    level: "info",
    doc: "A release has begun: another version of the plugin is tried on some of the items that are left.",
    fields: {
      release: RELEASE,
      plugin: text("the plugin"),
      stable_version: text("the version that the run executes; empty while no worker says so"),
      candidate_version: text("the version that is tried"),
      stages: number("how many stages it has"),
    },
  },
  stage_promoted: {
    level: "info",
    doc: "A stage of a release has been promoted, and the next one is open.",
    fields: {
      release: RELEASE,
      stage: STAGE,
      promoted_by: text("`verdict` or `operator`"),
      reason: REASON,
    },
  },
  release_held: {
    level: "warn",
    doc: "A release is held: nothing new goes to the candidate until somebody lets it go on.",
    fields: {
      release: RELEASE,
      stage: STAGE,
      held_by: text(
        "`operator`; `breach`: a verdict that waits for a person; `limit`: `max_items` without a verdict",
      ),
      reason: REASON,
    },
  },
  release_waits_for_workers: {
    level: "warn",
    doc: "No ready worker has both versions: a release waits for one, and the run goes on without it.",
    fields: { release: RELEASE, stage: STAGE, candidate_version: text("the version that is missing") },
  },
  release_resumed: {
    level: "info",
    doc: "A release that was held goes on.",
    fields: { release: RELEASE, stage: STAGE },
  },
  release_rolled_back: {
    level: "warn",
    doc: "The candidate of a release was worse than allowed: no item gets it any more, and the old version does the items that it failed.",
    fields: { release: RELEASE, stage: STAGE, reason: REASON },
  },
  release_aborted: {
    level: "warn",
    doc: "An operator has ended a release: no item gets the candidate any more.",
    fields: { release: RELEASE, stage: STAGE, reason: REASON },
  },
  release_completed: {
    level: "info",
    doc: "A release is complete: every item gets the new version from now on.",
    fields: { release: RELEASE, version: text("the new version") },
  },
  release_ended: {
    level: "info",
    doc: "A release has ended with its run, before it was decided.",
    fields: { release: RELEASE, stage: STAGE, reason: REASON },
  },
} satisfies Record<string, EventRow>;
