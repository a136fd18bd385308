// `rollout coordinator step-down`
import { EXIT } from "../../base/error-row.ts";
import type { ExitCode } from "../../base/error-row.ts";
import { configFlags } from "../../cli/setting-flags.ts";
import { OperatorCommand } from "../../compose/operator-command.ts";

export class CoordinatorStepDown extends OperatorCommand {
  static override readonly summary = "Make the leader hand over to another coordinator.";
  static override readonly description =
    "For maintenance: the leader lets go of its lease, another coordinator takes over within a second, and the one that led follows it. " +
    "No worker restarts and nothing is lost. Refused where no other coordinator is there.";
  static override readonly examples = ["<%= config.bin %> <%= command.id %>"];
  static override readonly flags = configFlags("operator");

  override async run(): Promise<ExitCode> {
    const { flags } = await this.parse(CoordinatorStepDown);
    const { from, to, tookMs } = await this.askRun(flags, (client) => client.handOver());
    const took_ms = Math.round(tookMs);
    const object = {
      ...{ from: from?.address ?? null, to: to?.address ?? null },
      ...{ epoch: to?.epoch ?? null, took_ms },
    };
    this.print([object], to === undefined ? NOBODY : `${to.address} leads now, after ${took_ms} ms.\n`);
    return to === undefined ? EXIT.unreachable : EXIT.done;
  }
}

const NOBODY = "The leader has made room, and no other coordinator has come to lead.\n";
