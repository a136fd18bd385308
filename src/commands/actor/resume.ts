// `rollout actor resume`
import { configFlags } from "../../cli/setting-flags.ts";
import { ACTOR_ARGS, ActorCommand } from "../../compose/actor-command.ts";

export class ActorResume extends ActorCommand {
  static override readonly summary = "Resume paused actors.";
  static override readonly description =
    "It does not resume an actor that a failed event has parked: `rollout retry` runs that event again, `rollout actor skip` continues without it.";
  static override readonly examples = ["<%= config.bin %> <%= command.id %> order/17"];
  static override readonly args = ACTOR_ARGS;
  static override readonly flags = configFlags("operator");

  override async run(): Promise<void> {
    const { args, flags } = await this.parse(ActorResume);
    await this.steerActors("resume", args.actor, flags);
  }
}
