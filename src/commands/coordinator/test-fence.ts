// `rollout coordinator test-fence`, hidden: for tests, and for whoever wants to see on a machine of theirs that a fenced
// coordinator ends.
import { BaseCommand } from "../../cli/base-command.ts";
import { Flags } from "../../cli/oclif.ts";
import { configFlagsFor } from "../../cli/setting-flags.ts";
import { systemClock } from "../../base/clock.ts";
import { newUlid } from "../../base/ids.ts";
import type { RunId } from "../../base/ids.ts";
import { systemRandom } from "../../base/random.ts";
import { drillFence } from "../../compose/fence-drill.ts";
import { withPorts } from "../../compose/process-ports.ts";

export class CoordinatorTestFence extends BaseCommand {
  static override readonly hidden = true;
  static override readonly summary =
    "Fence this coordinator on purpose: emit coordinator_fenced once, and end by SIGABRT.";
  static override readonly description =
    "Leads over a store in memory and lets another epoch be written to it. The lease's times are those of the " +
    "configuration; no database and no worker of it is touched, and it need not be there.";
  static override readonly examples = ["<%= config.bin %> <%= command.id %> --busy"];
  static override readonly flags = {
    ...configFlagsFor([
      "run_id",
      "liveness.heartbeat_interval",
      "liveness.worker_self_fence_timeout",
      "liveness.coordinator_failure_timeout",
      "liveness.clock_skew_budget",
      "coordinator.heartbeat_interval",
      "coordinator.failover_threshold",
      "events.hide",
      "events.buffer",
      "log.level",
      "log.format",
    ]),
    busy: Flags.boolean({
      summary: "Keep the main thread in a busy loop, so that the watchdog has to end it.",
    }),
  };

  override async run(): Promise<never> {
    const { flags } = await this.parse(CoordinatorTestFence);
    const needed = {
      "run-id": newUlid<RunId>(systemClock, systemRandom),
      "storage-path": ".",
      "listen-addr": "127.0.0.1:0",
    };
    const given = Object.fromEntries(Object.entries(flags).filter(([, value]) => value !== undefined));
    const config = await this.loadConfig(
      "coordinator",
      flags.config === undefined ? { ...needed, ...given } : flags,
    );
    const tell = (sentence: string): void => this.tell(sentence);
    return withPorts(config, await this.openLog(config.log), tell, (ports) =>
      drillFence(config, ports, flags.busy),
    );
  }
}
