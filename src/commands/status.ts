// `rollout status`
import { systemClock } from "../base/clock.ts";
import { EXIT } from "../base/error-table.ts";
import type { ExitCode } from "../base/error-table.ts";
import { Flags } from "../cli/oclif.ts";
import { untilSeenEnough } from "../cli/reader-watch.ts";
import { noneHasPlugin, runStatusObject, runStatusText } from "../cli/render/run-status.ts";
import { lacksPlugin, troubleLines } from "../cli/render/workers.ts";
import { configFlags } from "../cli/setting-flags.ts";
import { watch } from "../cli/watch.ts";
import { PaceMeter } from "../client/progress.ts";
import { standsStill } from "../client/run-status.ts";
import type { RunStatus } from "../client/run-status.ts";
import { OperatorCommand } from "../compose/operator-command.ts";
import type { RolloutClient } from "../compose/rollout-client.ts";

const TROUBLES_SHOWN = 5;

export class Status extends OperatorCommand {
  static override readonly summary = "Show how far the run is.";
  static override readonly description =
    "Counts by state and class of failure, how fast it goes, how long that will take, and the workers. With --watch it is redrawn " +
    "in place until the run is over or Ctrl-C; into a pipe, or with --json, it is printed again each time it changes.";
  static override readonly examples = [
    "<%= config.bin %> <%= command.id %>",
    "<%= config.bin %> <%= command.id %> --watch",
    "<%= config.bin %> <%= command.id %> --json",
  ];
  static override readonly flags = {
    ...configFlags("operator"),
    watch: Flags.boolean({ char: "w", summary: "Go on showing it until the run is over." }),
  };

  override async run(): Promise<ExitCode> {
    const { flags } = await this.parse(Status);
    const meter = new PaceMeter();
    if (flags.watch) return this.withRun(flags, (client) => this.#watch(client, meter));
    const seen = await this.askRun(flags, look);
    this.print([objectOf(seen)], this.#textOf(seen, meter));
    return exitOf(seen.status);
  }

  async #watch(client: RolloutClient, meter: PaceMeter): Promise<ExitCode> {
    const enough = untilSeenEnough(this.argv);
    const last = await watch<Seen>(
      {
        look: () => look(client),
        textOf: (seen) => this.#textOf(seen, meter),
        keyOf: ({ status, ...more }) => JSON.stringify({ ...status, ...more, finishedPerSecond: undefined }),
        isOver: ({ status: { state } }) => state === "complete" || state === "cancelled",
        print: (seen, text, isFirst) => this.print([objectOf(seen)], isFirst ? text : `\n${text}`),
        tell: (sentence) => this.tell(sentence),
        isForPrograms: this.isForPrograms,
      },
      enough.signal,
    );
    return last === undefined ? EXIT.done : exitOf(last.status);
  }

  #textOf({ status, trouble, workersLackPlugin }: Seen, meter: PaceMeter): string {
    const nowMs = systemClock.monotonicMs();
    meter.take(nowMs, status, status.finishedPerSecond);
    const more = trouble.length > TROUBLES_SHOWN ? [`(and ${trouble.length - TROUBLES_SHOWN} more)`] : [];
    const lines = [...trouble.slice(0, TROUBLES_SHOWN), ...more].map((line) => `${line}\n`);
    return runStatusText(status, meter.pace(nowMs), this.hinted, workersLackPlugin) + lines.join("");
  }
}

interface Seen {
  readonly status: RunStatus;
  /** Why nothing finishes, as workers say. */
  readonly trouble: readonly string[];
  readonly workersLackPlugin: boolean;
}

async function look(client: RolloutClient): Promise<Seen> {
  const status = await client.status();
  const isIdle = standsStill(status) || lacksWorkers(status);
  if (!isIdle && !takesNothing(status)) return { status, trouble: [], workersLackPlugin: false };
  const workers = await client.workers();
  return {
    status,
    trouble: isIdle ? troubleLines(workers) : [],
    workersLackPlugin: takesNothing(status) && lacksPlugin(status.task?.plugin ?? "", workers),
  };
}

/** There is work, and no worker has any of it. */
function takesNothing({ pending, running }: RunStatus): boolean {
  return pending > 0 && running === 0;
}

/** There is work and nobody for it: who has left may have said why. */
function lacksWorkers({ pending, running, workers }: RunStatus): boolean {
  return pending + running > 0 && workers.ready === 0;
}

function objectOf({ status, trouble, workersLackPlugin }: Seen): object {
  const lack = workersLackPlugin ? [noneHasPlugin(status.task?.plugin ?? "")] : [];
  return { ...runStatusObject(status), trouble: [...lack, ...trouble] };
}

function exitOf({ state, failed, setAside }: RunStatus): ExitCode {
  if (state === "paused") return EXIT.paused;
  if (state === "complete" && setAside > 0) return EXIT.storage;
  return state === "complete" && failed > 0 ? EXIT.itemsFailed : EXIT.done;
}
