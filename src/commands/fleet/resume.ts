// `rollout fleet resume`
import { configFlags } from "../../cli/setting-flags.ts";
import { FLEET_ARGS, FleetCommand } from "../../compose/fleet-command.ts";

export class FleetResume extends FleetCommand {
  static override readonly summary = "Let a fleet go on that is paused, or halted after starts that failed.";
  static override readonly description = "Failed starts are counted anew.";
  static override readonly examples = ["<%= config.bin %> <%= command.id %> spot"];
  static override readonly args = FLEET_ARGS;
  static override readonly flags = configFlags("operator");

  override async run(): Promise<void> {
    const { args, flags } = await this.parse(FleetResume);
    await this.steer(flags, "resume", { target: args.fleet });
  }
}
