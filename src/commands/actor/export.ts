// `rollout actor export`
import { Flags } from "../../cli/oclif.ts";
import { configFlags } from "../../cli/setting-flags.ts";
import { ActorCommand } from "../../compose/actor-command.ts";
import { exportedActors } from "../../compose/exported-actors.ts";

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
      const wanted = type === undefined ? "" : `${type}/`;
      for await (const objects of exportedActors(client, wanted)) {
        this.print(objects, objects.map((object) => `${JSON.stringify(object)}\n`).join(""));
        actors += objects.length;
      }
      return actors;
    });
    if (count === 0) this.tell("The run has no such actors.");
  }
}
