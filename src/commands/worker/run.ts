// `rollout worker run`
import { failure } from "../../base/errors.ts";
import { parseUlid } from "../../base/ids.ts";
import type { WorkerId } from "../../base/ids.ts";
import { BaseCommand } from "../../cli/base-command.ts";
import { Flags } from "../../cli/oclif.ts";
import { configFlags } from "../../cli/setting-flags.ts";
import { STOP_AT_END_OF_INPUT, untilToldToStop } from "../../cli/signals.ts";
import { demandFiles, filesOfWorker } from "../../compose/open-files.ts";
import { withPorts } from "../../compose/process-ports.ts";
import { runWorker } from "../../compose/worker-process.ts";

export class WorkerRun extends BaseCommand {
  static override readonly summary = "Join the run as a worker.";
  static override readonly description =
    "Stays in the foreground. Takes over an id that no live worker on this machine has, or makes one; any number of " +
    "workers start from one configuration. On another machine an enrolment bundle is enough: it says which run it is for and " +
    "where the coordinator is, unless settings do. SIGTERM and Ctrl-C make it drain within 15 s; a second signal ends it at once.";
  static override readonly examples = [
    "<%= config.bin %> <%= command.id %> --config rollout.toml",
    "<%= config.bin %> <%= command.id %> --plugin infer.toml --hot-reload --slots 4",
    {
      description: "On another machine:",
      command: "<%= config.bin %> <%= command.id %> --enrolment enrolment.pem",
    },
  ];
  static override readonly flags = {
    ...configFlags("worker"),
    [STOP_AT_END_OF_INPUT]: Flags.boolean({ hidden: true }),
    "worker-id": Flags.string({
      summary: "Be this worker, and fail if another process already is.",
      helpValue: "ULID",
    }),
  };

  override async run(): Promise<void> {
    const { flags } = await this.parse(WorkerRun);
    const config = await this.loadConfig("worker", flags);
    const workerId = this.#workerId(flags["worker-id"]);
    demandFiles(filesOfWorker(config.worker.slots));
    const tell = (sentence: string): void => this.tell(sentence);
    await withPorts(config, await this.openLog(config.log), tell, (ports) => {
      const stop = untilToldToStop(this.argv, flags[STOP_AT_END_OF_INPUT]);
      const isOfLocalRun = flags[STOP_AT_END_OF_INPUT];
      return runWorker(config, { isOfLocalRun, workerId, environment: environmentOfProcess(), stop }, ports);
    });
  }

  #workerId(text: string | undefined): WorkerId | undefined {
    if (text === undefined) return undefined;
    const workerId = parseUlid<WorkerId>(text);
    if (workerId !== undefined) return workerId;
    const allowed = "a ULID: 26 characters of 0-9 and A-Z without I, L, O and U";
    throw failure("config_invalid_value", { source: "flag --worker-id", key: "id", value: text, allowed });
  }
}

function environmentOfProcess(): Record<string, string> {
  const entries = Object.entries(process.env);
  return Object.fromEntries(entries.filter((entry): entry is [string, string] => entry[1] !== undefined));
}
