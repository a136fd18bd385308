// `rollout key import`
import { open } from "node:fs/promises";
import { createInterface } from "node:readline";
import { failure } from "../../base/errors.ts";
import { systemReason } from "../../base/system-reason.ts";
import { Args, Flags } from "../../cli/oclif.ts";
import { counted, number } from "../../cli/render/quantities.ts";
import { configFlags } from "../../cli/setting-flags.ts";
import { importKeys } from "../../client/moved-keys.ts";
import { submittedTask } from "../../compose/operator-client.ts";
import { OperatorCommand } from "../../compose/operator-command.ts";

const SHOWN_MAX = 5;

export class KeyImport extends OperatorCommand {
  static override readonly summary = "Import keys that `rollout key export` of another run has printed.";
  static override readonly description =
    "A key comes with its state and waiting items; an actor also with timers, invocations and children. A key that the run already has stays as it is, " +
    "and is named. The same file may be imported again: no key is taken twice, whatever has happened to it since. The run must be " +
    "open, and have the same task.";
  static override readonly examples = [
    "<%= config.bin %> <%= command.id %> keys.jsonl --plugin order.toml",
    "<%= config.bin %> key export -c old | <%= config.bin %> <%= command.id %> - -c new --plugin order.toml",
  ];
  static override readonly args = {
    file: Args.string({
      description: "The file, with one key a line; or - for standard input.",
      required: true,
      ignoreStdin: true,
    }),
  };
  static override readonly flags = {
    ...configFlags("operator"),
    plugin: Flags.string({
      summary: "[default: worker.plugins] The manifest of the plugin that executes their items.",
      helpValue: "FILE",
    }),
  };

  override async run(): Promise<void> {
    const { args, flags } = await this.parse(KeyImport);
    const { file } = args;
    const name = file === "-" ? "standard input" : file;
    const { taken, known, there } = await this.withRun(
      { ...flags, plugin: undefined },
      async (client, config) => {
        const task = await submittedTask(flags.plugin, config);
        return importKeys(client.keyCalls, linesOf(file), { file: name, task });
      },
    );
    const before = known === 0 ? "" : `, ${number(known)} had been taken before`;
    this.print([{ taken, known, there }], `${counted(taken, "key")} taken${before}.\n`);
    if (there.length === 0) return;
    const shown = there.slice(0, SHOWN_MAX).join(", ");
    const more = there.length > SHOWN_MAX ? ` and ${there.length - SHOWN_MAX} more` : "";
    throw failure("key_refused", {
      keys: `${shown}${more}`,
      reason: "the run has it already, and it is left as it is",
    });
  }
}

/** Throws input_unreadable. */
async function* linesOf(file: string): AsyncGenerator<string> {
  try {
    if (file === "-") yield* createInterface({ input: process.stdin, crlfDelay: Infinity });
    else yield* (await open(file)).readLines();
  } catch (error) {
    throw failure("input_unreadable", { file, reason: systemReason(error) });
  }
}
