// All actors of one type for those who stay: how many are in which state, and which moved last. Listed whole once, and after that only what has
// changed since. Keeps true: memory of a count a state and a line an actor, and none of their contexts.
import { listFullKeys, listKeys } from "../client/keys.ts";
import type { Key } from "../client/keys.ts";
import type { RunStatus } from "../client/run-status.ts";
import { readActorState } from "../runtime/actor-state.ts";
import { valueText } from "./actor-views.ts";
import type { RolloutClient } from "./rollout-client.ts";

export interface BoardLine {
  readonly value: string;
  readonly actors: number;
  readonly final: number;
}

export interface Moved {
  readonly key: string;
  readonly value: string;
  readonly events: number;
}

export interface BoardSight {
  /** The state that most are in comes first. */
  readonly states: readonly BoardLine[];
  /** Actors that have changed last while this looked, latest last. */
  readonly moved: readonly Moved[];
  readonly parked: readonly Key[];
  readonly run: RunStatus;
}

const PARKED_SHOWN = 20;
const MOVED_MAX = 8;

export class ActorBoard {
  readonly #client: RolloutClient;
  readonly #prefix: string;
  readonly #actors = new Map<string, { readonly value: string; readonly isFinal: boolean }>();
  #fromCommit = 0;
  #moved: readonly Moved[] = [];

  constructor(client: RolloutClient, type: string) {
    [this.#client, this.#prefix] = [client, `${type}/`];
  }

  /** `run` is how it is now. Rejects with the transport's rows. */
  async look(run: RunStatus): Promise<BoardSight> {
    // Actors that were retired are in no list of what has changed.
    const isShrunk = (run.keys?.total ?? 0) < this.#actors.size;
    if (isShrunk) this.#actors.clear();
    if (isShrunk) this.#fromCommit = 0;
    const isFirst = this.#fromCommit === 0;
    const moved: Moved[] = [];
    let next = this.#fromCommit;
    const wanted = {
      ...{ prefix: this.#prefix, fromCommit: this.#fromCommit },
      onCommit: (commit: number) => void (next = commit),
    };
    for await (const { key, state } of listFullKeys(this.#client.keyCalls, wanted)) {
      const actor = state && readActorState(state);
      if (actor === undefined) continue;
      const value = valueText(actor.snapshot.value);
      this.#actors.set(key, { value, isFinal: actor.snapshot.status !== "active" });
      if (!isFirst) moved.push({ key, value, events: actor.events });
    }
    this.#fromCommit = next;
    this.#moved = [...this.#moved, ...moved].slice(-MOVED_MAX);
    return { states: this.#states(), moved: this.#moved, parked: await this.#parked(run), run };
  }

  #states(): BoardLine[] {
    const lines = new Map<string, { value: string; actors: number; final: number }>();
    for (const { value, isFinal } of this.#actors.values()) {
      const line = lines.get(value) ?? { value, actors: 0, final: 0 };
      line.actors++;
      if (isFinal) line.final++;
      lines.set(value, line);
    }
    return [...lines.values()].sort(
      (one, other) => other.actors - one.actors || (one.value < other.value ? -1 : 1),
    );
  }

  async #parked(run: RunStatus): Promise<Key[]> {
    const parked: Key[] = [];
    if ((run.keys?.parked ?? 0) === 0) return parked;
    for await (const key of listKeys(this.#client.keyCalls, ["parked"], this.#prefix)) {
      parked.push(key);
      if (parked.length >= PARKED_SHOWN) break;
    }
    return parked;
  }
}
