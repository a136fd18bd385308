// The rows of the table of errors that releases lead to; see error-table.ts.
import { conflicting, unknown, usage } from "./error-row.ts";
import type { ErrorRow } from "./error-row.ts";

export const RELEASE_ERRORS = {
  release_spec_unreadable: {
    ...usage,
    message: "cannot read the release's file {file}: {reason}",
    hint: "give the path of a TOML file, or only --plugin MANIFEST for the default stages",
  },
  release_unknown: {
    ...unknown,
    message: "the run has no release {release}",
    hint: "`rollout release list{config}` lists its releases, `rollout release create{config}` begins one",
  },
  release_not_over: {
    ...conflicting,
    message: "release {release} is not over, and a run has one release at a time",
    hint: "`rollout release status{config}` shows its stage, `rollout release abort{config}` ends it",
  },
  release_over: {
    ...conflicting,
    message: "release {release} is over, so there is nothing to {action}",
    hint: "`rollout release status{config}` says how it ended; begin another one with `rollout release create{config}`",
  },
  release_completed: {
    ...conflicting,
    message:
      "release {release} is complete: all items get version {version} now, so there is nothing to {action}",
    hint: "to go back, begin a release with the version before: `rollout release create{config} --plugin FILE`",
  },
  release_stage_waits: {
    ...conflicting,
    message: "stage {stage} of the release is not open: the release is in stage {current}",
    hint: "promote stage {current} first",
  },
  release_no_items: {
    ...conflicting,
    message: "the run has no items yet, so there is no version to compare with",
    hint: "submit items, and begin the release then",
  },
  release_run_over: {
    ...conflicting,
    message: "this run has no items left to try a release on",
    hint: "submit with the new version in a run of its own, made with `rollout init`",
  },
  release_plugin_other: {
    ...conflicting,
    message: "the candidate is of plugin {plugin}, and the run executes {run}",
    hint: "give its manifest the name of the run's plugin, and a version of its own",
  },
  release_version_in_use: {
    ...conflicting,
    message: "{plugin} {version} has the same {what} that the run executes now",
    hint: "give the candidate another version, and another task: what it executes must differ too",
  },
  release_no_worker: {
    ...conflicting,
    message: "no ready worker has {plugin} {version}",
    hint: "start workers with both manifests, `--plugin OLD --plugin NEW`, or put the new one into their --plugin-dir; --wait begins all the same",
  },
  release_other_file: {
    ...conflicting,
    message:
      "{plugin} {version} on worker {worker} runs another task than the candidate's manifest ({digest})",
    hint: "give all workers the same file; where files differ on purpose, give each a version of its own",
  },
  release_workers_few: {
    ...conflicting,
    message:
      "a stage with {workers} workers needs one more ready worker, which stays with the old version; {ready} are ready",
    hint: "start more workers, or give the stage fewer",
  },
  release_one_version: {
    ...conflicting,
    message: "worker {worker} has one version open at a time, so it cannot take a share of the items",
    hint: "use stages with `workers = N`, or set worker.loaded_versions to 2 or more",
  },
  release_keyed_only: {
    ...conflicting,
    message: "all remaining items have keys, and a release does not try items with keys",
    hint: "let the old version finish them",
  },
  release_of_task: {
    ...conflicting,
    message:
      "these items are for {other}, which release {release} is trying: the run executes {task} until it is complete",
    hint: "submit them with the old manifest: both make the same items; or wait until the release is complete",
  },
} as const satisfies Readonly<Record<string, ErrorRow>>;
