// `rollout actor check`
import type { ExitCode } from "../../base/error-row.ts";
import { Flags } from "../../cli/oclif.ts";
import { checkText } from "../../cli/render/actors.ts";
import { configFlags } from "../../cli/setting-flags.ts";
import { checkActors, loadCheckedTypes } from "../../compose/actor-check.ts";
import { valueText } from "../../compose/actor-views.ts";
import { listFullKeys } from "../../client/keys.ts";
import { OperatorCommand } from "../../compose/operator-command.ts";

/** Events that are tried on each actor. */
const EVENTS_MAX = 256;

export class ActorCheck extends OperatorCommand {
  static override readonly summary = "Test new code on the state of every actor, before it is used.";
  static override readonly description =
    "Restores each state with the manifest's code, migrates a state of an older version, and tries the actor's waiting events on it, in order, a failed one " +
    "included: at most 256 events, and 256 KiB. It writes nothing, and the run goes on. The code runs in this process.";
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
    const { actors, events, cut, groups, parks } = await this.withRun(
      { ...flags, plugin: undefined },
      (client) => checkActors(types, listFullKeys(client.keyCalls, { mail: EVENTS_MAX })),
    );
    const shown = groups.map((group) => ({
      ...group,
      value: group.value === "" ? "" : valueText(JSON.parse(group.value)),
    }));
    const would = shown.map(({ type, value, actors: count, parks: parking }) => ({
      ...{ type, value, actors: count, parks: parking },
    }));
    const told = { actors, fit: actors - parks.length, events, cut, groups: would, parks };
    this.print([told], checkText(shown, parks));
    return parks.length === 0 ? 0 : 1;
  }
}
