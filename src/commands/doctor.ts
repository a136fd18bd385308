// `rollout doctor`
import { systemClock } from "../base/clock.ts";
import { EXIT } from "../base/error-row.ts";
import { errnoOf, RolloutError } from "../base/errors.ts";
import { newUlid } from "../base/ids.ts";
import type { RunId } from "../base/ids.ts";
import { systemRandom } from "../base/random.ts";
import type { ExitCode } from "../base/error-row.ts";
import { namedConfig } from "../cli/arguments.ts";
import { BaseCommand } from "../cli/base-command.ts";
import { Flags } from "../cli/oclif.ts";
import { configFlagsFor } from "../cli/setting-flags.ts";
import type { ClientConfig } from "../config/resolve.ts";
import type { ExaminedConfig } from "../compose/doctor/examination.ts";
import { examine, examineAlone } from "../compose/doctor/examination.ts";
import { findingObject, findingsText } from "../compose/doctor/finding.ts";

export class Doctor extends BaseCommand {
  static override readonly summary = "Check that everything a run needs is in place.";
  static override readonly description =
    "Checks this machine, the configuration, certificates, the database, the plugins and the coordinator, and says how to correct what it finds. Without a configuration it checks the machine alone. Without --quarantine it changes nothing. A database that no process has open is opened for a moment, to see whether each row can be read and belongs to this run. A row that cannot be read keeps coordinators from leading: " +
    "--quarantine KEY sets it aside while no coordinator runs, and its item then has no result. The exit code is that of the first error, and 0 if there are only warnings or nothing: a gate for scripts.";
  static override readonly examples = [
    "<%= config.bin %> <%= command.id %>",
    {
      description: "In a script, before work is submitted:",
      command: "<%= config.bin %> <%= command.id %> --json && <%= config.bin %> submit prompts.jsonl --seal",
    },
  ];
  static override readonly flags = {
    ...configFlagsFor([
      "run_id",
      "transport.tls_dir",
      "transport.ca_file",
      "transport.cert_file",
      "transport.key_file",
      "worker.coordinator_addr",
      "worker.plugins",
      "worker.plugin_dir",
      "worker.preemption",
      "worker.metadata_addr",
      "log.format",
    ]),
    quarantine: Flags.string({
      summary: "Set this unreadable row of the database aside before the checks.",
      helpValue: "KEY",
    }),
  };

  override async run(): Promise<ExitCode> {
    const { flags } = await this.parse(Doctor);
    const { quarantine: quarantined, ...given } = flags;
    const found = { ...(await this.#config(given)), quarantined, line: this.hinted };
    const log = await this.openLog({ ...found.config.log, level: "error" });
    const ports = { clock: systemClock, log };
    const findings = await (found.isMade && quarantined === undefined
      ? examineAlone(found, ports)
      : examine(found, ports));
    const config = namedConfig(this.argv);
    const objects = findings.map((finding) => findingObject(finding, config));
    this.print(objects, findingsText(findings, config));
    return findings.find(({ error }) => error !== undefined)?.error?.row.exit ?? EXIT.done;
  }

  /** A coordinator's configuration if it is for one: on other machines there is no database to look at. Made up where there is none. */
  async #config(
    flags: Given,
  ): Promise<Omit<ExaminedConfig, "quarantined" | "line"> & { readonly isMade: boolean }> {
    const environment = process.env;
    const operator = (given: Given): Promise<ClientConfig> => this.loadConfig("operator", given);
    const isAbsent = (error: RolloutError): boolean =>
      error.code === "config_unreadable" && errnoOf(error) === "ENOENT" && flags["config"] === undefined;
    const config = await this.loadConfig("coordinator", flags).catch(
      undefinedWhen((error) => error.code === "config_missing_key" || isAbsent(error)),
    );
    if (config !== undefined) return { config, storage: config.storage, environment, isMade: false };
    const client = await operator(flags).catch(undefinedWhen(isAbsent));
    if (client !== undefined) return { config: client, storage: undefined, environment, isMade: false };
    const needed = { "run-id": newUlid<RunId>(systemClock, systemRandom), "coordinator-addr": "127.0.0.1:1" };
    return {
      config: await operator({ ...flags, ...needed }),
      storage: undefined,
      environment,
      isMade: true,
    };
  }
}

type Given = Parameters<BaseCommand["loadConfig"]>[1];

function undefinedWhen(isExpected: (error: RolloutError) => boolean): (error: unknown) => undefined {
  return (error) => {
    if (!(error instanceof RolloutError) || !isExpected(error)) throw error;
  };
}
