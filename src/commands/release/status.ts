// `rollout release status`
import { systemClock } from "../../base/clock.ts";
import { EXIT } from "../../base/error-row.ts";
import type { ExitCode } from "../../base/error-row.ts";
import { Flags } from "../../cli/oclif.ts";
import { releaseText } from "../../cli/render/release.ts";
import { configFlags } from "../../cli/setting-flags.ts";
import { untilSeenEnough } from "../../cli/signals.ts";
import { watch } from "../../cli/watch.ts";
import { jsonOf } from "../../client/operator-message.ts";
import { isReleaseOver } from "../../client/releases.ts";
import type { Release } from "../../client/releases.ts";
import { OperatorCommand } from "../../compose/operator-command.ts";
import { RELEASE_ARGS } from "../../compose/release-command.ts";
import { ReleaseStatusSchema } from "../../gen/rollout/v1/release_pb.ts";

export class ReleaseStatus extends OperatorCommand {
  static override readonly summary = "Show the stage, the metrics and the verdict of a release.";
  static override readonly description =
    "For each metric a bar for both versions: [---o---] spans the values that are still possible, o (stable) and x (candidate) mark the measured value, and | marks the margin. " +
    "Then the reason for the verdict, and what is needed next. With --watch it is redrawn until the release is over or held.";
  static override readonly examples = [
    "<%= config.bin %> <%= command.id %>",
    "<%= config.bin %> <%= command.id %> --watch",
    "<%= config.bin %> <%= command.id %> 01M7QK69HAKARNT7E0B5TKE00H --json",
  ];
  static override readonly args = RELEASE_ARGS;
  static override readonly flags = {
    ...configFlags("operator"),
    watch: Flags.boolean({ char: "w", summary: "Redraw until the release is over, or held." }),
  };

  override async run(): Promise<ExitCode> {
    const { args, flags } = await this.parse(ReleaseStatus);
    const id = args.release ?? "";
    if (flags.watch) return this.#watch(flags, id);
    const release = await this.askRun(flags, (client) => client.releases.get(id));
    this.print([objectOf(release)], this.#textOf(release));
    return EXIT.done;
  }

  async #watch(flags: Parameters<ReleaseStatus["followRun"]>[0], id: string): Promise<ExitCode> {
    const enough = untilSeenEnough(this.argv);
    const last = await this.followRun(flags, enough, async (client) => {
      const { release } = await client.releases.get(id);
      const news = client.releases.news(release);
      return watch<Release>(
        {
          look: (signal) => news.next(signal),
          textOf: (seen) => this.#textOf(seen),
          keyOf: (seen) => JSON.stringify(objectOf(seen)),
          isOver: (seen) => isReleaseOver(seen) || seen.state === "held",
          print: (seen, text, isFirst) => this.print([objectOf(seen)], isFirst ? text : `\n${text}`),
          ...{ tell: (sentence) => this.tell(sentence), isForPrograms: this.isForPrograms },
        },
        enough.signal,
      );
    });
    return last === undefined ? EXIT.done : exitOf(last);
  }

  #textOf(release: Release): string {
    return releaseText(release, this.hinted, systemClock.wallMs());
  }
}

function objectOf(release: Release): object {
  return jsonOf(ReleaseStatusSchema, release);
}

function exitOf({ state }: Release): ExitCode {
  if (state === "held") return EXIT.paused;
  return state === "completed" ? EXIT.done : EXIT.itemsFailed;
}
