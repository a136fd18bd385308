// `rollout fleet explain`
import { Args } from "../../cli/oclif.ts";
import { fleetText } from "../../cli/render/fleet.ts";
import { configFlags } from "../../cli/setting-flags.ts";
import { listFleets } from "../../client/fleets.ts";
import { jsonOf } from "../../client/operator-message.ts";
import { OperatorCommand } from "../../compose/operator-command.ts";
import { FleetDetailSchema } from "../../gen/rollout/v1/fleet_pb.ts";

export class FleetExplain extends OperatorCommand {
  static override readonly summary = "Say why a fleet is as large as it is.";
  static override readonly examples = [
    "<%= config.bin %> <%= command.id %>",
    "<%= config.bin %> <%= command.id %> spot --json",
  ];
  static override readonly args = {
    fleet: Args.string({ description: "Its name; all of them without one.", ignoreStdin: true }),
  };
  static override readonly flags = configFlags("operator");

  override async run(): Promise<void> {
    const { args, flags } = await this.parse(FleetExplain);
    const asked = { fleet: args.fleet, withOver: false };
    const fleets = await this.askRun(flags, (client) => listFleets(client.fleetCalls, asked));
    this.print(
      fleets.map((fleet) => jsonOf(FleetDetailSchema, fleet)),
      fleets.map(fleetText).join(""),
    );
  }
}
