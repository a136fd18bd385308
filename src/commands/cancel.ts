// `rollout cancel`
import { createInterface } from "node:readline/promises";
import { failure } from "../base/errors.ts";
import { Flags } from "../cli/oclif.ts";
import { counted } from "../cli/render/quantities.ts";
import { configFlags } from "../cli/setting-flags.ts";
import type { RunStatus } from "../client/run-status.ts";
import { OperatorCommand } from "../compose/operator-command.ts";
import { cancelRun } from "../compose/run-deeds.ts";

export class Cancel extends OperatorCommand {
  static override readonly summary = "Cancel the run for good.";
  static override readonly description =
    "Items that execute are killed, and items that wait never start; recorded results stay, and `rollout results` prints them. This cannot be undone, so it asks first; without a terminal it needs --yes. `rollout pause` can be undone.";
  static override readonly examples = [
    "<%= config.bin %> <%= command.id %>",
    "<%= config.bin %> <%= command.id %> --yes",
  ];
  static override readonly flags = {
    ...configFlags("operator"),
    yes: Flags.boolean({ char: "y", summary: "Do not ask." }),
  };

  override async run(): Promise<void> {
    const { flags } = await this.parse(Cancel);
    if (!flags.yes && !canAsk()) {
      throw this.misuse("cancelling cannot be undone: say --yes");
    }
    const confirmed = async (before: RunStatus): Promise<void> => {
      if (!flags.yes && !(await confirm(questionOf(before)))) throw failure("interrupted", {});
    };
    const { object, text } = await this.withRun(flags, (client) => cancelRun(client, confirmed));
    this.print([object], text);
  }
}

function questionOf({ running, pending, done }: RunStatus): string {
  return (
    `This kills ${counted(running, "running item")} and gives up ${counted(pending, "waiting item")}; ${counted(done, "result stays", "results stay")}.\n` +
    "This cannot be undone. Cancel the run? [y/N] "
  );
}

/** True when a word of agreement was typed. Only where both standard input and standard error are terminals. */
async function confirm(question: string): Promise<boolean> {
  const lines = createInterface({ input: process.stdin, output: process.stderr });
  try {
    const answer = await new Promise<string>((resolve) => {
      // Ctrl-C and the end of input say no.
      lines.once("SIGINT", () => resolve(""));
      lines.once("close", () => resolve(""));
      void lines.question(question).then(resolve, () => resolve(""));
    });
    return /^y(?:es)?$/i.test(answer.trim());
  } finally {
    lines.close();
  }
}

/** Whether there is somebody to ask. */
function canAsk(): boolean {
  return process.stdin.isTTY && process.stderr.isTTY;
}
