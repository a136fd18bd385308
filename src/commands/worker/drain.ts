// `rollout worker drain`
import type { WorkerId } from "../../base/ids.ts";
import { parseUlid } from "../../base/ids.ts";
import { Args, Flags } from "../../cli/oclif.ts";
import { configFlags } from "../../cli/setting-flags.ts";
import { OperatorCommand } from "../../compose/operator-command.ts";
import { drainWorkers } from "../../compose/run-deeds.ts";

export class WorkerDrain extends OperatorCommand {
  static override readonly summary = "Drain workers: they finish or hand back their items, and leave.";
  static override readonly description =
    "A draining worker hands back the items that it has not started, finishes what it can before its deadline (15 s), abandons the rest, delivers its results and ends. None of that is charged to an item. With --wait the command ends when they have left.";
  static override readonly examples = [
    "<%= config.bin %> <%= command.id %> 01JZ8Q6T0C5V9W3R7X2Y4B6D8F",
    "<%= config.bin %> <%= command.id %> 01JZ8Q6T0C5V9W3R7X2Y4B6D8F 01JZ8Q6T0C5V9W3R7X2Y4B6D8G --wait",
  ];
  static override readonly args = {
    worker: Args.string({
      description: "Workers, by their ids as `rollout worker list` shows them.",
      required: true,
      multiple: true,
      ignoreStdin: true,
    }),
  };
  static override readonly flags = {
    ...configFlags("operator"),
    wait: Flags.boolean({ summary: "Wait until the workers have left." }),
  };

  override async run(): Promise<void> {
    const { args, flags } = await this.parse(WorkerDrain);
    const workerIds = args.worker.map((word) => this.#workerId(word));
    const drained = await this.askRun(flags, (client) => drainWorkers(client, workerIds, flags.wait));
    this.print(
      drained.map(({ object }) => object),
      drained.map(({ text }) => text).join(""),
    );
  }

  #workerId(text: string): WorkerId {
    const workerId = parseUlid<WorkerId>(text.toUpperCase());
    if (workerId !== undefined) return workerId;
    const detail = `${text} is no worker's id: \`${this.hinted("worker", "list")}\` shows them`;
    throw this.misuse(detail);
  }
}
