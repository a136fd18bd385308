// `rollout actor pause`
import { configFlags } from "../../cli/setting-flags.ts";
import { ACTOR_ARGS, ActorCommand } from "../../compose/actor-command.ts";

export class ActorPause extends ActorCommand {
  static override readonly summary = "Pause actors: no more of their events start.";
  static override readonly description =
    "The event that executes finishes, and events that are sent to them wait; timers run on. Other actors are not affected.";
  static override readonly examples = ["<%= config.bin %> <%= command.id %> order/17"];
  static override readonly args = ACTOR_ARGS;
  static override readonly flags = configFlags("operator");

  override async run(): Promise<void> {
    const { args, flags } = await this.parse(ActorPause);
    await this.steerActors("pause", args.actor, flags);
  }
}
