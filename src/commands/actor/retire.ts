// `rollout actor retire`
import { configFlags } from "../../cli/setting-flags.ts";
import { ACTOR_ARGS, ActorCommand } from "../../compose/actor-command.ts";

export class ActorRetire extends ActorCommand {
  static override readonly summary = "Delete idle actors with their states.";
  static override readonly description =
    "The results of their events stay. A later event makes such an actor anew. An actor with waiting events is not deleted.";
  static override readonly examples = ["<%= config.bin %> <%= command.id %> order/17"];
  static override readonly args = ACTOR_ARGS;
  static override readonly flags = configFlags("operator");

  override async run(): Promise<void> {
    const { args, flags } = await this.parse(ActorRetire);
    await this.steerActors("retire", args.actor, flags);
  }
}
