// `rollout events`
import { EXIT } from "../base/error-table.ts";
import type { ExitCode } from "../base/error-table.ts";
import { Flags } from "../cli/oclif.ts";
import { untilSeenEnough } from "../cli/reader-watch.ts";
import { printTo } from "../cli/results/outlet.ts";
import { configFlags } from "../cli/setting-flags.ts";
import { OperatorCommand } from "../compose/operator-command.ts";

export class Events extends OperatorCommand {
  static override readonly summary = "Print what has happened to the run, as lines of JSON.";
  static override readonly description =
    "The last of the events since the coordinator began to lead, as they stand on its standard output (docs/EVENTS.md). With " +
    "--follow it goes on with what happens until Ctrl-C or until nobody reads it, also over restarts of the coordinator.";
  static override readonly examples = [
    "<%= config.bin %> <%= command.id %>",
    "<%= config.bin %> <%= command.id %> --follow | grep worker_failed",
  ];
  static override readonly flags = {
    ...configFlags("operator"),
    follow: Flags.boolean({ char: "f", summary: "Go on with what happens." }),
  };

  override async run(): Promise<ExitCode> {
    const { flags } = await this.parse(Events);
    const enough = untilSeenEnough(this.argv);
    const output = printTo(process.stdout);
    await this.withRun(flags, async (client) => {
      const lines = client.eventLines({
        ...{ follow: flags.follow, signal: enough.signal },
        onTrouble: (error) =>
          this.tell(error === undefined ? "The coordinator answers again." : `Waiting: ${error.message}.`),
        onDropped: (count) =>
          this.tell(`${count} events were left out: they came faster than they were read.`),
      });
      for await (const line of lines) if ((await output.append(`${line}\n`)) === "reader-gone") return;
    });
    return EXIT.done;
  }
}
