// The base of commands that decide about a fleet: asked, answered after the commit, and shown.
import { fleetLine } from "../cli/render/run-status.ts";
import { Args, Flags } from "../cli/oclif.ts";
import { configFlags } from "../cli/setting-flags.ts";
import { steerFleet } from "../client/fleets.ts";
import type { FleetSteering } from "../client/fleets.ts";
import { jsonOf } from "../client/operator-message.ts";
import { FleetSummarySchema } from "../gen/rollout/v1/fleet_pb.ts";
import { OperatorCommand } from "./operator-command.ts";

export const FLEET_ARGS = {
  fleet: Args.string({ description: "Its name, as in rollout.toml.", required: true, ignoreStdin: true }),
};

/** Flags of a decision that people are told the reason of. */
export const REASON_FLAGS = {
  ...configFlags("operator"),
  reason: Flags.string({ summary: "The reason, which is shown.", default: "", helpValue: "TEXT" }),
};

export abstract class FleetCommand extends OperatorCommand {
  /** `flags` are the parsed ones. Throws what `askRun` throws, and rows fleet_…. */
  protected async steer(
    flags: Readonly<Record<string, unknown>>,
    steering: FleetSteering,
    asked: Parameters<typeof steerFleet>[2],
  ): Promise<void> {
    const fleet = await this.askRun(flags, (client) => steerFleet(client.fleetCalls, steering, asked));
    this.print([jsonOf(FleetSummarySchema, fleet)], `${fleetLine(fleet)}\n`);
  }
}
