// `rollout store backup`
import { resolve } from "node:path";
import { systemClock } from "../../base/clock.ts";
import { Args } from "../../cli/oclif.ts";
import { number } from "../../cli/render/quantities.ts";
import { configFlags } from "../../cli/setting-flags.ts";
import { unlessInterrupted } from "../../cli/signals.ts";
import { backUpRun } from "../../compose/back-up-run.ts";
import { OperatorCommand } from "../../compose/operator-command.ts";

export class StoreBackup extends OperatorCommand {
  static override readonly summary = "Back up the database while the run continues.";
  static override readonly description =
    "The leader sends every row as it is at one moment, and the run continues. DIRECTORY is then a database of its own, " +
    "from which a coordinator leads (storage.path), or `rollout store copy` copies to a Postgres. No coordinator leads from a backup that was cut off, and the same command begins it anew. A backup has no key and no certificate: keep transport.tls_dir as well.";
  static override readonly examples = [
    "<%= config.bin %> <%= command.id %> ./backup-monday",
    "<%= config.bin %> <%= command.id %> /mnt/backups/work --json",
  ];
  static override readonly args = {
    directory: Args.string({
      description: "The copy is made there; the directory is made, or is empty.",
      required: true,
      ignoreStdin: true,
    }),
  };
  static override readonly flags = configFlags("operator");

  override async run(): Promise<void> {
    const { args, flags } = await this.parse(StoreBackup);
    const directory = resolve(args.directory);
    const interrupted = new AbortController();
    const backingUp = this.withRun(flags, ({ calls }, config) =>
      backUpRun({
        ...{
          calls,
          directory,
          address: config.worker.coordinatorAddr.join(", "),
          signal: interrupted.signal,
        },
        ...{ clock: systemClock, log: this.openLateLog(config.log) },
      }),
    );
    backingUp.catch(() => undefined);
    const { rows, bytes } = await unlessInterrupted(backingUp, this.argv).finally(() => interrupted.abort());
    this.print([{ rows, bytes, to: directory }], `Copied ${number(rows)} rows to ${directory}.\n`);
  }
}
