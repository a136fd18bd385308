// `rollout events`
import { EXIT } from "../base/error-row.ts";
import type { ExitCode } from "../base/error-row.ts";
import { RolloutError } from "../base/errors.ts";
import { jsonFields } from "../base/exact-json.ts";
import { Flags } from "../cli/oclif.ts";
import { untilSeenEnough } from "../cli/signals.ts";
import { printTo } from "../cli/results/outlet.ts";
import { counted } from "../cli/render/quantities.ts";
import { configFlags } from "../cli/setting-flags.ts";
import { OperatorCommand } from "../compose/operator-command.ts";
import type { RolloutClient } from "../compose/rollout-client.ts";
import type { Topic } from "../observe/events.ts";

export class Events extends OperatorCommand {
  static override readonly summary = "Print the events of the run, as lines of JSON.";
  static override readonly description =
    "The latest events since the coordinator began to lead, as on its standard output (docs/EVENTS.md). With --follow it prints new events until Ctrl-C, across restarts of the coordinator.";
  static override readonly examples = [
    "<%= config.bin %> <%= command.id %>",
    "<%= config.bin %> <%= command.id %> --follow | grep worker_failed",
  ];
  static override readonly flags = {
    ...configFlags("operator"),
    follow: Flags.boolean({ char: "f", summary: "Keep printing new events." }),
  };

  override async run(): Promise<ExitCode> {
    const { flags } = await this.parse(Events);
    const enough = untilSeenEnough(this.argv);
    const output = printTo(process.stdout);
    let end: ExitCode | undefined;
    const print = async (client: RolloutClient): Promise<void> => {
      const lines = client.eventLines({
        ...{ follow: flags.follow, signal: enough.signal },
        onTrouble: (error) =>
          this.tell(error === undefined ? "The coordinator answers again." : `Waiting: ${error.message}.`),
        onDropped: (count) =>
          this.tell(
            `${counted(count, "event was", "events were")} left out: events came faster than they were read.`,
          ),
      });
      for await (const line of lines) {
        if ((await output.append(`${line}\n`)) === "reader-gone") return;
        end = endBy(line, end);
      }
    };
    try {
      await (flags.follow ? this.followRun(flags, enough, print) : this.withRun(flags, print));
    } catch (error) {
      // Nothing more can happen in a local run that has left when its end was shown.
      if (end !== undefined && error instanceof RolloutError && error.code === "local_run_ended") return end;
      throw error;
    }
    return EXIT.done;
  }
}

const OF_RUN = '"topic":"run_';

/** The code for a run that is over, as `rollout run` has it, after an event; undefined for one that goes on. */
function endBy(line: string, before: ExitCode | undefined): ExitCode | undefined {
  // Beats are most of what comes: only what may be of the run is read.
  if (!line.includes(OF_RUN)) return before;
  const { topic, failed } = jsonFields(line);
  switch (topic as Topic) {
    case "run_completed":
      return failed === 0 ? EXIT.done : EXIT.itemsFailed;
    case "run_cancelled":
      return EXIT.itemsFailed;
    case "run_reopened":
      return undefined;
    default:
      return before;
  }
}
