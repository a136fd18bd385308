// `rollout status`
import { systemClock } from "../base/clock.ts";
import { EXIT } from "../base/error-row.ts";
import type { ExitCode } from "../base/error-row.ts";
import { Flags } from "../cli/oclif.ts";
import { untilSeenEnough } from "../cli/signals.ts";
import { coordinatorsText } from "../cli/render/coordinators.ts";
import { runStatusText } from "../cli/render/run-status.ts";
import { configFlags } from "../cli/setting-flags.ts";
import { watch, WATCH_INTERVAL_MS } from "../cli/watch.ts";
import { PaceMeter } from "../client/progress.ts";
import { leaderIn } from "../client/coordinators.ts";
import type { RunStatus } from "../client/run-status.ts";
import { OperatorCommand } from "../compose/operator-command.ts";
import { lookAtRun, runObject } from "../compose/run-sight.ts";
import type { RunSight } from "../compose/run-sight.ts";

const TROUBLES_SHOWN = 5;

export class Status extends OperatorCommand {
  static override readonly summary = "Show the progress of the run.";
  static override readonly description =
    "Counts by state and failure class, rate, estimated time left, and workers. With --watch it is redrawn " +
    "in place until the run is over or Ctrl-C; into a pipe, or with --json, it is printed again each time it changes.";
  static override readonly examples = [
    "<%= config.bin %> <%= command.id %>",
    "<%= config.bin %> <%= command.id %> --watch",
    "<%= config.bin %> <%= command.id %> --json",
  ];
  static override readonly flags = {
    ...configFlags("operator"),
    watch: Flags.boolean({ char: "w", summary: "Redraw until the run is over." }),
  };

  override async run(): Promise<ExitCode> {
    const { flags } = await this.parse(Status);
    const meter = new PaceMeter();
    if (flags.watch) return this.#watch(flags, meter);
    const seen = await this.askRun(flags, (client) => lookAtRun(client));
    this.print([runObject(seen)], this.#textOf(seen, meter));
    return exitOf(seen.status);
  }

  async #watch(flags: Parameters<Status["followRun"]>[0], meter: PaceMeter): Promise<ExitCode> {
    const enough = untilSeenEnough(this.argv);
    const last = await this.followRun(flags, enough, (client) => {
      const news = client.news(WATCH_INTERVAL_MS);
      return watch<RunSight>(
        {
          look: async (signal) => lookAtRun(client, { run: (await news.next(signal)).answer }),
          textOf: (seen) => this.#textOf(seen, meter),
          keyOf: ({ status, run: _run, coordinators, ...more }) => {
            const leader = leaderIn(coordinators)?.incarnation;
            return JSON.stringify({ ...status, ...more, leader, finishedPerSecond: undefined });
          },
          isOver: ({ status: { state } }) => state === "complete" || state === "cancelled",
          print: (seen, text, isFirst) => this.print([runObject(seen)], isFirst ? text : `\n${text}`),
          tell: (sentence) => this.tell(sentence),
          isForPrograms: this.isForPrograms,
        },
        enough.signal,
      );
    });
    return last === undefined ? EXIT.done : exitOf(last.status);
  }

  #textOf({ status, trouble, lack, coordinators }: RunSight, meter: PaceMeter): string {
    const nowMs = systemClock.monotonicMs();
    meter.take(nowMs, status, status.finishedPerSecond);
    const more = trouble.length > TROUBLES_SHOWN ? [`(and ${trouble.length - TROUBLES_SHOWN} more)`] : [];
    const lines = [...trouble.slice(0, TROUBLES_SHOWN), ...more].map((line) => `${line}\n`);
    const run = runStatusText(status, meter.pace(nowMs), this.hinted, lack) + lines.join("");
    return run + coordinatorsText(coordinators, systemClock.wallMs());
  }
}

function exitOf({ state, failed, pending, setAside }: RunStatus): ExitCode {
  if (state === "paused") return EXIT.paused;
  // Items that are pending in a run that was cancelled are never run.
  if (state === "cancelled") return failed + pending > 0 ? EXIT.itemsFailed : EXIT.done;
  if (state === "complete" && setAside > 0) return EXIT.storage;
  return state === "complete" && failed > 0 ? EXIT.itemsFailed : EXIT.done;
}
