// `rollout actor check`
import type { ExitCode } from "../../base/error-row.ts";
import { Flags } from "../../cli/oclif.ts";
import { checkText } from "../../cli/render/actors.ts";
import { configFlags } from "../../cli/setting-flags.ts";
import { checkActors, loadCheckedTypes } from "../../compose/actor-check.ts";
import { valueText } from "../../compose/actor-views.ts";
import { listFullKeys } from "../../client/keys.ts";
import { OperatorCommand } from "../../compose/operator-command.ts";

export class ActorCheck extends OperatorCommand {
  static override readonly summary = "Test new code on the state of every actor, before it is used.";
  static override readonly description =
    "Restores each state with the code that the manifest names, migrates it where it is of an older version, and tries the actor's next event " +
    "on it, the one that has failed included. Nothing is written; the run goes on beside it. The code runs in this process. Exits with 1 when an " +
    "actor would park.";
  static override readonly examples = [
    "<%= config.bin %> <%= command.id %> --plugin order-2.toml",
    "<%= config.bin %> <%= command.id %> --plugin order-2.toml --json",
  ];
  static override readonly flags = {
    ...configFlags("operator"),
    plugin: Flags.string({
      required: true,
      summary: "The manifest with the new code.",
      helpValue: "FILE",
    }),
  };

  override async run(): Promise<ExitCode> {
    const { flags } = await this.parse(ActorCheck);
    const types = await loadCheckedTypes(flags.plugin);
    const { actors, groups, parks } = await this.withRun({ ...flags, plugin: undefined }, (client) =>
      checkActors(types, listFullKeys(client.keyCalls)),
    );
    const shown = groups.map((group) => ({
      ...group,
      value: group.value === "" ? "" : valueText(JSON.parse(group.value)),
    }));
    const would = shown.map(({ type, value, actors: count, parks: parking }) => ({
      ...{ type, value, actors: count, parks: parking },
    }));
    this.print([{ actors, fit: actors - parks.length, groups: would, parks }], checkText(shown, parks));
    return parks.length === 0 ? 0 : 1;
  }
}
