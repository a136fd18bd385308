// `rollout release abort`
import { REASON_FLAGS, RELEASE_ARGS, ReleaseCommand } from "../../compose/release-command.ts";

export class ReleaseAbort extends ReleaseCommand {
  static override readonly summary = "Abort a release for good: its version gets no more items.";
  static override readonly description =
    "What executes may finish; results that are recorded stay. One that is complete cannot be aborted: to go back, begin a release with the version before.";
  static override readonly examples = [
    "<%= config.bin %> <%= command.id %>",
    '<%= config.bin %> <%= command.id %> --reason "its answers are too long"',
  ];
  static override readonly args = RELEASE_ARGS;
  static override readonly flags = REASON_FLAGS;

  override async run(): Promise<void> {
    const { args, flags } = await this.parse(ReleaseAbort);
    await this.steer(flags, (releases) => releases.abort(flags.reason, args.release));
  }
}
