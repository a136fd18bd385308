// `rollout explain`
import { systemClock } from "../base/clock.ts";
import { Args } from "../cli/oclif.ts";
import { configFlags } from "../cli/setting-flags.ts";
import { explain } from "../compose/explanation.ts";
import { OperatorCommand } from "../compose/operator-command.ts";

export class Explain extends OperatorCommand {
  static override readonly summary = "Say why an item, a worker or an actor is where it is.";
  static override readonly description =
    "An item is named by its 64 digits, by the first of them (at least 6), or by the id that it has in the input; a worker by its " +
    "id as `rollout worker list` shows it; a durable actor as TYPE/ID. The words of the explanation may change; the other fields of --json do not.";
  static override readonly examples = [
    "<%= config.bin %> <%= command.id %> 3f9a1c",
    "<%= config.bin %> <%= command.id %> prompt-17 --json",
    "<%= config.bin %> <%= command.id %> 01JZ8Q6T0C5V9W3R7X2Y4B6D8F",
    "<%= config.bin %> <%= command.id %> order/17",
  ];
  static override readonly args = {
    name: Args.string({ description: "An item, a worker, or an actor.", required: true, ignoreStdin: true }),
  };
  static override readonly flags = configFlags("operator");

  override async run(): Promise<void> {
    const { args, flags } = await this.parse(Explain);
    const { object, text } = await this.askRun(flags, (client) =>
      explain(client, args.name, { nowMs: systemClock.wallMs(), line: this.hinted }),
    );
    this.print([object], text);
  }
}
