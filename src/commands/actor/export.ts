// `rollout actor export`
import { Flags } from "../../cli/oclif.ts";
import { configFlags } from "../../cli/setting-flags.ts";
import { listFullKeys } from "../../client/keys.ts";
import { ActorCommand } from "../../compose/actor-command.ts";
import { actorOf, exportedActor } from "../../compose/actor-views.ts";

export class ActorExport extends ActorCommand {
  static override readonly summary = "Print every actor, one a line, as JSON.";
  static override readonly description =
    "For spreadsheets, notebooks and databases: key, value, status, tags, context, output, events, pending, timers and children of each, as its last event " +
    "that succeeded has left it. The run goes on meanwhile: two lines may be of two moments. `rollout key export` has what another run can " +
    "take in.";
  static override readonly examples = [
    "<%= config.bin %> <%= command.id %> > actors.jsonl",
    "<%= config.bin %> <%= command.id %> --type order",
  ];
  static override readonly flags = {
    ...configFlags("operator"),
    type: Flags.string({ summary: "Only actors of this type.", helpValue: "TYPE" }),
  };

  override async run(): Promise<void> {
    const { flags } = await this.parse(ActorExport);
    const { type } = flags;
    const count = await this.withRun(flags, async (client) => {
      let actors = 0;
      const wanted = type === undefined ? {} : { prefix: `${type}/` };
      for await (const key of listFullKeys(client.keyCalls, wanted)) {
        const { actor } = actorOf(key);
        if (actor === undefined) continue;
        const object = exportedActor({ key, actor });
        this.print([object], `${JSON.stringify(object)}\n`);
        actors++;
      }
      return actors;
    });
    if (count === 0) this.tell("The run has no such actors.");
  }
}
