// `rollout fleet pause`
import { FLEET_ARGS, FleetCommand, REASON_FLAGS } from "../../compose/fleet-command.ts";

export class FleetPause extends FleetCommand {
  static override readonly summary = "Start no more workers of a fleet until it is resumed.";
  static override readonly description = "Those that are there go on, and end when they have nothing to do.";
  static override readonly examples = ["<%= config.bin %> <%= command.id %> spot"];
  static override readonly args = FLEET_ARGS;
  static override readonly flags = REASON_FLAGS;

  override async run(): Promise<void> {
    const { args, flags } = await this.parse(FleetPause);
    await this.steer(flags, "pause", { target: args.fleet, reason: flags.reason });
  }
}
