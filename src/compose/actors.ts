// Actors for programs: events to them, and the state that each of them is in, with the types of their machines. These are read off a
// machine's own method: XState's types are none that every compiler of a program takes that imports this package.
import type { Client } from "@connectrpc/connect";
import { systemClock } from "../base/clock.ts";
import { newUlid } from "../base/ids.ts";
import { systemRandom } from "../base/random.ts";
import { askForKey, listFullKeys } from "../client/keys.ts";
import type { Key, KeyWithState } from "../client/keys.ts";
import type { NameOf, Submitted } from "../client/submit.ts";
import type { KeyService } from "../gen/rollout/v1/keys_pb.ts";
import { readActorState } from "../runtime/actor-state.ts";

/** Anything that `defineActor` of rollout/actors has made. */
export interface AnyActorType {
  readonly machine: { readonly transition: (snapshot: never, event: never, scope: never) => unknown };
}

type SnapshotOf<Type extends AnyActorType> = Type["machine"]["transition"] extends (
  snapshot: infer Snapshot,
  event: never,
  scope: never,
) => unknown
  ? Snapshot
  : never;

type TakenBy<Type extends AnyActorType> = Type["machine"]["transition"] extends (
  snapshot: never,
  event: infer Event,
  scope: never,
) => unknown
  ? Event
  : never;

/** Any event where nothing is said of the type. */
type EventOf<Type extends AnyActorType> = [TakenBy<Type>] extends [never]
  ? { readonly type: string }
  : TakenBy<Type>;

type Member<Type extends AnyActorType, Name extends string> = [SnapshotOf<Type>] extends [never]
  ? unknown
  : SnapshotOf<Type> extends { readonly [Key in Name]: infer Value }
    ? Value
    : unknown;

/** An actor as its last event that succeeded has left it. */
export interface ActorNow<Type extends AnyActorType = AnyActorType> {
  readonly id: string;
  readonly value: Member<Type, "value">;
  readonly status: "active" | "done";
  readonly tags: readonly string[];
  readonly context: Member<Type, "context">;
  /** Undefined while it is active. */
  readonly output: Member<Type, "output">;
  /** Events that it is made of. */
  readonly events: number;
  /** Events that wait, the one that executes included. */
  readonly pending: number;
  /** Undefined unless it is parked. */
  readonly parkedBy: Key["parkedBy"];
}

/** The run, as far as actors need it. */
interface Run {
  readonly keyCalls: Client<typeof KeyService>;
  submit(
    events: Iterable<unknown>,
    options: { readonly plugin?: string | undefined; readonly key: NameOf; readonly id: NameOf },
  ): Promise<Submitted>;
}

/** All actors of one type. Its methods reject as the client's do. */
export class Actors<Type extends AnyActorType = AnyActorType> {
  readonly #run: Run;
  readonly #type: string;
  readonly #plugin: string | undefined;

  /** @internal */
  constructor(run: Run, type: string, plugin: string | undefined) {
    this.#run = run;
    this.#type = type;
    this.#plugin = plugin;
  }

  /** One of them, which need not be there yet. */
  ref(id: string): ActorRef<Type> {
    return new ActorRef(this.#run, { type: this.#type, id, plugin: this.#plugin });
  }

  /** All that have a state, in no order that says anything. */
  async *list(): AsyncGenerator<ActorNow<Type>> {
    for await (const key of listFullKeys(this.#run.keyCalls)) {
      const actor = nowOf<Type>(key, this.#type);
      if (actor !== undefined) yield actor;
    }
  }
}

export class ActorRef<Type extends AnyActorType = AnyActorType> {
  readonly #run: Run;
  readonly #at: { readonly type: string; readonly id: string; readonly plugin: string | undefined };

  /** @internal */
  constructor(
    run: Run,
    at: { readonly type: string; readonly id: string; readonly plugin: string | undefined },
  ) {
    this.#run = run;
    this.#at = at;
  }

  /**
   * Resolves when the event is on the coordinator's disk: it is executed after all that wait for the actor. `known`: an event of this `id`
   * was there already, and is not executed again. Without an `id` each call sends another event.
   */
  async send(
    event: EventOf<Type>,
    { id = newUlid(systemClock, systemRandom) }: { readonly id?: string } = {},
  ): Promise<{ readonly known: boolean }> {
    const { plugin } = this.#at;
    const { added } = await this.#run.submit([event], { plugin, key: () => this.#key, id: () => id });
    return { known: added === 0 };
  }

  /** Undefined while it has no state, because no event of it has succeeded. Rejects with key_unknown when none was ever sent. */
  async state(): Promise<ActorNow<Type> | undefined> {
    return nowOf<Type>(await askForKey(this.#run.keyCalls, this.#key, true), this.#at.type);
  }

  get #key(): string {
    return `${this.#at.type}/${this.#at.id}`;
  }
}

/** Undefined for a key that is no actor of the type. The types are those that the program says that the machine has. */
function nowOf<Type extends AnyActorType>(
  { key, state, items, parkedBy }: KeyWithState,
  type: string,
): ActorNow<Type> | undefined {
  const actor = state && readActorState(state);
  if (actor?.type !== type) return undefined;
  const { tags, events, snapshot } = actor;
  const { value, status, context, output } = snapshot;
  const id = key.slice(type.length + 1);
  return { id, value, status, tags, context, output, events, pending: items, parkedBy } as ActorNow<Type>;
}
