// `rollout fleet pause`
import { Flags } from "../../cli/oclif.ts";
import { configFlags } from "../../cli/setting-flags.ts";
import { FLEET_ARGS, FleetCommand } from "../../compose/fleet-command.ts";

export class FleetPause extends FleetCommand {
  static override readonly summary = "Start no more workers of a fleet until it is resumed.";
  static override readonly description = "Those that are there go on, and end when they have nothing to do.";
  static override readonly examples = ["<%= config.bin %> <%= command.id %> spot"];
  static override readonly args = FLEET_ARGS;
  static override readonly flags = {
    ...configFlags("operator"),
    reason: Flags.string({ summary: "The reason, which is shown.", default: "", helpValue: "TEXT" }),
  };

  override async run(): Promise<void> {
    const { args, flags } = await this.parse(FleetPause);
    await this.steer(flags, "pause", { target: args.fleet, reason: flags.reason });
  }
}
