// `rollout fleet list`
import { systemClock } from "../../base/clock.ts";
import { Flags } from "../../cli/oclif.ts";
import { allocationsText, fleetsText } from "../../cli/render/fleet.ts";
import { configFlags } from "../../cli/setting-flags.ts";
import { listFleets } from "../../client/fleets.ts";
import { jsonOf } from "../../client/operator-message.ts";
import { OperatorCommand } from "../../compose/operator-command.ts";
import { AllocationSchema, FleetSummarySchema } from "../../gen/rollout/v1/fleet_pb.ts";

export class FleetList extends OperatorCommand {
  static override readonly summary =
    "Show the fleets of the run: workers that the coordinator starts and ends.";
  static override readonly description =
    "A fleet is a [[fleet]] in rollout.toml of the coordinator. With --all each worker that was asked for is a line, the latest first.";
  static override readonly examples = [
    "<%= config.bin %> <%= command.id %>",
    "<%= config.bin %> <%= command.id %> --all --json",
  ];
  static override readonly flags = {
    ...configFlags("operator"),
    all: Flags.boolean({ summary: "Each allocation, those that are over included." }),
  };

  override async run(): Promise<void> {
    const { flags } = await this.parse(FleetList);
    const found = await this.askRun(flags, (client) =>
      listFleets(client.fleetCalls, { withOver: flags.all }),
    );
    const fleets = found.map(({ fleet }) => fleet);
    const allocations = found.flatMap((each) => each.allocations);
    if (flags.all)
      this.print(
        allocations.map((allocation) => jsonOf(AllocationSchema, allocation)),
        allocationsText(allocations, systemClock.wallMs()),
      );
    else
      this.print(
        fleets.map((fleet) => jsonOf(FleetSummarySchema, fleet)),
        fleetsText(fleets),
      );
  }
}
