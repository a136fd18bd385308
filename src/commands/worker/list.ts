// `rollout worker list`
import { Flags } from "../../cli/oclif.ts";
import { untilSeenEnough } from "../../cli/signals.ts";
import { workersText } from "../../cli/render/workers.ts";
import { configFlags } from "../../cli/setting-flags.ts";
import { watch, WATCH_INTERVAL_MS } from "../../cli/watch.ts";
import { jsonOf } from "../../client/operator-message.ts";
import type { WorkerSummary } from "../../client/workers.ts";
import { OperatorCommand } from "../../compose/operator-command.ts";
import type { RolloutClient } from "../../compose/rollout-client.ts";
import { WorkerInfoSchema } from "../../gen/rollout/v1/run_pb.ts";

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
    watch: Flags.boolean({ char: "w", summary: "Redraw until Ctrl-C." }),
  };

  override async run(): Promise<void> {
    const { flags } = await this.parse(WorkerList);
    const enough = flags.watch ? untilSeenEnough(this.argv) : undefined;
    if (enough !== undefined)
      await this.followRun(flags, enough, (client) => this.#watch(client, enough.signal));
    else this.#show(await this.askRun(flags, (client) => client.workers()));
  }

  #show(workers: readonly WorkerSummary[]): void {
    const objects = workers.map((worker) => jsonOf(WorkerInfoSchema, worker));
    this.print(objects, workersText(workers, this.hinted));
  }

  async #watch(client: RolloutClient, signal: AbortSignal): Promise<void> {
    const news = client.news(WATCH_INTERVAL_MS);
    await watch<readonly WorkerSummary[]>(
      {
        look: async (until) => {
          await news.next(until);
          return client.workers();
        },
        textOf: (workers) => workersText(workers, this.hinted),
        keyOf: (workers) => JSON.stringify(workers.map(({ lastBeatAgeMs: _, ...rest }) => rest)),
        print: (workers) => this.#show(workers),
        tell: (sentence) => this.tell(sentence),
        isForPrograms: this.isForPrograms,
      },
      signal,
    );
  }
}
