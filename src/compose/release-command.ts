// The base of commands that decide about a release: asked, answered after the commit, and shown.
import { parseUlid } from "../base/ids.ts";
import { releaseLine } from "../cli/render/release.ts";
import { Args, Flags } from "../cli/oclif.ts";
import { configFlags } from "../cli/setting-flags.ts";
import { jsonOf } from "../client/operator-message.ts";
import type { Release, ReleaseSummary } from "../client/releases.ts";
import { ReleaseStatusSchema } from "../gen/rollout/v1/release_pb.ts";
import { OperatorCommand } from "./operator-command.ts";
import type { Releases } from "./releases.ts";

export const RELEASE_ARGS = {
  release: Args.string({
    description: "Its id; without one the release that is not over, or else the last one.",
    ignoreStdin: true,
    parse: (text) => Promise.resolve(parseUlid(text.toUpperCase()) ?? text),
  }),
};

/** Flags of a decision that people are told the reason of. */
export const REASON_FLAGS = {
  ...configFlags("operator"),
  reason: Flags.string({
    summary: "The reason, which `rollout status` and `rollout explain` show.",
    default: "",
    helpValue: "TEXT",
  }),
};

export abstract class ReleaseCommand extends OperatorCommand {
  /** `flags` are the parsed ones. Throws what `askRun` throws, and rows release_…. */
  protected async steer(
    flags: Readonly<Record<string, unknown>>,
    decide: (releases: Releases) => Promise<Release>,
  ): Promise<void> {
    const release = await this.askRun(flags, (client) => decide(client.releases));
    this.print([jsonOf(ReleaseStatusSchema, release)], `${releaseLine(summaryOf(release))}\n`);
  }
}

function summaryOf(release: Release): ReleaseSummary {
  const { stages, stage } = release;
  return { ...release, stages: stages.length, share: stages[stage - 1]?.share ?? "" };
}
