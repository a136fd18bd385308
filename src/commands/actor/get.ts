// `rollout actor get`
import { systemClock } from "../../base/clock.ts";
import { Args } from "../../cli/oclif.ts";
import { configFlags } from "../../cli/setting-flags.ts";
import { ActorCommand } from "../../compose/actor-command.ts";
import { actorObject, actorOf, actorText } from "../../compose/actor-views.ts";

export class ActorGet extends ActorCommand {
  static override readonly summary =
    "Show an actor: its state and context, what it waits for, and why it is parked.";
  static override readonly description =
    "The state after the last event that succeeded, without an event that is executing.";
  static override readonly examples = [
    "<%= config.bin %> <%= command.id %> order/17",
    "<%= config.bin %> <%= command.id %> order/17 --json",
  ];
  static override readonly args = {
    actor: Args.string({ description: "The actor, as TYPE/ID.", required: true, ignoreStdin: true }),
  };
  static override readonly flags = configFlags("operator");

  override async run(): Promise<void> {
    const { args, flags } = await this.parse(ActorGet);
    const key = await this.askActor(args.actor, flags, (client, actor) =>
      client.key(actor, { withState: true }),
    );
    const view = actorOf(key);
    this.print([actorObject(view)], actorText(view, this.hinted, systemClock.wallMs()));
  }
}
