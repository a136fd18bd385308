// `rollout worker list`
import { Flags } from "@oclif/core";
import { sleep, systemClock } from "../../base/clock.ts";
import { EXIT } from "../../base/errors.ts";
import type { ExitCode } from "../../base/errors.ts";
import { BaseCommand } from "../../cli/base-command.ts";
import { LiveScreen } from "../../cli/render/live-screen.ts";
import { workerObject, workersText } from "../../cli/render/workers.ts";
import { configFlags } from "../../cli/setting-flags.ts";
import { unlessInterrupted, untilSignalled } from "../../cli/signals.ts";
import type { WorkerSummary } from "../../client/list-workers.ts";
import { listWorkers } from "../../client/list-workers.ts";
import { openOperatorClient } from "../../compose/operator-client.ts";
import type { Client } from "../../transport/client.ts";

const WATCH_INTERVAL_MS = 500;

export class WorkerList extends BaseCommand {
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
    const config = await this.loadConfig("operator", flags);
    const client = await openOperatorClient(config, this.openLog(config.log));
    try {
      if (flags.watch) await this.#watch(client);
      else this.#show(await unlessInterrupted(listWorkers(client.transport), this.argv));
      return EXIT.done;
    } finally {
      client.close();
    }
  }

  #show(workers: readonly WorkerSummary[]): void {
    this.print(workers.map(workerObject), workersText(workers));
  }

  async #watch({ transport }: Client): Promise<void> {
    const stop = new AbortController();
    void untilSignalled(this.argv).then(() => stop.abort());
    const screen = process.stdout.isTTY ? new LiveScreen(process.stdout) : undefined;
    let shown: string | undefined;
    while (!stop.signal.aborted) {
      const workers = await listWorkers(transport);
      const state = JSON.stringify(workers.map(({ lastBeatAgeMs: _, ...rest }) => rest));
      if (screen !== undefined) screen.draw(workersText(workers));
      else if (state !== shown) this.#show(workers);
      shown = state;
      await sleep(systemClock, WATCH_INTERVAL_MS, stop.signal);
    }
  }
}
