// `rollout fleet logs`
import { parseUlid } from "../../base/ids.ts";
import { printable } from "../../base/safe-text.ts";
import { Args } from "../../cli/oclif.ts";
import { configFlags } from "../../cli/setting-flags.ts";
import { allocationLog } from "../../client/fleets.ts";
import { OperatorCommand } from "../../compose/operator-command.ts";

export class FleetLogs extends OperatorCommand {
  static override readonly summary = "Show the last words of a worker that a fleet has started.";
  static override readonly description =
    "Those of one that has failed are kept; the provider is asked for the others. 16 KiB at most.";
  static override readonly examples = ["<%= config.bin %> <%= command.id %> 01JZ8Q6T0C5V9W3R7X2Y4B6D8F"];
  static override readonly args = {
    allocation: Args.string({
      description: "An allocation, as `rollout fleet list --all` shows it.",
      required: true,
      ignoreStdin: true,
    }),
  };
  static override readonly flags = configFlags("operator");

  override async run(): Promise<void> {
    const { args, flags } = await this.parse(FleetLogs);
    const id = parseUlid(args.allocation.toUpperCase()) ?? args.allocation;
    const { allocation, log } = await this.askRun(flags, (client) => allocationLog(client.fleetCalls, id));
    const lines = (log ?? "").split("\n").map(printable);
    const none = `It has left no words: \`${this.hinted("fleet", "list", "--all")}\` shows what became of it.`;
    const text = `${log === undefined ? none : lines.join("\n").trimEnd()}\n`;
    this.print([{ allocation: allocation.allocation, fleet: allocation.fleet, log: log ?? null }], text);
  }
}
