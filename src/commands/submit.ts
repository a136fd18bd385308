// `rollout submit`
import { createReadStream } from "node:fs";
import { systemClock } from "../base/clock.ts";
import { failure, RolloutError } from "../base/errors.ts";
import { systemReason } from "../base/system-reason.ts";
import { Args, Flags } from "../cli/oclif.ts";
import { isFile } from "../cli/results/outlet.ts";
import { counted, number } from "../cli/render/quantities.ts";
import { fieldFlags, fieldsOf, KEYLESS_EVENT } from "../cli/field-flags.ts";
import { configFlags, settingFlags } from "../cli/setting-flags.ts";
import { inputLines } from "../client/input-lines.ts";
import { announced } from "../client/slow-input.ts";
import { submittedTask } from "../compose/operator-client.ts";
import { OperatorCommand } from "../compose/operator-command.ts";

export class Submit extends OperatorCommand {
  static override readonly summary = "Add the lines of a file to the run as items.";
  static override readonly description =
    "An item is a JSON value per line, or with --text any line. Items are known by their content: a file that is submitted " +
    "again, or was edited, adds only what is new. Equal lines of one file are different items. Items of one key (--key-field) execute " +
    "one at a time, in the order of the file.";
  static override readonly examples = [
    "<%= config.bin %> <%= command.id %> prompts.jsonl --plugin infer.toml --seal",
    "<%= config.bin %> <%= command.id %> prompts.jsonl --dry-run",
    "<%= config.bin %> <%= command.id %> events.jsonl --key-field customer --event-id-field /event/id",
    "cat urls.txt | <%= config.bin %> <%= command.id %> - --text",
  ];
  static override readonly args = {
    file: Args.string({
      description: "The file, or - for standard input.",
      required: true,
      ignoreStdin: true,
    }),
  };
  static override readonly flags = {
    ...configFlags("operator"),
    ...settingFlags(["limits.payload"]),
    plugin: Flags.string({
      summary:
        "The manifest of the plugin that executes the items; without it that of worker.plugins, or `mock`.",
      helpValue: "FILE",
    }),
    text: Flags.boolean({ summary: "Take each line as it is, not as JSON." }),
    seal: Flags.boolean({
      default: false,
      summary: "Seal the run: no more items will come, and it ends with the last one.",
    }),
    "dry-run": Flags.boolean({
      default: false,
      summary: "Submit nothing: print how many lines are new, known or duplicates.",
    }),
    ...fieldFlags,
    priority: Flags.integer({
      summary: "Priority, -100 to 100: higher goes first.",
      default: 0,
      min: -100,
      max: 100,
      helpValue: "N",
    }),
  };

  override async run(): Promise<void> {
    const { args, flags } = await this.parse(Submit);
    const { plugin, priority } = flags;
    const fields = fieldsOf(flags, (detail) => this.misuse(detail));
    const dryRun = flags["dry-run"];
    const sealed = flags.seal && !dryRun;
    // The flag is of this file, not the setting of workers that has the same name.
    return this.withRun({ ...flags, plugin: undefined }, async (client, config) => {
      const { limits } = config;
      const { actorTypes } = await submittedTask(plugin, config);
      if (actorTypes !== undefined && fields === undefined) throw this.misuse(KEYLESS_EVENT);
      const lines = inputLines(
        chunksOf(args.file, (sentence) => this.tell(sentence)),
        {
          name: args.file === "-" ? "standard input" : args.file,
          kind: flags.text ? "text" : "json",
          lineBytesMax: limits.payloadBytes,
          fields,
          actorTypes,
        },
      );
      const items = dryRun ? nothingSubmitted(lines) : lines;
      const { added, known, duplicates } = await client.submit(items, {
        plugin,
        priority,
        dryRun,
        seal: sealed,
        key: fields?.key,
        id: fields?.eventId,
      });
      const equal = `${counted(duplicates, "line equals", "lines equal")} one before`;
      const text = dryRun
        ? `${counted(added, "item")} would be new, ${number(known)} known; ${equal}`
        : `${counted(added, "new item")}, ${number(known)} known${sealed ? ", and the run is sealed" : ""}`;
      this.print([{ added, known, duplicates, sealed, dry_run: dryRun }], `${text}\n`);
    });
  }
}

/** A line that is no item is refused here too, without saying that those before it are submitted. */
async function* nothingSubmitted(lines: AsyncIterable<Uint8Array>): AsyncGenerator<Uint8Array> {
  try {
    yield* lines;
  } catch (error) {
    if (!(error instanceof RolloutError) || error.code !== "input_invalid") throw error;
    const { file = "", line = "", reason = "" } = error.params;
    throw failure("input_refused", { file, line, reason }, error);
  }
}

async function* chunksOf(file: string, tell: (sentence: string) => void): AsyncGenerator<Uint8Array> {
  try {
    const isStandard = file === "-";
    const waits = isStandard || !(await isFile(file));
    const stream = isStandard ? process.stdin : createReadStream(file);
    const say = (): void => tell(`waiting for input from ${isStandard ? "standard input" : file}`);
    for await (const chunk of waits ? announced<unknown>(stream, systemClock, say) : stream)
      yield chunk as Uint8Array;
  } catch (error) {
    throw failure("input_unreadable", { file, reason: systemReason(error) }, error);
  }
}
