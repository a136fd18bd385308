// The base of an operator's commands: the library's client of the run, closed at the end, whatever it is.
import { systemClock } from "../base/clock.ts";
import { systemRandom } from "../base/random.ts";
import { BaseCommand } from "../cli/base-command.ts";
import { unlessInterrupted } from "../cli/signals.ts";
import type { ClientConfig } from "../config/resolve.ts";
import type { Logger } from "../observe/log.ts";
import { openAwaitedRun } from "./awaited-run.ts";
import { refuseEndedRun } from "./local-run/ended-run.ts";
import { RolloutClient } from "./rollout-client.ts";

export abstract class OperatorCommand extends BaseCommand {
  /** `flags` are the parsed ones. Throws the rows of configuration and certificates, local_run_ended, and what `use` throws. */
  protected async withRun<Result>(
    flags: Readonly<Record<string, unknown>>,
    use: (client: RolloutClient, config: ClientConfig) => Promise<Result>,
  ): Promise<Result> {
    const config = await this.loadConfig("operator", flags);
    await refuseEndedRun(config.source);
    const client = await openRun(config, this.openLog(config.log));
    try {
      return await use(client, config);
    } finally {
      client.close();
    }
  }

  /** The same for what goes on until the run is over: a coordinator that is away is waited for, also one that has never led here. */
  protected async followRun<Result>(
    flags: Readonly<Record<string, unknown>>,
    signal: AbortSignal,
    use: (client: RolloutClient, config: ClientConfig) => Promise<Result>,
  ): Promise<Result> {
    let log: Logger | undefined;
    const { client, config } = await openAwaitedRun({
      load: async () => {
        const loaded = await this.loadConfig("operator", flags);
        await refuseEndedRun(loaded.source);
        return loaded;
      },
      open: (loaded) => openRun(loaded, (log ??= this.openLog(loaded.log))),
      ...{ clock: systemClock, random: systemRandom, signal },
      tell: (sentence) => this.tell(sentence),
    });
    try {
      return await use(client, config);
    } finally {
      client.close();
    }
  }

  /** The same for what takes a moment: a signal ends it with the row `interrupted`. */
  protected askRun<Result>(
    flags: Readonly<Record<string, unknown>>,
    use: (client: RolloutClient) => Promise<Result>,
  ): Promise<Result> {
    const asked = this.withRun(flags, use);
    // Left behind by an interruption, it ends when the client is closed, and nobody waits for it.
    asked.catch(() => undefined);
    return unlessInterrupted(asked, this.argv);
  }
}

/** A client to which a local run says that it has ended, also while something is awaited from it. */
function openRun(config: ClientConfig, log: Logger): Promise<RolloutClient> {
  return RolloutClient.open(config, log, () => refuseEndedRun(config.source));
}
