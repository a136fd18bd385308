// `rollout actor watch`
import { systemClock } from "../../base/clock.ts";
import { Args } from "../../cli/oclif.ts";
import { boardText } from "../../cli/render/actors.ts";
import { configFlags } from "../../cli/setting-flags.ts";
import { untilSeenEnough } from "../../cli/signals.ts";
import { watch, WATCH_INTERVAL_MS } from "../../cli/watch.ts";
import { KeyNews } from "../../client/key-news.ts";
import type { SeenKey } from "../../client/key-news.ts";
import { jsonOf } from "../../client/operator-message.ts";
import { ActorBoard } from "../../compose/actor-board.ts";
import type { BoardSight } from "../../compose/actor-board.ts";
import { ActorCommand } from "../../compose/actor-command.ts";
import { actorObject, actorOf, actorText } from "../../compose/actor-views.ts";
import type { RolloutClient } from "../../compose/rollout-client.ts";
import { KeySchema } from "../../gen/rollout/v1/keys_pb.ts";

export class ActorWatch extends ActorCommand {
  static override readonly summary = "Follow one actor, or all actors of a type, as they move.";
  static override readonly description =
    "An actor is shown as by `rollout actor get`. For a type it shows how many actors are in each state, and why actors are parked. It is redrawn " +
    "in place after each commit, until the run is over or Ctrl-C; into a pipe, or with --json, it is printed again after each change.";
  static override readonly examples = [
    "<%= config.bin %> <%= command.id %> order/17",
    "<%= config.bin %> <%= command.id %> order",
    "<%= config.bin %> <%= command.id %> order/17 --json",
  ];
  static override readonly args = {
    actor: Args.string({
      description: "An actor, as TYPE/ID; or a TYPE, for all its actors.",
      required: true,
      ignoreStdin: true,
    }),
  };
  static override readonly flags = configFlags("operator");

  override async run(): Promise<void> {
    const { args, flags } = await this.parse(ActorWatch);
    const enough = untilSeenEnough(this.argv);
    const { actor } = args;
    await this.followRun(flags, enough, (client) =>
      actor.includes("/")
        ? this.#watchOne(client, actor, enough.signal)
        : this.#watchType(client, actor, enough.signal),
    );
  }

  async #watchOne(client: RolloutClient, actor: string, signal: AbortSignal): Promise<void> {
    const news = new KeyNews(client.keyCalls, actor, systemClock);
    await watch<SeenKey>(
      {
        look: (ended) => news.next(ended),
        textOf: ({ key }) =>
          key === undefined
            ? `actor ${actor}: not there yet; its first event makes it\n`
            : actorText(actorOf(key), this.hinted, systemClock.wallMs()),
        keyOf: ({ key }) => JSON.stringify(key === undefined ? null : actorObject(actorOf(key))),
        isOver: ({ isOver }) => isOver,
        print: ({ key }, text, isFirst) =>
          this.print(key === undefined ? [] : [actorObject(actorOf(key))], isFirst ? text : `\n${text}`),
        ...{ tell: (sentence) => this.tell(sentence), isForPrograms: this.isForPrograms },
      },
      signal,
    );
  }

  async #watchType(client: RolloutClient, type: string, signal: AbortSignal): Promise<void> {
    const news = client.news(WATCH_INTERVAL_MS);
    const board = new ActorBoard(client, type);
    await watch<BoardSight>(
      {
        look: async (ended) => board.look((await news.next(ended)).status),
        textOf: (sight) => boardText(type, sight, this.hinted),
        keyOf: ({ states, moved, parked }) => JSON.stringify([states, moved, parked]),
        isOver: ({ run: { state } }) => isOverIn(state),
        print: ({ states, moved, parked }, text, isFirst) =>
          this.print(
            [{ type, states, moved, parked: parked.map((key) => jsonOf(KeySchema, key)) }],
            isFirst ? text : `\n${text}`,
          ),
        ...{ tell: (sentence) => this.tell(sentence), isForPrograms: this.isForPrograms },
      },
      signal,
    );
  }
}

function isOverIn(state: BoardSight["run"]["state"]): boolean {
  return state === "complete" || state === "cancelled";
}
