// `rollout fleet check`
import { printable } from "../../base/safe-text.ts";
import { configFlags } from "../../cli/setting-flags.ts";
import { failure } from "../../base/errors.ts";
import { checkFleet } from "../../client/fleets.ts";
import { jsonOf } from "../../client/operator-message.ts";
import { FLEET_ARGS } from "../../compose/fleet-command.ts";
import { OperatorCommand } from "../../compose/operator-command.ts";
import { FleetCheckSchema } from "../../gen/rollout/v1/fleet_pb.ts";

export class FleetCheck extends OperatorCommand {
  static override readonly summary = "Ask the provider of a fleet whether launches can work. Starts nothing.";
  static override readonly description = "The coordinator asks, where it runs.";
  static override readonly examples = ["<%= config.bin %> <%= command.id %> spot"];
  static override readonly args = FLEET_ARGS;
  static override readonly flags = configFlags("operator");

  override async run(): Promise<void> {
    const { args, flags } = await this.parse(FleetCheck);
    const check = await this.askRun(flags, (client) => checkFleet(client.fleetCalls, args.fleet));
    if (!check.ready) throw failure("fleet_not_ready", { fleet: check.fleet, reason: check.words });
    const words = check.words === "" ? "" : `: ${printable(check.words)}`;
    this.print([jsonOf(FleetCheckSchema, check)], `fleet ${check.fleet} is ready${words}\n`);
  }
}
