// `rollout coordinator run`
import { BaseCommand } from "../../cli/base-command.ts";
import { Flags } from "../../cli/oclif.ts";
import { configFlags } from "../../cli/setting-flags.ts";
import { onHangUp, STOP_AT_END_OF_INPUT, untilToldToStop } from "../../cli/signals.ts";
import { runCoordinator } from "../../compose/coordinator-process.ts";
import { demandFiles, filesOfCoordinator } from "../../compose/open-files.ts";
import { withPorts } from "../../compose/process-ports.ts";

export class CoordinatorRun extends BaseCommand {
  static override readonly summary = "Run the coordinator: it leads the run and gives items to workers.";
  static override readonly description =
    "Stays in the foreground and writes its events to standard output, one JSON object a line. SIGTERM and Ctrl-C stop it; workers keep running and find the next coordinator over the same database. SIGHUP makes it look at " +
    "once whether its certificate's files have changed, which takes a minute without it, and take up changed fleets of its file.";
  static override readonly examples = [
    "<%= config.bin %> <%= command.id %> --config rollout.toml",
    "<%= config.bin %> <%= command.id %> --listen-addr 0.0.0.0:50051 | tee events.ndjson",
  ];
  static override readonly flags = {
    ...configFlags("coordinator"),
    [STOP_AT_END_OF_INPUT]: Flags.boolean({ hidden: true }),
  };

  override async run(): Promise<void> {
    const { flags } = await this.parse(CoordinatorRun);
    const config = await this.loadConfig("coordinator", flags);
    demandFiles(filesOfCoordinator(1));
    const tell = (sentence: string): void => this.tell(sentence);
    await withPorts(config, await this.openLog(config.log), tell, (ports) =>
      runCoordinator(config, ports, {
        isOfLocalRun: flags[STOP_AT_END_OF_INPUT],
        stop: untilToldToStop(this.argv, flags[STOP_AT_END_OF_INPUT], "reload"),
        onReload: onHangUp,
        readConfig: () => this.loadConfig("coordinator", flags),
      }),
    );
  }
}
