// `rollout worker list`
import { sleep, systemClock } from "../../base/clock.ts";
import { EXIT } from "../../base/errors.ts";
import type { ExitCode } from "../../base/errors.ts";
import { Flags } from "../../cli/oclif.ts";
import { PatientReader } from "../../cli/patient-reader.ts";
import { LiveScreen } from "../../cli/render/live-screen.ts";
import { workerObject, workersText } from "../../cli/render/workers.ts";
import { configFlags } from "../../cli/setting-flags.ts";
import { untilSignalled } from "../../cli/signals.ts";
import type { WorkerSummary } from "../../client/list-workers.ts";
import { OperatorCommand } from "../../compose/operator-command.ts";
import type { RolloutClient } from "../../compose/rollout-client.ts";

const WATCH_INTERVAL_MS = 500;

export class WorkerList extends OperatorCommand {
  static override readonly summary = "Show the workers of the run.";
  static override readonly description =
    "Workers that have left stay in the list for liveness.remove_after. With --watch the table is redrawn in place " +
    "until Ctrl-C; into a pipe, or with --json, it is printed again each time it changes.";
  static override readonly examples = [
    "<%= config.bin %> <%= command.id %>",
    "<%= config.bin %> <%= command.id %> --watch",
    "<%= config.bin %> <%= command.id %> --json",
  ];
  static override readonly flags = {
    ...configFlags("operator"),
    watch: Flags.boolean({ char: "w", summary: "Go on showing them until Ctrl-C." }),
  };

  override async run(): Promise<ExitCode> {
    const { flags } = await this.parse(WorkerList);
    if (flags.watch) await this.withRun(flags, (client) => this.#watch(client));
    else this.#show(await this.askRun(flags, (client) => client.workers()));
    return EXIT.done;
  }

  #show(workers: readonly WorkerSummary[]): void {
    this.print(workers.map(workerObject), workersText(workers));
  }

  async #watch(client: RolloutClient): Promise<void> {
    const stop = new AbortController();
    void untilSignalled(this.argv).then(() => stop.abort());
    const screen = process.stdout.isTTY && !this.isForPrograms ? new LiveScreen(process.stdout) : undefined;
    let text = "";
    const reader = new PatientReader((sentence) =>
      screen === undefined ? this.tell(sentence) : screen.draw(`${text}${sentence}\n`),
    );
    let shown: string | undefined;
    while (!stop.signal.aborted) {
      const workers = await reader.read(() => client.workers());
      if (workers !== undefined) {
        text = workersText(workers);
        const state = JSON.stringify(workers.map(({ lastBeatAgeMs: _, ...rest }) => rest));
        if (screen !== undefined) screen.draw(text);
        else if (state !== shown) this.#show(workers);
        shown = state;
      }
      await sleep(systemClock, WATCH_INTERVAL_MS, stop.signal);
    }
  }
}
