// `rollout actor history`
import { systemClock } from "../../base/clock.ts";
import { Args, Flags } from "../../cli/oclif.ts";
import { historyText } from "../../cli/render/actors.ts";
import { configFlags } from "../../cli/setting-flags.ts";
import { listKeyHistory } from "../../client/keys.ts";
import { ActorCommand } from "../../compose/actor-command.ts";
import { eventOf } from "../../compose/actor-now.ts";
import type { ActorEvent } from "../../compose/actor-now.ts";
import { eventObject, valueText } from "../../compose/actor-views.ts";

const EVENTS_USUAL = 20;

export class ActorHistory extends ActorCommand {
  static override readonly summary = "Show the last events of an actor, and its state after each.";
  static override readonly description =
    "The last one comes first. Events that have failed have changed nothing, and are not among them: `rollout results` has those.";
  static override readonly examples = [
    "<%= config.bin %> <%= command.id %> order/17",
    "<%= config.bin %> <%= command.id %> order/17 --limit 100 --json",
  ];
  static override readonly args = {
    actor: Args.string({ description: "The actor, as TYPE/ID.", required: true, ignoreStdin: true }),
  };
  static override readonly flags = {
    ...configFlags("operator"),
    limit: Flags.integer({
      summary: "The most events to show.",
      min: 1,
      max: 100_000,
      helpValue: "N",
      default: EVENTS_USUAL,
    }),
  };

  override async run(): Promise<void> {
    const { args, flags } = await this.parse(ActorHistory);
    const { events, key } = await this.askActor(args.actor, flags, async (client, actor) => {
      const found: ActorEvent[] = [];
      for await (const result of listKeyHistory(client.keyCalls, actor, flags.limit))
        found.push(eventOf(result));
      return { events: found, key: actor };
    });
    const lines = events.map((event) => ({ ...event, value: valueText(event.value) }));
    this.print(events.map(eventObject), historyText(key, lines, systemClock.wallMs()));
  }
}
