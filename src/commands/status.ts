// `rollout status`
import { EXIT } from "../base/errors.ts";
import type { ExitCode } from "../base/errors.ts";
import { BaseCommand } from "../cli/base-command.ts";
import { configFlags } from "../cli/setting-flags.ts";
import { readRunStatus } from "../client/run-status.ts";
import { openOperatorClient } from "../compose/operator-client.ts";

export class Status extends BaseCommand {
  static override readonly summary = "Show how far the run is.";
  static override readonly description =
    "Exits with 1 when the run is complete and some of its items have failed.";
  static override readonly examples = [
    "<%= config.bin %> <%= command.id %>",
    "<%= config.bin %> <%= command.id %> --json",
  ];
  static override readonly flags = configFlags("operator");

  override async run(): Promise<ExitCode> {
    const { flags } = await this.parse(Status);
    const config = await this.loadConfig("operator", flags);
    const client = await openOperatorClient(config, this.openLog(config.log));
    try {
      const status = await readRunStatus(client.transport);
      const { state, pending, running, done, failed } = status;
      const counts = `${done} done, ${failed} failed, ${running} running, ${pending} pending`;
      this.print([status], `The run is ${state}: ${counts}\n`);
      return state === "complete" && failed > 0 ? EXIT.itemsFailed : EXIT.done;
    } finally {
      client.close();
    }
  }
}
