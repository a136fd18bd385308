// `rollout actor resume`
import { Args } from "../../cli/oclif.ts";
import { configFlags } from "../../cli/setting-flags.ts";
import { ActorCommand } from "../../compose/actor-command.ts";

export class ActorResume extends ActorCommand {
  static override readonly summary = "Let paused actors go on.";
  static override readonly description =
    "An actor that an event has parked does not: `rollout retry` tries that event again, `rollout actor skip` goes on without it.";
  static override readonly examples = ["<%= config.bin %> <%= command.id %> order/17"];
  static override readonly args = {
    actor: Args.string({
      description: "Actors, as TYPE/ID.",
      required: true,
      multiple: true,
      ignoreStdin: true,
    }),
  };
  static override readonly flags = configFlags("operator");

  override async run(): Promise<void> {
    const { args, flags } = await this.parse(ActorResume);
    await this.steerActors("resume", args.actor, flags);
  }
}
