// `rollout actor skip`
import { Args, Flags } from "../../cli/oclif.ts";
import { configFlags } from "../../cli/setting-flags.ts";
import { ActorCommand } from "../../compose/actor-command.ts";
import { parkedKeys, steerKeys } from "../../compose/key-deeds.ts";

export class ActorSkip extends ActorCommand {
  static override readonly summary = "Continue parked actors without the event that has failed.";
  static override readonly description =
    "The event stays failed, and has changed nothing. If `rollout retry` runs it later, it goes before all that wait then.";
  static override readonly examples = [
    "<%= config.bin %> <%= command.id %> order/17",
    "<%= config.bin %> <%= command.id %> --all --type order",
  ];
  static override readonly args = {
    actor: Args.string({ description: "Actors, as TYPE/ID.", multiple: true, ignoreStdin: true }),
  };
  static override readonly flags = {
    ...configFlags("operator"),
    all: Flags.boolean({ default: false, summary: "All actors that a failed event has parked." }),
    type: Flags.string({ summary: "With --all: only those of this type.", helpValue: "TYPE" }),
  };

  override async run(): Promise<void> {
    const { args, flags } = await this.parse(ActorSkip);
    const { all, type } = flags;
    const names = args.actor ?? [];
    if (names.length > 0 === all) throw this.misuse("name actors, or say --all");
    if (type !== undefined && !all) throw this.misuse("--type goes with --all");
    if (!all) return this.steerActors("skip", names, flags);
    const { object, text } = await this.askRun(flags, async (client) => {
      const parked = await parkedKeys(client, "failed", type === undefined ? "" : `${type}/`);
      return steerKeys(client, "skip", parked, "actor");
    });
    this.print([object], text);
  }
}
