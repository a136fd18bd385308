// A ledger of actors in memory, as small as it can be: mailboxes in order, timers on a clock that stands still, invocations that wait to be
// settled. It commits what a step asks for as the coordinator does, and goes from actor to actor in the order in which XState would.
import { actorPlace } from "../../../../../src/base/actor-address.ts";
import { readActorState, writeActorState } from "../../../../../src/runtime/actor-state.ts";
import type { ActorState } from "../../../../../src/runtime/actor-state.ts";
import type { ActorSteps, Step } from "../../../../../src/worker/backends/actor/actor-step.ts";
import { readIncoming } from "../../../../../src/worker/backends/actor/incoming.ts";
import type { Ask, AskOf, ComingOrigin } from "../../../../../src/worker/backends/key-asks.ts";

interface Mail {
  readonly origin: ComingOrigin | undefined;
  readonly payload: string;
}

interface Timer {
  readonly ask: AskOf<"timer">;
  readonly dueMs: number;
  readonly number: number;
}

interface Invocation {
  readonly ask: AskOf<"invocation">;
  readonly key: string;
}

interface Row {
  state?: Uint8Array;
  mail: Mail[];
  readonly timers: Map<string, Timer>;
  readonly invocations: Map<string, Invocation>;
  readonly children: Set<string>;
  isBusy: boolean;
}

interface Delivery {
  readonly to: string;
  readonly mail: Mail;
  readonly begins: boolean;
}

/** An actor that is sent to from outside has failed: an operator would have to look at it. */
export class BrokenActor extends Error {}

export class ToyLedger {
  readonly rows = new Map<string, Row>();
  /** By the keys of actors: parameters of their named actions. */
  readonly acted = new Map<string, unknown[]>();
  /** Keys of actors whose machine has thrown: what it had done before it did so has not happened. */
  readonly thrown = new Set<string>();
  readonly #steps: ActorSteps;
  #nowMs = 0;
  #numbers = 0;
  /** Mail that was dropped because what it was of was left, and timers that were due together. */
  races = 0;

  constructor(steps: ActorSteps) {
    this.#steps = steps;
  }

  send(key: string, event: object): void {
    this.#post(key, { origin: undefined, payload: JSON.stringify(event) }, true);
    this.#drain(key);
  }

  stateOf(key: string): ActorState | undefined {
    const state = this.rows.get(key)?.state;
    return state && readActorState(state);
  }

  /** The keys of all actors that are there and not final, and of the one that was sent to from outside. */
  get keys(): string[] {
    const isThere = (key: string): boolean => {
      const { parent } = actorPlace(key) ?? {};
      return parent === undefined || this.stateOf(key)?.snapshot.status === "active";
    };
    return [...this.rows.keys()].filter(isThere).sort();
  }

  /** When the next timer is due. */
  get nextMs(): number | undefined {
    return this.#next()?.timer.dueMs;
  }

  /** Fires the next timer. */
  advance(): void {
    const next = this.#next();
    if (next === undefined) return;
    const { key, timer } = next;
    const { id, event, to, onlyIfThere } = timer.ask;
    this.#nowMs = timer.dueMs;
    this.rows.get(key)?.timers.delete(id);
    const origin: ComingOrigin = to === undefined ? { kind: "timer", id } : { kind: "mail", key };
    this.#post(to ?? key, { origin, payload: event }, !onlyIfThere);
    this.#drain(to ?? key);
  }

  /** `KEY/ID` of all that wait, in order. */
  get invocations(): string[] {
    return [...this.rows.values()]
      .flatMap(({ invocations }) => [...invocations.values()].map(({ key, ask }) => `${key}/${ask.id}`))
      .sort();
  }

  settle(name: string, kind: "outcome" | "failure", payload: string): void {
    const at = name.lastIndexOf("/");
    const [key, id] = [name.slice(0, at), name.slice(at + 1)];
    if (this.rows.get(key)?.invocations.delete(id) !== true)
      throw new Error(`there is no invocation ${name}`);
    this.#post(key, { origin: { kind, id }, payload }, false);
    this.#drain(key);
  }

  #next(): { readonly key: string; readonly timer: Timer } | undefined {
    // One that is sent to an actor that is not there, or is final, comes to nothing.
    const isHeard = ({ ask: { to } }: Timer): boolean =>
      to === undefined || this.stateOf(to)?.snapshot.status === "active";
    const all = [...this.rows].flatMap(([key, { timers }]) =>
      [...timers.values()].filter(isHeard).map((timer) => ({ key, timer })),
    );
    all.sort((a, b) => a.timer.dueMs - b.timer.dueMs || a.timer.number - b.timer.number);
    const [first, second] = all;
    if (first !== undefined && first.timer.dueMs === second?.timer.dueMs) this.races++;
    return first;
  }

  #post(key: string, mail: Mail, begins: boolean): void {
    if (!this.rows.has(key) && begins) this.rows.set(key, newRow());
    this.rows.get(key)?.mail.push(mail);
  }

  /** Takes all that waits for an actor, and after each item what that has led to elsewhere. */
  #drain(key: string): void {
    const row = this.rows.get(key);
    if (row === undefined || row.isBusy) return;
    row.isBusy = true;
    for (let mail = row.mail.shift(); mail !== undefined; mail = row.mail.shift())
      for (const { to, mail: sent, begins } of this.#take(key, row, mail)) {
        // It was stopped by what it has sent.
        if (sent.origin?.kind === "start" && this.rows.get(key) !== row) continue;
        this.#post(to, sent, begins);
        this.#drain(to);
      }
    row.isBusy = false;
  }

  /** The mail that it leads to elsewhere, in order. */
  #take(key: string, row: Row, { origin, payload }: Mail): Delivery[] {
    const place = actorPlace(key);
    const incoming = readIncoming(origin, Buffer.from(payload));
    if (place === undefined || incoming === undefined) throw new Error(`${key} is sent ${payload}`);
    let step: Step;
    try {
      step = this.#steps.step(row.state && readActorState(row.state), incoming, place);
    } catch (error) {
      throw new BrokenActor(`${key}: ${String(error)}`, { cause: error });
    }
    return this.#commit(key, row, step);
  }

  /** In the coordinator's order, but that mail is on its way for as long as it would take in XState. */
  #commit(key: string, row: Row, { state, asks, error }: Step): Delivery[] {
    const of = <Kind extends Ask["kind"]>(kind: Kind): AskOf<Kind>[] =>
      asks.filter((ask): ask is AskOf<Kind> => ask.kind === kind);
    row.state = writeActorState(state);
    if (error !== undefined) this.thrown.add(key);
    for (const { id } of of("stop")) this.#stop(key, row, id);
    for (const { id } of of("cancel")) this.#cancel(row, id);
    for (const ask of of("timer")) {
      this.#cancel(row, ask.id);
      row.timers.set(ask.id, { ask, dueMs: this.#nowMs + ask.delayMs, number: this.#numbers++ });
    }
    for (const ask of of("invocation")) row.invocations.set(ask.id, { ask, key });
    for (const { id } of of("child")) {
      if (row.children.has(id)) throw new Error(`${key} has ${id} already`);
      row.children.add(id);
    }
    for (const { params } of of("action")) {
      const done = this.acted.get(key) ?? [];
      this.acted.set(key, [...done, (JSON.parse(params) as { params: unknown }).params]);
    }
    const sent = asks.flatMap((ask): Delivery[] => {
      if (ask.kind === "child") return [startOf(key, ask)];
      if (ask.kind !== "send") return [];
      const { to, event, onlyIfThere } = ask;
      return [{ to, mail: { origin: { kind: "mail", key }, payload: event }, begins: !onlyIfThere }];
    });
    return state.snapshot.status === "active" ? sent : [...sent, ...this.#end(key, state, error)];
  }

  #end(key: string, { snapshot }: ActorState, error: string | undefined): Delivery[] {
    const row = this.rows.get(key);
    for (const id of row?.children ?? []) this.#forget(`${key}/${id}`);
    row?.timers.clear();
    row?.invocations.clear();
    if (row !== undefined) row.mail = [];
    const { parent, name = "" } = actorPlace(key) ?? {};
    if (parent !== undefined) this.rows.delete(key);
    const parentRow = parent === undefined ? undefined : this.rows.get(parent);
    if (parent === undefined || parentRow?.children.delete(name) !== true) return [];
    const { output } = snapshot;
    const payload = error ?? (output === undefined ? "" : JSON.stringify(output));
    const kind = error === undefined ? "outcome" : "failure";
    return [{ to: parent, mail: { origin: { kind, id: name }, payload }, begins: false }];
  }

  #stop(key: string, row: Row, id: string): void {
    row.invocations.delete(id);
    this.#drop(row, "end", id);
    if (row.children.delete(id)) this.#forget(`${key}/${id}`);
  }

  #cancel(row: Row, id: string): void {
    row.timers.delete(id);
    this.#drop(row, "timer", id);
  }

  /** Forgets mail of something that is left now. */
  #drop(row: Row, kind: "end" | "timer", id: string): void {
    const standing = row.mail.filter(({ origin }) => {
      if (kind === "timer") return !(origin?.kind === "timer" && origin.id === id);
      return !((origin?.kind === "outcome" || origin?.kind === "failure") && origin.id === id);
    });
    this.races += row.mail.length - standing.length;
    row.mail = standing;
  }

  #forget(key: string): void {
    for (const id of this.rows.get(key)?.children ?? []) this.#forget(`${key}/${id}`);
    const row = this.rows.get(key);
    if (row !== undefined) row.mail = [];
    this.rows.delete(key);
  }
}

function startOf(parent: string, { id, source, input }: AskOf<"child">): Delivery {
  const origin = { kind: "start" as const, source, parent };
  return { to: `${parent}/${id}`, mail: { origin, payload: input }, begins: true };
}

function newRow(): Row {
  return { mail: [], timers: new Map(), invocations: new Map(), children: new Set(), isBusy: false };
}
