// Ways to the rows of the table of errors that releases lead to. Most of them take a coordinator in the middle of a release: the rules
// behind them are tested with its reactor, and here is shown how a command says them.
import type { Provocation } from "./scene.ts";

type ReleaseCode =
  | "release_spec_unreadable"
  | "release_unknown"
  | "release_not_over"
  | "release_over"
  | "release_completed"
  | "release_stage_waits"
  | "release_no_items"
  | "release_run_over"
  | "release_plugin_other"
  | "release_version_in_use"
  | "release_no_worker"
  | "release_other_file"
  | "release_workers_few"
  | "release_one_version"
  | "release_keyed_only"
  | "release_of_task";

const RELEASE = "01N2WGA8000000000000000001";
const WORKER = "01N2WGA8000000000000000002";

export const RELEASE_PROVOCATIONS: { readonly [Code in ReleaseCode]: Provocation<Code> } = {
  release_spec_unreadable: {
    by: "a file of a release that does not exist",
    stage: async (cluster) => ({
      args: ["release", "create", "better.toml"],
      params: { file: cluster.file("better.toml"), reason: "it does not exist" },
    }),
  },
  release_unknown: {
    by: "the id of a release that there was not (a coordinator of ours, made to say so)",
    says: { release: "01N2WGA8000000000000000000" },
  },
  release_not_over: {
    by: "a second release beside the first (a coordinator of ours, made to say so)",
    says: { release: RELEASE },
  },
  release_over: {
    by: "a pause of one that was rolled back (a coordinator of ours, made to say so)",
    says: { release: RELEASE, action: "pause" },
  },
  release_completed: {
    by: "an abort of one that is complete (a coordinator of ours, made to say so)",
    says: { release: RELEASE, version: "2", action: "abort" },
  },
  release_stage_waits: {
    by: "a promotion of a stage that is not open (a coordinator of ours, made to say so)",
    says: { stage: 3, current: 1 },
  },
  release_no_items: {
    by: "a release before the first item (a coordinator of ours, made to say so)",
    says: {},
  },
  release_run_over: {
    by: "a release behind the last item (a coordinator of ours, made to say so)",
    says: {},
  },
  release_plugin_other: {
    by: "a candidate of another name (a coordinator of ours, made to say so)",
    says: { plugin: "scorer", run: "words" },
  },
  release_version_in_use: {
    by: "a candidate with the version that runs (a coordinator of ours, made to say so)",
    says: { plugin: "words", version: "1", what: "version" },
  },
  release_no_worker: {
    by: "a candidate that no worker has (a coordinator of ours, made to say so)",
    says: { plugin: "words", version: "2" },
  },
  release_other_file: {
    by: "a worker with another file (a coordinator of ours, made to say so)",
    says: {
      plugin: "words",
      version: "2",
      worker: WORKER,
      digest: "0011aabbccdd",
    },
  },
  release_workers_few: {
    by: "a stage with all workers (a coordinator of ours, made to say so)",
    says: { workers: 2, ready: 2 },
  },
  release_one_version: {
    by: "a share of items for a worker that holds one version (a coordinator of ours, made to say so)",
    says: { worker: WORKER },
  },
  release_keyed_only: {
    by: "a run with keyed items only (a coordinator of ours, made to say so)",
    says: {},
  },
  release_of_task: {
    by: "items of a candidate that is being tried (a coordinator of ours, made to say so)",
    says: { other: "words v2", release: RELEASE, task: "words v1" },
  },
};
