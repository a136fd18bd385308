// `rollout doctor`
import { systemClock } from "../base/clock.ts";
import { EXIT } from "../base/error-table.ts";
import { RolloutError } from "../base/errors.ts";
import type { ExitCode } from "../base/error-table.ts";
import { BaseCommand } from "../cli/base-command.ts";
import { findingObject, findingsText } from "../cli/render/findings.ts";
import { configFlags, settingFlags } from "../cli/setting-flags.ts";
import type { ExaminedConfig } from "../compose/doctor/examination.ts";
import { examine } from "../compose/doctor/examination.ts";

export class Doctor extends BaseCommand {
  static override readonly summary = "Look whether everything that a run needs is in order.";
  static override readonly description =
    "Looks at this machine, the configuration, certificates, the database, the plugins and the coordinator, and says what " +
    "to do about what it finds. It stores nothing; a database that nobody has open it opens for a moment, as a coordinator " +
    "would, to see whether it is whole and of this run. Its exit code is that of the first failure, and 0 when there is none: a gate for " +
    "scripts. A warning is no failure.";
  static override readonly examples = [
    "<%= config.bin %> <%= command.id %>",
    {
      description: "In a script, before work is submitted:",
      command: "<%= config.bin %> <%= command.id %> --json && <%= config.bin %> submit prompts.jsonl --seal",
    },
  ];
  static override readonly flags = {
    ...configFlags("operator"),
    ...settingFlags(["worker.plugins", "worker.preemption", "worker.metadata_addr"]),
  };

  override async run(): Promise<ExitCode> {
    const { flags } = await this.parse(Doctor);
    const examined = await this.#config(flags);
    const log = this.openLog({ ...examined.config.log, level: "error" });
    const findings = await examine(examined, { clock: systemClock, log });
    this.print(findings.map(findingObject), findingsText(findings));
    return findings.find(({ error }) => error !== undefined)?.error?.row.exit ?? EXIT.done;
  }

  /** Of a coordinator if it is for one: on other machines there is no database to look at. */
  async #config(flags: Parameters<BaseCommand["loadConfig"]>[1]): Promise<ExaminedConfig> {
    const environment = process.env;
    try {
      const config = await this.loadConfig("coordinator", flags);
      return { config, storagePath: config.storage.path, environment };
    } catch (error) {
      if (!(error instanceof RolloutError) || error.code !== "config_missing_key") throw error;
      return { config: await this.loadConfig("operator", flags), storagePath: undefined, environment };
    }
  }
}
