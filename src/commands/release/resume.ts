// `rollout release resume`
import { configFlags } from "../../cli/setting-flags.ts";
import { RELEASE_ARGS, ReleaseCommand } from "../../compose/release-command.ts";

export class ReleaseResume extends ReleaseCommand {
  static override readonly summary = "Resume a release that is held.";
  static override readonly description =
    "It goes on in its stage, with what was counted. One that was held because it came to no verdict goes on without that limit.";
  static override readonly examples = ["<%= config.bin %> <%= command.id %>"];
  static override readonly args = RELEASE_ARGS;
  static override readonly flags = configFlags("operator");

  override async run(): Promise<void> {
    const { args, flags } = await this.parse(ReleaseResume);
    await this.steer(flags, (releases) => releases.resume(args.release));
  }
}
