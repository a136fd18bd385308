// `rollout retry`
import { Args, Flags } from "../cli/oclif.ts";
import { configFlags } from "../cli/setting-flags.ts";
import { OperatorCommand } from "../compose/operator-command.ts";
import { retryItems } from "../compose/run-deeds.ts";

const CLASSES = ["error", "timeout", "crash", "too_large", "poison", "cancelled"] as const;

export class Retry extends OperatorCommand {
  static override readonly summary = "Run failed items again, with all attempts.";
  static override readonly description =
    "They wait at their old places as if they had never failed; a complete run continues. Done items never change. " +
    "An item is named by its 64 digits, by the first of them, or by the id that it has in the input.";
  static override readonly examples = [
    "<%= config.bin %> <%= command.id %> --failed",
    "<%= config.bin %> <%= command.id %> --failed --class timeout --dry-run",
    "<%= config.bin %> <%= command.id %> 3f9a1c prompt-17",
  ];
  static override readonly args = {
    item: Args.string({
      description: "Failed items to run again.",
      ignoreStdin: true,
      multiple: true,
    }),
  };
  static override readonly flags = {
    ...configFlags("operator"),
    failed: Flags.boolean({ summary: "All failed items." }),
    class: Flags.option({ options: CLASSES, summary: "Only failures of this class." })(),
    "dry-run": Flags.boolean({
      default: false,
      summary: "Change nothing: print how many items it would be.",
    }),
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
