// `rollout release promote`
import { Flags } from "../../cli/oclif.ts";
import { configFlags } from "../../cli/setting-flags.ts";
import { RELEASE_ARGS, ReleaseCommand } from "../../compose/release-command.ts";

export class ReleasePromote extends ReleaseCommand {
  static override readonly summary = "End the current stage without a verdict.";
  static override readonly description =
    "The next stage is opened; after the last judged one all items get the new version. The operator's name is recorded. A worker without the new version then gets no items.";
  static override readonly examples = [
    "<%= config.bin %> <%= command.id %>",
    "<%= config.bin %> <%= command.id %> --stage 2",
  ];
  static override readonly args = RELEASE_ARGS;
  static override readonly flags = {
    ...configFlags("operator"),
    stage: Flags.integer({
      summary: "The stage that is to be promoted: one that is promoted already stays so.",
      min: 1,
      helpValue: "N",
    }),
  };

  override async run(): Promise<void> {
    const { args, flags } = await this.parse(ReleasePromote);
    const { release: id } = args;
    const { stage } = flags;
    await this.steer(flags, (releases) =>
      releases.promote({ ...(id !== undefined && { id }), ...(stage !== undefined && { stage }) }),
    );
  }
}
