// `rollout logs`
import { Args, Flags } from "../cli/oclif.ts";
import { valueOf } from "../cli/results/format.ts";
import { configFlags } from "../cli/setting-flags.ts";
import { isUnknownItem } from "../client/items.ts";
import type { Item } from "../client/items.ts";
import { findWorker } from "../client/workers.ts";
import { OperatorCommand } from "../compose/operator-command.ts";

export class Logs extends OperatorCommand {
  static override readonly summary = "Print what an attempt of an item wrote to standard error.";
  static override readonly description =
    "The last 64 KiB, byte for byte (on a terminal without control characters), of the last attempt that wrote something, or of --attempt; the logs of the last 16 attempts are kept. An item is named by its 64 digits, by the first of them, or by the id that it has in the input.";
  static override readonly examples = [
    "<%= config.bin %> <%= command.id %> 3f9a1c",
    "<%= config.bin %> <%= command.id %> prompt-17 --attempt 2",
  ];
  static override readonly args = {
    item: Args.string({ description: "The item.", required: true, ignoreStdin: true }),
  };
  static override readonly flags = {
    ...configFlags("operator"),
    attempt: Flags.integer({ summary: "Of this attempt; the first is 1.", min: 1, helpValue: "N" }),
  };

  override async run(): Promise<void> {
    const { args, flags } = await this.parse(Logs);
    const wanted = flags.attempt ?? 0;
    const { item, attempt, log } = await this.askRun(flags, async (client) => {
      const item = await client.item(args.item).catch(async (error: unknown) => {
        const workers = isUnknownItem(error) ? await client.workers() : [];
        const worker = findWorker(workers, args.item);
        if (worker === undefined) throw error;
        const line = this.hinted("explain", worker.workerId);
        throw this.misuse(
          `${worker.workerId} is a worker, and logs are of items: \`${line}\` says what it has`,
        );
      });
      return { item, ...(await client.log(item.item, wanted)) };
    });
    const withLogs = item.attempts.filter(({ logBytes }) => logBytes > 0).map((ended) => ended.attempt);
    const value = valueOf(log);
    const object = {
      item: item.item,
      attempt: log.length === 0 ? null : attempt,
      ...(value.kind === "binary"
        ? { log_base64: value.base64 }
        : { log: Buffer.from(log).toString("utf8") }),
      attempts_with_logs: withLogs,
    };
    this.print([object], log);
    if (log.length === 0) this.tell(nothingSentence(item, wanted, withLogs));
  }
}

function nothingSentence({ attempt }: Item, wanted: number, withLogs: readonly number[]): string {
  if (attempt === 0) return "The item was never given to a worker: there is nothing to show.";
  const others = withLogs.filter((number) => number !== wanted);
  const elsewhere = others.length === 0 ? "" : ` Attempt ${others.join(", ")} left one.`;
  if (wanted === 0) return "No attempt that has ended left a log.";
  if (wanted > attempt) return `There was no attempt ${wanted}: the last is ${attempt}.${elsewhere}`;
  return `Attempt ${wanted} left no log, or it is not kept any more.${elsewhere}`;
}
