// `rollout worker drain`
import { EXIT } from "../../base/error-table.ts";
import { failure } from "../../base/errors.ts";
import type { ExitCode } from "../../base/error-table.ts";
import type { WorkerId } from "../../base/ids.ts";
import { parseUlid } from "../../base/ids.ts";
import { Args, Flags } from "../../cli/oclif.ts";
import { configFlags } from "../../cli/setting-flags.ts";
import { OperatorCommand } from "../../compose/operator-command.ts";
import type { RolloutClient } from "../../compose/rollout-client.ts";

interface Drained {
  readonly workerId: WorkerId;
  readonly state: "draining" | "gone" | "failed";
}

export class WorkerDrain extends OperatorCommand {
  static override readonly summary = "Have workers leave in good order.";
  static override readonly description =
    "A worker that drains hands back what it has not started, finishes what it can before its deadline, hands back the rest, " +
    "delivers its results and ends. Nothing of that counts as a failure of an item. With --wait the command ends when they have left.";
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
    wait: Flags.boolean({ summary: "Until they have left." }),
  };

  override async run(): Promise<ExitCode> {
    const { args, flags } = await this.parse(WorkerDrain);
    const workerIds = args.worker.map((word) => this.#workerId(word));
    const drained = await this.askRun(flags, async (client) => {
      // All are known before the first is asked to leave.
      for (const workerId of workerIds) await client.worker(workerId);
      for (const workerId of workerIds) await client.drainWorker(workerId);
      return Promise.all(workerIds.map((workerId) => outcomeOf(client, workerId, flags.wait)));
    });
    const objects = drained.map(({ workerId, state }) => ({ worker_id: workerId, state }));
    this.print(objects, drained.map((each) => `${each.workerId} ${WORDS[each.state]}\n`).join(""));
    return EXIT.done;
  }

  #workerId(text: string): WorkerId {
    const workerId = parseUlid<WorkerId>(text.toUpperCase());
    if (workerId !== undefined) return workerId;
    const detail = `${text} is no worker's id: \`${this.hinted("worker", "list")}\` shows them`;
    throw failure("usage", { detail, command: this.fullName() });
  }
}

const WORDS: Readonly<Record<Drained["state"], string>> = {
  draining: "is leaving",
  gone: "has left",
  failed: "was lost on its way: what it had is given to others",
};

async function outcomeOf(client: RolloutClient, workerId: WorkerId, wait: boolean): Promise<Drained> {
  if (wait) return { workerId, state: await client.untilWorkerGone(workerId) };
  const { state } = await client.worker(workerId);
  return { workerId, state: state === "gone" ? "gone" : "draining" };
}
