// Actors as they have to be, told from nothing but the results that were recorded: each message arrives once and in order, each timer goes
// off once and never early, each end of an invocation or a child reaches the state that waits for it, and nothing reaches a state that has
// left what it is of. Payloads are tokens, each another one, so that one which comes twice, or to the wrong actor, is seen.
import assert from "node:assert/strict";
import type { Asks } from "../../../../src/coordinator/ledger/asks.ts";
import type { Origin } from "../../../../src/coordinator/ledger/origin.ts";

interface Armed {
  readonly token: string;
  readonly dueMs: number;
  readonly to: string;
}

interface Started {
  readonly token: string;
  readonly isChild: boolean;
}

interface Shadow {
  /** Tokens of mail that are to come, by sender, in order. */
  readonly mail: Map<string, string[]>;
  readonly timers: Map<string, Armed>;
  readonly live: Map<string, Started>;
  /** The input that it begins with, if another actor has started it; undefined once it has begun. */
  start: string | undefined;
  parent: string | undefined;
  /** Tokens that its state has folded. */
  readonly folded: string[];
  isFinal: boolean;
}

/** An event that was recorded. Times are those of the clock that timers go by. */
export interface RecordedEvent {
  readonly key: string;
  readonly origin: Origin | undefined;
  readonly payload: string;
  readonly asks: Asks;
  readonly nowMs: number;
}

export class ShadowActors {
  readonly #actors = new Map<string, Shadow>();
  /** Messages of timers to others that are on their way: sender and token. */
  readonly #underway = new Map<string, string>();
  /** Actions that are to run, by actor, in order. */
  readonly #actions = new Map<string, string[]>();
  /** Inputs of invocations that were left: nothing of them may be recorded. */
  readonly #left = new Set<string>();
  /** Invocations that have ended: their input's token, and what their actor has to hear. */
  readonly #ends = new Map<string, string>();
  events = 0;

  #of(key: string): Shadow {
    const known = this.#actors.get(key);
    if (known !== undefined) return known;
    const parts = { mail: new Map<string, string[]>(), timers: new Map(), live: new Map(), folded: [] };
    const made: Shadow = { ...parts, start: undefined, parent: undefined, isFinal: false };
    this.#actors.set(key, made);
    return made;
  }

  folded(key: string): readonly string[] {
    return this.#actors.get(key)?.folded ?? [];
  }

  has(key: string): boolean {
    const actor = this.#actors.get(key);
    return actor !== undefined && !actor.isFinal;
  }

  timersOf(key: string): string[] {
    return [...(this.#actors.get(key)?.timers.keys() ?? [])];
  }

  liveOf(key: string): string[] {
    return [...(this.#actors.get(key)?.live.keys() ?? [])];
  }

  get armed(): number {
    return [...this.#actors.values()].reduce((sum, { timers }) => sum + timers.size, 0);
  }

  /** An item from outside was taken: the actor is there from then on. */
  submitted(key: string): void {
    this.#of(key);
  }

  /** The success of an invocation or an action was recorded, or the failure of an invocation. */
  laneEnded(origin: Origin, payload: string, end: string): void {
    if (origin.kind === "action") {
      const [next, ...rest] = this.#actions.get(origin.key) ?? [];
      assert.equal(payload, next, `actions of ${origin.key} run once and in order`);
      this.#actions.set(origin.key, rest);
      return;
    }
    assert(origin.kind === "invocation");
    assert(!this.#left.has(payload), `an invocation that ${origin.key} has left is not recorded`);
    assert.equal(
      this.#actors.get(origin.key)?.live.get(origin.id)?.token,
      payload,
      "it is the one that is waited for",
    );
    assert(!this.#ends.has(payload), "an invocation ends once");
    this.#ends.set(payload, end);
  }

  recorded({ key, origin, payload, asks, nowMs }: RecordedEvent): void {
    this.events++;
    const actor = this.#of(key);
    assert(!actor.isFinal, `${key} is final, and takes no event`);
    this.#hear(key, actor, { origin, payload, nowMs });
    actor.folded.push(payload);
    this.#leave(key, actor, asks.stopped);
    for (const id of asks.cancelled) actor.timers.delete(id);
    for (const { id, delayMs, event, to } of asks.timers)
      actor.timers.set(id, { token: textOf(event), dueMs: nowMs + delayMs, to: to === key ? "" : to });
    for (const { id, input } of asks.invocations)
      actor.live.set(id, { token: textOf(input), isChild: false });
    for (const { id, input } of asks.children) {
      const child = `${key}/${id}`;
      actor.live.set(id, { token: textOf(input), isChild: true });
      this.#actors.delete(child);
      Object.assign(this.#of(child), { start: textOf(input), parent: key });
    }
    for (const { to, event, isOptional } of asks.sends)
      if (!isOptional || this.has(to)) push(this.#of(to).mail, key, textOf(event));
    for (const { params } of asks.actions) push(this.#actions, key, textOf(params));
    if (asks.final !== undefined) this.#finish(key, actor, textOf(asks.final.output));
  }

  #hear(
    key: string,
    actor: Shadow,
    { origin, payload, nowMs }: Pick<RecordedEvent, "origin" | "payload" | "nowMs">,
  ): void {
    if (actor.start !== undefined) {
      assert.equal(origin?.kind, "start", `${key} begins with its input`);
      assert.equal(payload, actor.start, "and with the input of now");
      actor.start = undefined;
      return;
    }
    switch (origin?.kind) {
      case undefined:
        return;
      case "mail": {
        if (this.#underway.get(payload) === `${origin.from}>${key}`)
          return void this.#underway.delete(payload);
        if (this.#timerOf(origin.from, key, payload, nowMs)) return;
        const [next, ...rest] = actor.mail.get(origin.from) ?? [];
        assert.equal(payload, next, `${key} hears ${origin.from} once and in order`);
        actor.mail.set(origin.from, rest);
        return;
      }
      case "timer": {
        const timer = actor.timers.get(origin.id);
        assert.equal(payload, timer?.token, `${key} hears the timer ${origin.id} of now, once`);
        assert((timer?.dueMs ?? Infinity) <= nowMs, `the timer ${origin.id} of ${key} is not early`);
        actor.timers.delete(origin.id);
        return;
      }
      case "outcome":
      case "failure": {
        const live = actor.live.get(origin.id);
        assert(live !== undefined, `${key} waits for ${origin.id}`);
        assert.equal(payload, this.#ends.get(live.token), `${key} hears the end of the ${origin.id} of now`);
        actor.live.delete(origin.id);
        return;
      }
      default:
        assert.fail(`${key} is told ${origin?.kind}`);
    }
  }

  /** A message that its sender had sent late. */
  #timerOf(from: string, to: string, token: string, nowMs: number): boolean {
    for (const [id, timer] of this.#actors.get(from)?.timers ?? []) {
      if (timer.to !== to || timer.token !== token) continue;
      assert(timer.dueMs <= nowMs, "late messages are not early");
      this.#actors.get(from)?.timers.delete(id);
      return true;
    }
    return false;
  }

  /** Late messages that are due are on their way, whatever becomes of their sender. */
  passed(nowMs: number): void {
    for (const [from, { timers }] of this.#actors)
      for (const [id, { to, token, dueMs }] of timers)
        if (to !== "" && dueMs <= nowMs) {
          timers.delete(id);
          this.#underway.set(token, `${from}>${to}`);
          this.#of(to);
        }
  }

  #leave(key: string, actor: Shadow, ids: Iterable<string>): void {
    for (const id of ids) {
      const live = actor.live.get(id);
      actor.live.delete(id);
      if (live === undefined) continue;
      if (live.isChild) this.#end(`${key}/${id}`, key);
      else this.#left.add(live.token);
    }
  }

  #end(key: string, parent: string): void {
    const actor = this.#actors.get(key);
    if (actor === undefined || actor.parent !== parent) return;
    this.#leave(key, actor, [...actor.live.keys()]);
    this.#actors.delete(key);
  }

  #finish(key: string, actor: Shadow, output: string): void {
    this.#leave(key, actor, [...actor.live.keys()]);
    actor.timers.clear();
    actor.mail.clear();
    actor.isFinal = true;
    if (actor.parent === undefined) return;
    const id = key.slice(actor.parent.length + 1);
    const live = this.#actors.get(actor.parent)?.live.get(id);
    if (live !== undefined) this.#ends.set(live.token, output);
    this.#actors.delete(key);
  }

  /** At the end nothing is owed to anybody. */
  finished(): void {
    for (const [key, { mail, timers, live, start }] of this.#actors) {
      assert.deepEqual([...mail.values()].flat(), [], `${key} has all its mail`);
      assert.deepEqual([...timers.keys()], [], `${key} has heard all its timers`);
      assert.deepEqual([...live.keys()], [], `${key} has heard of all ends`);
      assert.equal(start, undefined, `${key} has begun`);
    }
    for (const actions of this.#actions.values()) assert.deepEqual(actions, [], "all actions have run");
  }
}

function textOf(bytes: Uint8Array): string {
  return Buffer.from(bytes).toString();
}

function push(lists: Map<string, string[]>, key: string, text: string): void {
  lists.set(key, [...(lists.get(key) ?? []), text]);
}
