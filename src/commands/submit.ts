// `rollout submit`
import { createReadStream } from "node:fs";
import { Args, Flags } from "@oclif/core";
import { systemClock } from "../base/clock.ts";
import { EXIT, failure } from "../base/errors.ts";
import type { ExitCode } from "../base/errors.ts";
import { systemRandom } from "../base/random.ts";
import { systemReason } from "../base/system-reason.ts";
import { BaseCommand } from "../cli/base-command.ts";
import { configFlags } from "../cli/setting-flags.ts";
import { inputLines } from "../client/input-lines.ts";
import { sealRun } from "../client/run-status.ts";
import { submitLines, taskDigestOf } from "../client/submit.ts";
import { openOperatorClient } from "../compose/operator-client.ts";
import { LIMITS } from "../config/limits.ts";

export class Submit extends BaseCommand {
  static override readonly summary = "Add the lines of a file to the run as items.";
  static override readonly description =
    "An item is a JSON value per line, or with --text any line. Items are known by their content: a file that is submitted " +
    "again, or was edited, adds only what is new. Equal lines of one file are different items.";
  static override readonly examples = [
    "<%= config.bin %> <%= command.id %> prompts.jsonl --seal",
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
    text: Flags.boolean({ summary: "Take each line as it is, not as JSON." }),
    seal: Flags.boolean({
      summary: "Say that nothing more will come: the run ends with the last of its items.",
    }),
    priority: Flags.integer({
      summary: "Higher goes first.",
      default: 0,
      min: -100,
      max: 100,
      helpValue: "N",
    }),
  };

  override async run(): Promise<ExitCode> {
    const { args, flags } = await this.parse(Submit);
    const config = await this.loadConfig("operator", flags);
    const client = await openOperatorClient(config, this.openLog(config.log));
    try {
      const lines = inputLines(chunksOf(args.file), {
        name: args.file === "-" ? "standard input" : args.file,
        kind: flags.text ? "text" : "json",
        lineBytesMax: LIMITS.payloadBytes,
      });
      const { added, known } = await submitLines(client.transport, lines, {
        taskDigest: taskDigestOf({ plugin: "mock", command: [] }),
        priority: flags.priority,
        clock: systemClock,
        random: systemRandom,
      });
      if (flags.seal) await sealRun(client.transport);
      const sealed = flags.seal ? ", and the run is sealed" : "";
      this.print([{ added, known, sealed: flags.seal }], `${added} new items, ${known} known${sealed}\n`);
      return EXIT.done;
    } finally {
      client.close();
    }
  }
}

async function* chunksOf(file: string): AsyncGenerator<Uint8Array> {
  try {
    for await (const chunk of file === "-" ? process.stdin : createReadStream(file))
      yield chunk as Uint8Array;
  } catch (error) {
    throw failure("input_unreadable", { file, reason: systemReason(error) }, error);
  }
}
