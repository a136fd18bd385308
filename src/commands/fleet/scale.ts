// `rollout fleet scale`
import { Flags } from "../../cli/oclif.ts";
import { configFlags } from "../../cli/setting-flags.ts";
import { FLEET_ARGS, FleetCommand } from "../../compose/fleet-command.ts";

const WORKERS_MAX = 10_000;

export class FleetScale extends FleetCommand {
  static override readonly summary = "Set how many workers a fleet has at least and at most.";
  static override readonly description =
    "It counts until it is set again, also for the next leader. With neither --min nor --max the limits of rollout.toml count again.";
  static override readonly examples = [
    "<%= config.bin %> <%= command.id %> spot --max 10",
    "<%= config.bin %> <%= command.id %> spot",
  ];
  static override readonly args = FLEET_ARGS;
  static override readonly flags = {
    ...configFlags("operator"),
    min: Flags.integer({ summary: "Workers at least.", min: 0, max: WORKERS_MAX, helpValue: "N" }),
    max: Flags.integer({ summary: "Workers at most.", min: 0, max: WORKERS_MAX, helpValue: "N" }),
  };

  override async run(): Promise<void> {
    const { args, flags } = await this.parse(FleetScale);
    await this.steer(flags, "scale", { target: args.fleet, min: flags.min, max: flags.max });
  }
}
