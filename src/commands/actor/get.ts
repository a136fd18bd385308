// `rollout actor get`
import { printable, printableLines } from "../../base/safe-text.ts";
import { Args } from "../../cli/oclif.ts";
import { keyText } from "../../cli/render/keys.ts";
import { configFlags } from "../../cli/setting-flags.ts";
import { actorObject, actorOf, valueText } from "../../compose/actor-views.ts";
import type { ActorView } from "../../compose/actor-views.ts";
import { OperatorCommand } from "../../compose/operator-command.ts";

export class ActorGet extends OperatorCommand {
  static override readonly summary =
    "Show an actor: its state and context, what waits for it, and why it is parked.";
  static override readonly description =
    "As its last event that succeeded has left it; the event that is under way is not in it.";
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
    const view = actorOf(await this.askRun(flags, (client) => client.key(args.actor, { withState: true })));
    const text = `actor ${printable(view.key.key)}: ${printableLines(sentenceOf(view))}\n`;
    this.print([actorObject(view)], `${text}${keyText(view.key, this.hinted)}`);
  }
}

function sentenceOf({ key, actor }: ActorView): string {
  if (actor === undefined)
    return key.state === undefined
      ? "no event of it has succeeded yet, so it has no state"
      : "the state of that key is none that an actor has left";
  const { events, snapshot } = actor;
  const { status, value, context } = snapshot;
  const ended = status === "active" ? "" : ` (${status})`;
  return `${valueText(value)}${ended}, after ${events} events\n  ${JSON.stringify(context)}`;
}
