// The base of commands about actors: how one is named, and the refusal of a name that the run does not have.
import { RolloutError } from "../base/errors.ts";
import { actorKey } from "../base/actor-address.ts";
import { Args } from "../cli/oclif.ts";
import type { KeySteering } from "../client/keys.ts";
import { steerKeys, unknownKey } from "./key-deeds.ts";
import { OperatorCommand } from "./operator-command.ts";
import { submittedTask } from "./operator-client.ts";
import type { RolloutClient } from "./rollout-client.ts";

export const ACTOR_ARGS = {
  actor: Args.string({
    description: "Actors, as TYPE/ID.",
    required: true,
    multiple: true,
    ignoreStdin: true,
  }),
};

type ParsedFlags = Readonly<Record<string, unknown>>;

export abstract class ActorCommand extends OperatorCommand {
  /** The key of the actor that an event is for, by the types of the plugin. Throws `usage` where the plugin has no such actor. */
  protected async keyOfReceiver(name: string, flags: ParsedFlags): Promise<string> {
    const types = await this.#typesOf(flags);
    if (types.length === 0)
      throw this.misuse("the plugin has no actors: name its manifest with --plugin FILE");
    const key = actorKey(name, types);
    if (key !== undefined) return key;
    throw this.misuse(
      `${name} is no actor: one is named TYPE/ID, and the plugin has the type ${types.join(", ")}`,
    );
  }

  /** The key of the actor that is named: its id is enough where the plugin has one type. `flags` are the parsed ones. */
  protected async keyOfActor(name: string, flags: ParsedFlags): Promise<string> {
    if (name.includes("/")) return name;
    const key = actorKey(name, await this.#typesOf(flags));
    if (key === undefined) throw unknownKey(name, "actor");
    return key;
  }

  async #typesOf(flags: ParsedFlags): Promise<readonly string[]> {
    const { plugin } = flags;
    const config = await this.loadConfig("operator", { ...flags, plugin: undefined });
    const { actorTypes = [] } = await submittedTask(typeof plugin === "string" ? plugin : undefined, config);
    return actorTypes;
  }

  /** Asks about one actor. Throws actor_unknown, and what `askRun` throws. */
  protected async askActor<Result>(
    name: string,
    flags: ParsedFlags,
    use: (client: RolloutClient, key: string) => Promise<Result>,
  ): Promise<Result> {
    const key = await this.keyOfActor(name, flags);
    try {
      return await this.askRun(flags, (client) => use(client, key));
    } catch (error) {
      throw error instanceof RolloutError && error.code === "key_unknown" ? unknownKey(key, "actor") : error;
    }
  }

  protected async steerActors(
    steering: KeySteering,
    names: readonly string[],
    flags: ParsedFlags,
  ): Promise<void> {
    const keys = await Promise.all(names.map((name) => this.keyOfActor(name, flags)));
    const steered = await this.askRun(flags, (client) => steerKeys(client, steering, keys, "actor"));
    this.print([steered.object], steered.text);
  }
}
