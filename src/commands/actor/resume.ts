// `rollout actor resume`
import { configFlags } from "../../cli/setting-flags.ts";
import { ACTOR_ARGS, ActorCommand } from "../../compose/actor-command.ts";

export class ActorResume extends ActorCommand {
  static override readonly summary = "Let paused actors go on.";
  static override readonly description =
    "An actor that an event has parked does not: `rollout retry` tries that event again, `rollout actor skip` goes on without it.";
  static override readonly examples = ["<%= config.bin %> <%= command.id %> order/17"];
  static override readonly args = ACTOR_ARGS;
  static override readonly flags = configFlags("operator");

  override async run(): Promise<void> {
    const { args, flags } = await this.parse(ActorResume);
    await this.steerActors("resume", args.actor, flags);
  }
}
