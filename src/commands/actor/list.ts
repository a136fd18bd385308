// `rollout actor list`
import { Flags } from "../../cli/oclif.ts";
import { actorPlace } from "../../base/actor-address.ts";
import { actorsText } from "../../cli/render/actors.ts";
import type { ActorLine } from "../../cli/render/actors.ts";
import { configFlags } from "../../cli/setting-flags.ts";
import { listFullKeys, listKeys } from "../../client/keys.ts";
import { actorObject, actorsAmong, isIn, valueText } from "../../compose/actor-views.ts";
import type { ActorView } from "../../compose/actor-views.ts";
import type { ActorState } from "../../runtime/actor-state.ts";
import { OperatorCommand } from "../../compose/operator-command.ts";

export class ActorList extends OperatorCommand {
  static override readonly summary = "Show the actors of the run, and the state that each is in.";
  static override readonly description =
    "One actor a line: its tags, the number of events that it has handled, the number that wait, and why it is parked. --json adds its context.";
  static override readonly examples = [
    "<%= config.bin %> <%= command.id %>",
    "<%= config.bin %> <%= command.id %> --value paid",
    "<%= config.bin %> <%= command.id %> --parked --json",
  ];
  static override readonly flags = {
    ...configFlags("operator"),
    value: Flags.string({
      summary: "Only actors in this state; `playing` includes `playing.fast`.",
      helpValue: "STATE",
    }),
    type: Flags.string({ summary: "Only actors of this type.", helpValue: "TYPE" }),
    parked: Flags.boolean({
      default: false,
      summary:
        "Only what is parked, so that nothing of it starts: actors, and named actions of actors that may be gone.",
    }),
  };

  override async run(): Promise<void> {
    const { flags } = await this.parse(ActorList);
    const { value, type, parked } = flags;
    const wanted = type === undefined ? {} : { prefix: `${type}/` };
    const isWanted = ({ key, actor }: ActorView<ActorState>): boolean =>
      (type === undefined || actor.type === type) &&
      (!parked || key.parkedBy !== undefined) &&
      (value === undefined || isIn(valueText(actor.snapshot.value), value));
    const actors = await this.askRun(flags, async (client) => {
      const found: ActorView[] = [];
      for await (const view of actorsAmong(listFullKeys(client.keyCalls, wanted)))
        if (isWanted(view)) found.push(view);
      if (!parked || value !== undefined) return found;
      const seen = new Set(found.map(({ key }) => key.key));
      return [...found, ...(await parkedBeside(client.keyCalls, wanted.prefix, seen))];
    });
    const isSome = parked || value !== undefined || type !== undefined;
    this.print(actors.map(objectOf), actorsText(actors.map(lineOf), isSome, this.hinted));
  }
}

/** Parked ones of which no list of states tells: actors without one, and named actions, of which the actor may be gone. */
async function parkedBeside(
  calls: Parameters<typeof listKeys>[0],
  prefix: string | undefined,
  seen: ReadonlySet<string>,
): Promise<ActorView[]> {
  const found: ActorView[] = [];
  for await (const key of listKeys(calls, ["parked"], prefix))
    if (actorPlace(key.key) !== undefined && (key.ofActions || !seen.has(key.key)))
      found.push({ key: { ...key, state: undefined }, actor: undefined });
  return found;
}

function objectOf(view: ActorView): object {
  return { ...actorObject(view), ...(view.key.ofActions && { of_actions: true }) };
}

function lineOf({ key, actor }: ActorView): ActorLine {
  const { tags = [], events = 0, snapshot = { status: "-", value: "-" } } = actor ?? {};
  return {
    ...{ key: key.ofActions ? `${key.key} (actions)` : key.key, value: valueText(snapshot.value) },
    ...{ status: snapshot.status, tags, events, pending: key.items },
    why: key.error?.message ?? key.parkedBy ?? "",
  };
}
