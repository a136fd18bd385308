// `rollout store copy`
import { resolve } from "node:path";
import { systemClock } from "../../base/clock.ts";
import { systemRandom } from "../../base/random.ts";
import { BaseCommand } from "../../cli/base-command.ts";
import { Flags } from "../../cli/oclif.ts";
import { number } from "../../cli/render/quantities.ts";
import { configFlagsFor } from "../../cli/setting-flags.ts";
import { unlessInterrupted } from "../../cli/signals.ts";
import { moveRun } from "../../compose/move-run.ts";

const URL_SHAPE = /^postgres(?:ql)?:\/\//;

export class StoreCopy extends BaseCommand {
  static override readonly summary = "Copy a run from another database to the one that is configured.";
  static override readonly description =
    "For moving a run from a directory to a Postgres, or back: while no coordinator runs, with the configuration of where it goes. " +
    "Every row is compared before the copy counts. No coordinator leads from a copy that was cut off, and the same command begins it anew. The old " +
    "database is left as it is. Start no coordinator with it any more: the run goes on in the new one.";
  static override readonly examples = [
    "<%= config.bin %> <%= command.id %> --from ./data/rollout.db",
    "<%= config.bin %> <%= command.id %> --from postgres://rollout@db1/work --from-password-file ./password",
  ];
  static override readonly flags = {
    ...configFlagsFor(["run_id", "storage.path", "storage.url", "storage.password_file", "log.format"]),
    from: Flags.string({
      summary: "The database that has the run now: a directory, or the URL of a Postgres.",
      helpValue: "PATH|URL",
      required: true,
    }),
    "from-password-file": Flags.string({
      summary: "The password for that URL, in a file that its owner alone may read.",
      helpValue: "PATH",
    }),
  };

  override async run(): Promise<void> {
    const { flags } = await this.parse(StoreCopy);
    const config = await this.loadConfig("coordinator", flags);
    const given = flags["from-password-file"];
    const interrupted = new AbortController();
    const moving = moveRun({
      ...{ config, clock: systemClock, random: systemRandom, log: await this.openLog(config.log) },
      from: URL_SHAPE.test(flags.from) ? flags.from : resolve(flags.from),
      passwordFile: given === undefined ? undefined : resolve(given),
      tell: (sentence) => this.tell(sentence),
      signal: interrupted.signal,
    });
    moving.catch(() => undefined);
    const moved = await unlessInterrupted(moving, this.argv).finally(() => interrupted.abort());
    if (moved === undefined) return;
    const { rows, bytes, from, to } = moved;
    this.print(
      [{ rows, bytes, from, to }],
      `Copied ${number(rows)} rows from ${from} to ${to}.\nStart no coordinator with the old one any more.\n`,
    );
  }
}
