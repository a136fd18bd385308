// `rollout cancel`
import { createInterface } from "node:readline/promises";
import { EXIT } from "../base/error-table.ts";
import { failure } from "../base/errors.ts";
import type { ExitCode } from "../base/error-table.ts";
import { Flags } from "../cli/oclif.ts";
import { configFlags } from "../cli/setting-flags.ts";
import type { RunStatus } from "../client/run-status.ts";
import { OperatorCommand } from "../compose/operator-command.ts";

export class Cancel extends OperatorCommand {
  static override readonly summary = "End the run for good.";
  static override readonly description =
    "What executes is killed and what waits never starts; results that are there stay, and `rollout results` gives them. " +
    "This cannot be undone: it asks first, and where nobody can be asked it wants --yes. `rollout pause` can be undone.";
  static override readonly examples = [
    "<%= config.bin %> <%= command.id %>",
    "<%= config.bin %> <%= command.id %> --yes",
  ];
  static override readonly flags = {
    ...configFlags("operator"),
    yes: Flags.boolean({ char: "y", summary: "Do not ask." }),
  };

  override async run(): Promise<ExitCode> {
    const { flags } = await this.parse(Cancel);
    if (!flags.yes && !canAsk()) {
      throw failure("usage", { detail: "cancelling cannot be undone: say --yes", command: this.fullName() });
    }
    return this.withRun(flags, async (client) => {
      const before = await client.status();
      if (before.state === "complete" || before.state === "cancelled") {
        return this.#tellState(before, `The run is ${before.state} already.\n`);
      }
      if (!flags.yes && !(await confirm(questionOf(before)))) throw failure("interrupted", {});
      await client.cancel();
      const after = await client.status();
      const results = `${after.done} result${after.done === 1 ? " stays" : "s stay"}`;
      const rest = after.pending === 0 ? "" : `, and ${after.pending} of its items are never run`;
      return this.#tellState(after, `The run is cancelled: ${results}${rest}.\n`);
    });
  }

  #tellState({ state, done, failed, pending }: RunStatus, text: string): ExitCode {
    this.print([{ state, done, failed, pending }], text);
    return EXIT.done;
  }
}

function questionOf({ running, pending, done }: RunStatus): string {
  return (
    `${running} items with workers are killed, ${pending} that wait are never run, ${done} results stay.\n` +
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
