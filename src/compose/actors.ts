// Actors for programs: events to them, where each of them is, was and comes to, with the types of their machines.
import type { Client } from "@connectrpc/connect";
import { systemClock } from "../base/clock.ts";
import { newUlid } from "../base/ids.ts";
import { systemRandom } from "../base/random.ts";
import { askForKey, listFullKeys, listKeyHistory } from "../client/keys.ts";
import type { NameOf, Submitted } from "../client/submit.ts";
import type { KeyService } from "../gen/rollout/v1/keys_pb.ts";
import type { OperatorService } from "../gen/rollout/v1/run_pb.ts";
import type { ActorEvent, ActorNow, AnyActorType, EventOf } from "./actor-now.ts";
import { eventOf, nowOf } from "./actor-now.ts";
import { untilActor } from "./actor-wait.ts";

/** The run, as far as actors need it. */
interface Run {
  readonly keyCalls: Client<typeof KeyService>;
  readonly calls: Client<typeof OperatorService>;
  submit(
    events: Iterable<unknown>,
    options: { readonly plugin?: string | undefined; readonly key: NameOf; readonly id: NameOf },
  ): Promise<Submitted>;
}

export interface WaitForOptions {
  /** Only a state of a later commit than this counts, as `ActorNow` has it. */
  readonly since?: number;
  /** Unless said, it waits for as long as the run goes on. */
  readonly timeoutMs?: number;
  readonly signal?: AbortSignal;
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
    for await (const key of listFullKeys(this.#run.keyCalls, { prefix: `${this.#type}/` })) {
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

  /** `TYPE/ID`. */
  get key(): string {
    return `${this.#at.type}/${this.#at.id}`;
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
    const { added } = await this.#run.submit([event], { plugin, key: () => this.key, id: () => id });
    return { known: added === 0 };
  }

  /** Undefined while it has no state, because no event of it has succeeded. Rejects with key_unknown when none was ever sent. */
  async state(): Promise<ActorNow<Type> | undefined> {
    return nowOf<Type>(await askForKey(this.#run.keyCalls, this.key, true), this.#at.type);
  }

  /**
   * Resolves with the first state that is seen for which `isThere` says true; the actor need not be there yet. States are told as they are
   * committed, and one that another follows at once may be passed over. Rejects with actor_parked when a failed event keeps it, actor_ended
   * when it is final or the run is over, actor_not_there_yet after `timeoutMs`, `interrupted` when `signal` aborts, and with what
   * `isThere` throws.
   */
  waitFor(
    isThere: (now: ActorNow<Type>) => boolean,
    { since, timeoutMs, signal }: WaitForOptions = {},
  ): Promise<ActorNow<Type>> {
    const found = (key: Parameters<typeof nowOf>[0]): ActorNow<Type> | undefined => {
      const now = nowOf<Type>(key, this.#at.type);
      return now !== undefined && isThere(now) ? now : undefined;
    };
    return untilActor(this.#run, this.key, found, {
      ...{ clock: systemClock, random: systemRandom, sinceCommit: since, timeoutMs, signal },
    });
  }

  /** Its events that have succeeded, the last one first, each with where it has left the actor. Rejects as `state` does. */
  async *history({ limit }: { readonly limit?: number } = {}): AsyncGenerator<ActorEvent<Type>> {
    for await (const result of listKeyHistory(this.#run.keyCalls, this.key, limit))
      yield eventOf<Type>(result);
  }
}
