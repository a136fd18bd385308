// `rollout retry`
import { Args, Flags } from "../cli/oclif.ts";
import { configFlags } from "../cli/setting-flags.ts";
import { OperatorCommand } from "../compose/operator-command.ts";
import { retryItems } from "../compose/run-deeds.ts";

const CLASSES = ["error", "timeout", "crash", "too_large", "poison", "cancelled"] as const;

export class Retry extends OperatorCommand {
  static override readonly summary = "Take failed items back, with new budgets.";
  static override readonly description =
    "They wait at their old places as if they had never failed; a run that was complete goes on. Done items are never touched. " +
    "An item is named by its 64 digits, by the first of them, or by the id that it has in the input.";
  static override readonly examples = [
    "<%= config.bin %> <%= command.id %> --failed",
    "<%= config.bin %> <%= command.id %> --failed --class timeout --dry-run",
    "<%= config.bin %> <%= command.id %> 3f9a1c prompt-17",
  ];
  static override readonly args = {
    item: Args.string({
      description: "Items that have failed, in place of all.",
      ignoreStdin: true,
      multiple: true,
    }),
  };
  static override readonly flags = {
    ...configFlags("operator"),
    failed: Flags.boolean({ summary: "All that have failed." }),
    class: Flags.option({ options: CLASSES, summary: "Only failures of this class." })(),
    "dry-run": Flags.boolean({ default: false, summary: "Only say how many it would be." }),
  };

  override async run(): Promise<void> {
    const { args, flags } = await this.parse(Retry);
    const names = args.item ?? [];
    if (names.length === 0 && !flags.failed) {
      throw this.misuse("say --failed, or name items");
    }
    const choice = { failureClass: flags.class, items: names, dryRun: flags["dry-run"] };
    const { object, text } = await this.askRun(flags, (client) => retryItems(client, choice));
    this.print([object], text);
  }
}
