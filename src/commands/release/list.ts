// `rollout release list`
import { systemClock } from "../../base/clock.ts";
import { releasesText } from "../../cli/render/release.ts";
import { configFlags } from "../../cli/setting-flags.ts";
import { jsonOf } from "../../client/operator-message.ts";
import { OperatorCommand } from "../../compose/operator-command.ts";
import { ReleaseSummarySchema } from "../../gen/rollout/v1/release_pb.ts";

export class ReleaseList extends OperatorCommand {
  static override readonly summary = "Show the releases of the run, the latest first.";
  static override readonly examples = [
    "<%= config.bin %> <%= command.id %>",
    "<%= config.bin %> <%= command.id %> --json",
  ];
  static override readonly flags = configFlags("operator");

  override async run(): Promise<void> {
    const { flags } = await this.parse(ReleaseList);
    const releases = await this.askRun(flags, (client) => client.releases.list());
    this.print(
      releases.map((release) => jsonOf(ReleaseSummarySchema, release)),
      releasesText(releases, this.hinted, systemClock.wallMs()),
    );
  }
}
