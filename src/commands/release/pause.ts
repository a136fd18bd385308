// `rollout release pause`
import { REASON_FLAGS, RELEASE_ARGS, ReleaseCommand } from "../../compose/release-command.ts";

export class ReleasePause extends ReleaseCommand {
  static override readonly summary = "Hold a release: its version gets no items until it is resumed.";
  static override readonly description =
    "Items that execute finish, and count; items that are assigned but not started go to the old version. The run continues.";
  static override readonly examples = [
    "<%= config.bin %> <%= command.id %>",
    '<%= config.bin %> <%= command.id %> --reason "until the model server is back"',
  ];
  static override readonly args = RELEASE_ARGS;
  static override readonly flags = REASON_FLAGS;

  override async run(): Promise<void> {
    const { args, flags } = await this.parse(ReleasePause);
    await this.steer(flags, (releases) => releases.pause(flags.reason, args.release));
  }
}
