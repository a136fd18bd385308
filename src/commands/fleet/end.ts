// `rollout fleet end`
import { Args } from "../../cli/oclif.ts";
import { FleetCommand, REASON_FLAGS } from "../../compose/fleet-command.ts";

export class FleetEnd extends FleetCommand {
  static override readonly summary = "End the workers of a fleet, or one of them.";
  static override readonly description =
    "They drain first. A fleet is paused, and starts nobody until it is resumed; a single worker is replaced if it is wanted.";
  static override readonly examples = [
    "<%= config.bin %> <%= command.id %> spot",
    "<%= config.bin %> <%= command.id %> 01JZ8Q6T0C5V9W3R7X2Y4B6D8F",
  ];
  static override readonly args = {
    target: Args.string({
      description: "A fleet, or an allocation as `rollout fleet list --all` shows it.",
      required: true,
      ignoreStdin: true,
    }),
  };
  static override readonly flags = REASON_FLAGS;

  override async run(): Promise<void> {
    const { args, flags } = await this.parse(FleetEnd);
    await this.steer(flags, "end", { target: args.target, reason: flags.reason });
  }
}
