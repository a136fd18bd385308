// `rollout worker list`
import { EXIT } from "../../base/error-table.ts";
import type { ExitCode } from "../../base/error-table.ts";
import { Flags } from "../../cli/oclif.ts";
import { untilSeenEnough } from "../../cli/reader-watch.ts";
import { workerObject, workersText } from "../../cli/render/workers.ts";
import { configFlags } from "../../cli/setting-flags.ts";
import { watch } from "../../cli/watch.ts";
import type { WorkerSummary } from "../../client/list-workers.ts";
import { OperatorCommand } from "../../compose/operator-command.ts";
import type { RolloutClient } from "../../compose/rollout-client.ts";

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
    this.print(workers.map(workerObject), workersText(workers, this.hinted));
  }

  async #watch(client: RolloutClient): Promise<void> {
    const enough = untilSeenEnough(this.argv);
    await watch<readonly WorkerSummary[]>(
      {
        look: () => client.workers(),
        textOf: (workers) => workersText(workers, this.hinted),
        keyOf: (workers) => JSON.stringify(workers.map(({ lastBeatAgeMs: _, ...rest }) => rest)),
        print: (workers) => this.#show(workers),
        tell: (sentence) => this.tell(sentence),
        isForPrograms: this.isForPrograms,
      },
      enough.signal,
    );
  }
}
