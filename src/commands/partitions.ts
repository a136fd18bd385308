// `rollout partitions`
import { partitionsText } from "../cli/render/partitions.ts";
import { configFlags } from "../cli/setting-flags.ts";
import { jsonOf } from "../client/operator-message.ts";
import { OperatorCommand } from "../compose/operator-command.ts";
import { PartitionSchema } from "../gen/rollout/v1/keys_pb.ts";

export class Partitions extends OperatorCommand {
  static override readonly summary = "Show the partitions of keys, and which worker has each.";
  static override readonly description =
    "One a line: whose it is by the ring, how many keys it has, how many of them have an item that waits, and how many are parked. A " +
    "partition is where the states of its keys are kept warm; an item of a key runs wherever there is room.";
  static override readonly examples = [
    "<%= config.bin %> <%= command.id %>",
    "<%= config.bin %> <%= command.id %> --json",
  ];
  static override readonly flags = configFlags("operator");

  override async run(): Promise<void> {
    const { flags } = await this.parse(Partitions);
    const partitions = await this.askRun(flags, (client) => client.partitions());
    this.print(
      partitions.map((partition) => jsonOf(PartitionSchema, partition)),
      partitionsText(partitions, this.hinted),
    );
  }
}
