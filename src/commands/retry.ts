// `rollout retry`
import { EXIT } from "../base/error-table.ts";
import { failure } from "../base/errors.ts";
import type { ExitCode } from "../base/error-table.ts";
import { Args, Flags } from "../cli/oclif.ts";
import { configFlags } from "../cli/setting-flags.ts";
import type { Retried } from "../client/run-control.ts";
import { OperatorCommand } from "../compose/operator-command.ts";

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

  override async run(): Promise<ExitCode> {
    const { args, flags } = await this.parse(Retry);
    const names = args.item ?? [];
    if (names.length === 0 && !flags.failed) {
      throw failure("usage", { detail: "say --failed, or name items", command: this.fullName() });
    }
    const isDry = flags["dry-run"];
    const choice = { failureClass: flags.class, items: names, dryRun: isDry };
    const { retried, skipped } = await this.askRun(flags, (client) => client.retry(choice));
    this.print([{ retried, skipped, dry_run: isDry }], sentence({ retried, skipped }, isDry));
    return EXIT.done;
  }
}

function sentence({ retried, skipped }: Retried, isDry: boolean): string {
  const items = `${retried} item${retried === 1 ? "" : "s"}`;
  const [are, stay, they] = skipped === 1 ? ["is", "stays", "it is"] : ["are", "stay", "they are"];
  const rest =
    skipped === 0 ? "" : `; ${skipped} that ${are} not failed ${isDry ? "would stay" : stay} as ${they}`;
  return `${items} ${isDry ? "would be" : retried === 1 ? "was" : "were"} taken back${rest}.\n`;
}
