// `rollout actor timers`
import { systemClock } from "../../base/clock.ts";
import { Args } from "../../cli/oclif.ts";
import { timersText } from "../../cli/render/actors.ts";
import { configFlags } from "../../cli/setting-flags.ts";
import { ActorCommand } from "../../compose/actor-command.ts";
import { timerObject } from "../../compose/actor-views.ts";

export class ActorTimers extends ActorCommand {
  static override readonly summary = "Show the timers of an actor, and the event that each sends.";
  static override readonly description =
    "The next one comes first. A timer is set by `after`, or by an event that is raised or sent with a delay, and goes with the state that has set it.";
  static override readonly examples = [
    "<%= config.bin %> <%= command.id %> order/17",
    "<%= config.bin %> <%= command.id %> order/17 --json",
  ];
  static override readonly args = {
    actor: Args.string({ description: "The actor, as TYPE/ID.", required: true, ignoreStdin: true }),
  };
  static override readonly flags = configFlags("operator");

  override async run(): Promise<void> {
    const { args, flags } = await this.parse(ActorTimers);
    const { key, timers } = await this.askActor(args.actor, flags, async (client, actor) => {
      const { asks } = await client.key(actor);
      return { key: actor, timers: asks?.timers ?? [] };
    });
    const inOrder = timers.toSorted((one, other) => one.dueAtMs - other.dueAtMs);
    this.print(inOrder.map(timerObject), timersText(key, inOrder, systemClock.wallMs()));
  }
}
