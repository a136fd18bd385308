// Actors as the batches of coordinators tell them, kept beside the room of keys and without any of its code: each event that is done is
// executed once more, and all that it asks for has to stand in the same batch, in order, and nothing else.
//
// Keeps true: after every batch each state is the fold of its events; each message, outcome and timer has become an item once; none is
// given out that its actor does not wait for any more; an actor has what its machine has begun, and one that has ended has nothing.
import { keyRecord, keyStateRecord } from "../../src/coordinator/keys/key-records.ts";
import type { KeyRecord } from "../../src/coordinator/keys/key-records.ts";
import { timerRecord } from "../../src/coordinator/keys/timer-record.ts";
import type { TimerRecord } from "../../src/coordinator/keys/timer-record.ts";
import type { Origin } from "../../src/coordinator/ledger/origin.ts";
import { failedRecord } from "../../src/coordinator/ledger/records.ts";
import type { FailedRecord } from "../../src/coordinator/ledger/records.ts";
import {
  FAILED_PREFIX,
  ITEMS_PREFIX,
  KEYS_PREFIX,
  STATES_PREFIX,
  TIMERS_PREFIX,
} from "../../src/storage/keys.ts";
import type { Ask, AskOf } from "../../src/worker/backends/key-asks.ts";
import type { Batch, Entry } from "../../src/storage/store.ts";
import { ActorBatch, itemOf, read, under } from "./actor-batch.ts";
import type { ActorItem } from "./actor-batch.ts";
import { LATEST_VERSION, stepActor, versionOf } from "./actor-machine.ts";
import type { ActorStep } from "./actor-machine.ts";
import { FORGETTING, LANE_MARK, ShadowActor } from "./shadow-actor.ts";
import { Violation } from "./world.ts";

interface Rules {
  /** How many actors there are that nobody has begun. */
  readonly actors: number;
  readonly skipsFailed: boolean;
  /** Names of actors: somebody has asked them to go on without what has failed. */
  readonly mayPass: ReadonlySet<string>;
}

/** How a batch came to be. */
export interface Circumstances {
  /** The clock that timers go by, as its leader has it now; undefined when that is not known. */
  readonly steadyMs: number | undefined;
  readonly isCancelled: boolean;
}

/** Times of rows are whole milliseconds. */
const ROUNDING_MS = 1;
/** In place of a number that nobody will ever ask for. */
const NO_NUMBER = -1;
/** So much of a failure is kept with the key that it parks. */
const WHY_CHARACTERS = 200;

export class ShadowActors {
  readonly #rules: Rules;
  readonly #items = new Map<string, ActorItem>();
  readonly #byId = new Map<string, ActorItem>();
  readonly #actors = new Map<string, ShadowActor>();
  /** By the path of the rows of a key. */
  readonly #texts = new Map<string, string>();
  /** The rows of timers. */
  readonly #timers = new Map<string, TimerRecord>();
  /** The highest of all items that were there before the batch, and of those of it that were asked for until now. */
  #lastSequence = -1;
  #steadyMs: number | undefined;
  #batch = new ActorBatch({ puts: [], deletes: [] });
  /** Keys with an event that is done in this batch. */
  readonly #folded = new Set<string>();
  /** Keys of actors that were not there before what is submitted in this batch. */
  #newcomers: readonly string[] = [];

  constructor(rules: Rules) {
    this.#rules = rules;
  }

  /** It is all that a store has. */
  restore(entries: readonly Entry[]): void {
    for (const entry of under(entries, ITEMS_PREFIX)) {
      const item = itemOf(entry);
      if (item === undefined) continue;
      this.#arrives(item);
      this.#lastSequence = Math.max(this.#lastSequence, item.sequence);
    }
    for (const entry of under(entries, FAILED_PREFIX)) {
      const item = this.#items.get(entry.key.slice(FAILED_PREFIX.length));
      if (item !== undefined) item.failed = read(failedRecord, entry);
    }
    this.#actors.clear();
    this.#learnTexts(entries);
    for (const entry of under(entries, KEYS_PREFIX)) {
      const record = read(keyRecord, entry);
      this.#actorOf(record.text).restore(record);
    }
    for (const entry of under(entries, STATES_PREFIX))
      this.#actorOf(this.#textOf(entry.key.slice(STATES_PREFIX.length))).state = read(
        keyStateRecord,
        entry,
      ).state;
    for (const entry of under(entries, TIMERS_PREFIX)) {
      const timer = read(timerRecord, entry);
      this.#timers.set(entry.key, timer);
      this.#actorOf(timer.key).armed.set(timer.id, { row: entry.key, timer });
    }
  }

  /** A turn of a leader. Throws a violation. */
  take(rows: Pick<Batch, "puts" | "deletes">, { steadyMs, isCancelled }: Circumstances): void {
    const batch = new ActorBatch(rows);
    this.#batch = batch;
    this.#steadyMs = steadyMs;
    this.#folded.clear();
    this.#learnTexts(rows.puts);
    for (const path of batch.gone(TIMERS_PREFIX)) this.#timers.delete(`${TIMERS_PREFIX}${path}`);
    for (const { row, timer } of batch.timers) this.#timers.set(row, timer);
    this.#fireTimers();
    const { submitted } = batch;
    this.#newcomers = submitted.map(({ key }) => key).filter((key) => !this.#isThere(key));
    for (const item of submitted) this.#arrives(item);
    for (const place of batch.gone(FAILED_PREFIX)) this.#takesBack(place);
    const gone = batch.gone(KEYS_PREFIX).map((path) => ({ text: this.#textOf(path), hasFailed: false }));
    for (const record of [...batch.keys, ...gone]) this.#skips(record);
    // A cancelled run ends whatever it has, and begins nothing more.
    if (!isCancelled) for (const place of batch.completed) this.#ends(place);
    this.#checkKept();
    if (isCancelled) return;
    const [nobodys] = batch.unexplained;
    if (nobodys !== undefined) throw new Violation(`K9: nobody has asked for ${describe(nobodys)}`);
    for (const place of batch.begun) this.#demandWanted(this.#items.get(place), "is given out");
    this.#checkStates();
    this.#checkTimers();
    this.#checkKeys();
    for (const { sequence } of submitted) this.#lastSequence = Math.max(this.#lastSequence, sequence);
  }

  /** Its failure is of no execution: its actor takes nothing more. */
  isExcused(idText: string): boolean {
    const failed = this.#byId.get(idText)?.failed;
    return failed !== undefined && (isRefusal(failed) || failed.class === "cancelled");
  }

  /** Workers with older code may not have it. */
  isChoosy(idText: string): boolean {
    const state = this.#actors.get(this.#byId.get(idText)?.key ?? "")?.state;
    return versionOf(state) === LATEST_VERSION;
  }

  // Items that come: submitted, asked for, or sent by timers, which go off before anything else happens in a turn.

  #arrives(item: ActorItem): void {
    this.#items.set(item.place, item);
    this.#byId.set(item.idText, item);
    const actor = this.#actorOf(item.key);
    if (actor.isGone && item.sequence >= actor.since) actor.isGone = false;
  }

  /** It has to be the next item of the batch. */
  #owed(key: string, payload: Uint8Array, isIt: (origin: Origin) => boolean): void {
    const item = this.#batch.unexplained.shift();
    if (
      item?.origin === undefined ||
      item.key !== key ||
      !isIt(item.origin) ||
      !same(item.payload, payload)
    ) {
      const owed = `${nameOf(key)} is to have ${Buffer.from(payload).toString()}`;
      throw new Violation(
        `K9: ${owed}, and the next item is ${item === undefined ? "none" : describe(item)}`,
      );
    }
    this.#lastSequence = Math.max(this.#lastSequence, item.sequence);
    this.#arrives(item);
  }

  #fireTimers(): void {
    for (let timer = this.#nextFired(); timer !== undefined; timer = this.#nextFired()) {
      this.#demandDue(timer);
      const { key, id, number, event, to } = timer;
      const actor = this.#actorOf(key);
      actor.armed.delete(id);
      if (to !== "") this.#owed(to, event, isMailFrom(key));
      else {
        actor.fired.set(id, number);
        this.#owed(key, event, (origin) => origin.kind === "timer" && origin.number === number);
      }
    }
    for (const actor of this.#actors.values()) {
      const { row = "", timer } = actor.armed.get(FORGETTING) ?? {};
      if (timer === undefined || this.#timers.has(row)) continue;
      this.#demandDue(timer);
      this.#stop(actor);
    }
  }

  /** The timer that the next item has come of. */
  #nextFired(): TimerRecord | undefined {
    const [item] = this.#batch.unexplained;
    if (item?.origin?.kind === "timer") {
      const { id, number } = item.origin;
      const { row = "", timer } = this.#actors.get(item.key)?.armed.get(id) ?? {};
      if (timer?.number === number && !this.#timers.has(row)) return timer;
      throw new Violation(`K11: timer ${id} of ${item.key} goes off, and is not armed`);
    }
    if (item?.origin?.kind !== "mail") return undefined;
    const sent = [...(this.#actors.get(item.origin.from)?.armed.values() ?? [])];
    return sent.find(({ timer }) => timer.to === item.key && same(timer.event, item.payload))?.timer;
  }

  #demandDue({ key, id, dueMs }: TimerRecord): void {
    const earlyMs = this.#steadyMs === undefined ? 0 : dueMs - this.#steadyMs;
    if (earlyMs > ROUNDING_MS)
      throw new Violation(`K11: timer ${id} of ${key} goes off ${earlyMs.toFixed()} ms before its time`);
  }

  // Items that end.

  #takesBack(place: string): void {
    const item = this.#items.get(place);
    if (item === undefined) return;
    item.failed = undefined;
    const isForNobody = item.origin !== undefined && !this.#actors.has(item.key);
    const actor = this.#actorOf(item.key);
    if (isForNobody && !actor.isLane) this.#stop(actor);
    if (actor.keptBy === place) actor.keptBy = undefined;
  }

  /** Its key goes on without the item that kept it, if somebody has asked for that. */
  #skips({ text, hasFailed }: Pick<KeyRecord, "text" | "hasFailed">): void {
    const actor = this.#actors.get(text);
    if (actor?.keptBy === undefined || hasFailed || !this.#mayPass(text)) return;
    const item = this.#items.get(actor.keptBy);
    if (item?.failed === undefined) return;
    // It may be that its parent leaves it in this turn: then it goes on with nobody told.
    if (item.origin?.kind === "start" && !this.#isToldOf(actor)) return;
    actor.keptBy = undefined;
    const { class: kind, message } = item.failed;
    this.#passOver(actor, item, `${kind}: ${message}`.slice(0, WHY_CHARACTERS));
  }

  /** The parent hears in this batch that the child has failed, which comes before all else that the batch has for anybody. */
  #isToldOf({ parent }: ShadowActor): boolean {
    const { unexplained } = this.#batch;
    const at = unexplained.findIndex(
      ({ key, origin }) =>
        key === parent?.key && origin?.kind === "failure" && origin.number === parent.number,
    );
    unexplained.unshift(...unexplained.splice(at, at === -1 ? 0 : 1));
    return at !== -1;
  }

  /** Its key goes on without it. A child whose start it was is over. */
  #passOver(actor: ShadowActor, { origin }: ActorItem, message: string): void {
    if (origin?.kind === "timer") return actor.hears(origin);
    if (origin?.kind !== "start" || actor.parent === undefined) return;
    this.#tellEnd(actor.parent, Buffer.from(message), "failure");
    this.#stop(actor);
  }

  /** Behind the ends of the batch: a key goes on unasked when its actor was stopped, and only then. */
  #checkKept(): void {
    const [{ keys }, gone] = [this.#batch, this.#batch.gone(KEYS_PREFIX)];
    const goOn = keys.filter(({ hasFailed }) => !hasFailed).map(({ text }) => text);
    for (const text of [...goOn, ...gone.map((path) => this.#textOf(path))])
      if (this.#actors.get(text)?.keptBy !== undefined && !this.#mayPass(text))
        throw new Violation(`K3: nobody has asked to skip what keeps ${nameOf(text)}`);
  }

  #mayPass(text: string): boolean {
    const { skipsFailed, mayPass } = this.#rules;
    const [name = ""] = text.split(LANE_MARK);
    return skipsFailed || mayPass.has(name);
  }

  #ends(place: string): void {
    const item = this.#items.get(place);
    if (item === undefined) return;
    const [done, failed] = [this.#batch.done.get(place), this.#batch.failed.get(place)];
    if (failed !== undefined) this.#fails(item, failed);
    else if (done !== undefined) this.#succeeds(item, done.output);
  }

  #succeeds(item: ActorItem, output: Uint8Array): void {
    const { key, idText, payload, origin } = item;
    if (origin?.kind === "action") return;
    if (origin?.kind === "invocation") return this.#tellEnd(invokedBy(item), output, "outcome");
    this.#demandWanted(item, "is done");
    const actor = this.#actorOf(key);
    const version = versionOf(this.#newStateOf(key)) ?? LATEST_VERSION;
    const event = { key, idText, payload, origin };
    const step = stepActor(actor.state, event, { version, actors: this.#rules.actors });
    if (origin !== undefined) actor.hears(origin);
    actor.state = step.state;
    this.#folded.add(key);
    this.#carryOut(actor, step);
  }

  #newStateOf(key: string): Uint8Array | undefined {
    for (const [path, { state }] of this.#batch.states) if (this.#textOf(path) === key) return state;
    return undefined;
  }

  #carryOut(actor: ShadowActor, { asks, end }: ActorStep): void {
    for (const { id } of of(asks, "stop")) this.#leave(actor, id);
    for (const { id } of of(asks, "cancel")) actor.disarm(id);
    for (const ask of of(asks, "timer")) this.#arm(actor, ask.id, ask);
    for (const ask of of(asks, "invocation")) this.#beginInvocation(actor, ask);
    for (const ask of of(asks, "child")) this.#beginChild(actor, ask);
    for (const { to, event, onlyIfThere } of of(asks, "send"))
      if (!onlyIfThere || this.#isThereFor(to, event))
        this.#owed(to, Buffer.from(event), isMailFrom(actor.text));
    for (const { type, params } of of(asks, "action"))
      this.#owed(`${actor.text}${LANE_MARK}do`, Buffer.from(params), (origin) => isAction(origin, type));
    if (end !== undefined) this.#finish(actor, end);
  }

  #arm(actor: ShadowActor, id: string, ask: { readonly delayMs: number; readonly event: string }): void {
    actor.disarm(id);
    const { text } = actor;
    const written = this.#batch.timers.find(({ timer }) => timer.key === text && timer.id === id);
    // Whether it is there is looked at behind the whole batch: the actor may have been stopped within it.
    if (written === undefined) return void actor.armed.set(id, { row: "", timer: notWritten(text, id) });
    const { dueMs, event } = written.timer;
    if (!same(event, Buffer.from(ask.event)))
      throw new Violation(`K9: timer ${id} of ${text} has another event`);
    if (this.#steadyMs !== undefined && dueMs > this.#steadyMs + ask.delayMs + ROUNDING_MS)
      throw new Violation(`K11: timer ${id} of ${text} is due in more than ${ask.delayMs} ms`);
    actor.armed.set(id, written);
  }

  #beginInvocation({ text, live }: ShadowActor, { id, input }: AskOf<"invocation">): void {
    const lane = this.#batch.unexplained[0]?.key ?? "";
    if (!lane.startsWith(`${text}${LANE_MARK}run/${id}/`))
      throw new Violation(`K9: ${text} begins ${id}, and the next item is of ${nameOf(lane)}`);
    live.set(id, { number: lastNumberOf(lane), isChild: false, hasEnded: false });
    this.#owed(lane, Buffer.from(input), (origin) => origin.kind === "invocation" && origin.id === id);
  }

  #beginChild({ text, live }: ShadowActor, { id, input }: AskOf<"child">): void {
    const number = this.#batch.numberOf(text, id) ?? NO_NUMBER;
    live.set(id, { number, isChild: true, hasEnded: false });
    const child = this.#actorOf(`${text}/${id}`);
    child.since = this.#lastSequence + 1;
    child.isGone = false;
    child.parent = { key: text, id, number };
    this.#owed(child.text, Buffer.from(input), ({ kind }) => kind === "start");
  }

  #finish(actor: ShadowActor, { output, error, idleTtlMs }: NonNullable<ActorStep["end"]>): void {
    this.#release(actor);
    actor.isFinal = true;
    const { parent } = actor;
    if (parent !== undefined) {
      this.#tellEnd(parent, Buffer.from(error ?? output), error === undefined ? "outcome" : "failure");
      this.#stop(actor);
    } else if (idleTtlMs !== undefined) this.#arm(actor, FORGETTING, { delayMs: idleTtlMs, event: "" });
  }

  /** The end of an invocation or a child, to whoever has begun it, if it waits still. */
  #tellEnd(
    { key, id, number }: NonNullable<ShadowActor["parent"]>,
    word: Uint8Array,
    kind: "outcome" | "failure",
  ): void {
    const begun = this.#actors.get(key)?.live.get(id);
    if (begun?.number !== number || begun.hasEnded) return;
    begun.hasEnded = true;
    this.#owed(key, word, (origin) => origin.kind === kind && origin.id === id && origin.number === number);
  }

  #fails(item: ActorItem, failed: FailedRecord): void {
    item.failed = failed;
    const actor = this.#actorOf(item.key);
    if (failed.class === "cancelled") {
      if (this.#whyUnwanted(item) === undefined)
        throw new Violation(`K10: ${describe(item)} is dropped, and its actor waits for it`);
    } else if (isRefusal(failed)) {
      if (!actor.isFinal)
        throw new Violation(`K12: ${describe(item)} is refused, and its actor is not final`);
    } else if (item.origin?.kind === "invocation")
      this.#tellEnd(invokedBy(item), Buffer.from(failed.message), "failure");
    else if (this.#rules.skipsFailed) this.#passOver(actor, item, failed.message);
    else actor.keptBy = item.place;
  }

  // Whether items are wanted.

  #demandWanted(item: ActorItem | undefined, what: string): void {
    const why = item && this.#whyUnwanted(item);
    if (item !== undefined && why !== undefined)
      throw new Violation(`K10: ${describe(item)} ${what}, and ${why}`);
  }

  #whyUnwanted(item: ActorItem): string | undefined {
    const { key, origin, sequence } = item;
    const keptBy = this.#actors.get(key)?.keptBy;
    if (keptBy !== undefined && keptBy !== item.place) return "its key is kept by one that has failed";
    if (origin?.kind === "action") return undefined;
    if (origin?.kind === "invocation") {
      const by = invokedBy(item);
      const begun = this.#actors.get(by.key)?.live.get(by.id);
      return begun?.number === by.number && !begun.hasEnded ? undefined : "its state was left";
    }
    const actor = this.#actors.get(key);
    if (sequence < (actor?.since ?? 0)) return "its actor was stopped";
    if (actor?.isFinal === true) return "its actor has ended";
    if (key.includes("/") && actor?.parent === undefined) return "its actor is not there";
    if (origin?.kind === "timer")
      return actor?.fired.get(origin.id) === origin.number ? undefined : "its timer was left";
    if (origin?.kind !== "outcome" && origin?.kind !== "failure") return undefined;
    return actor?.live.get(origin.id)?.number === origin.number ? undefined : "it comes too late";
  }

  #isThere(text: string): boolean {
    const actor = this.#actors.get(text);
    return actor !== undefined && !actor.isGone && !actor.isFinal;
  }

  /** One that came with this batch may have come before what is sent, or behind it: then nothing is sent. */
  #isThereFor(text: string, event: string): boolean {
    if (!this.#newcomers.includes(text)) return this.#isThere(text);
    const [next] = this.#batch.unexplained;
    return next?.key === text && same(next.payload, Buffer.from(event));
  }

  // The ends of actors.

  #leave({ text, live }: ShadowActor, id: string): void {
    const begun = live.get(id);
    live.delete(id);
    if (begun?.isChild !== true) return;
    const child = this.#actors.get(`${text}/${id}`);
    if (child?.parent?.key === text && child.parent.number === begun.number) this.#stop(child);
  }

  #release(actor: ShadowActor): void {
    for (const id of [...actor.live.keys()]) this.#leave(actor, id);
    actor.armed.clear();
    actor.fired.clear();
  }

  #stop(actor: ShadowActor): void {
    this.#release(actor);
    actor.since = this.#lastSequence + 1;
    [actor.isGone, actor.isFinal] = [true, false];
    [actor.parent, actor.state, actor.keptBy] = [undefined, undefined, undefined];
  }

  // The rows of the batch against all that.

  #checkStates(): void {
    const { states } = this.#batch;
    const committed = new Set(
      [...states.keys(), ...this.#batch.gone(STATES_PREFIX)].map((path) => this.#textOf(path)),
    );
    for (const [path, { state }] of states) {
      const text = this.#textOf(path);
      const expected = this.#actors.get(text)?.state;
      if (expected === undefined || !same(expected, state))
        throw new Violation(`K2: the state of ${text} is not the fold of its events`);
    }
    for (const path of this.#batch.gone(STATES_PREFIX))
      if (this.#actors.get(this.#textOf(path))?.state !== undefined)
        throw new Violation(`K2: the state of ${this.#textOf(path)} is gone, and its actor is there`);
    for (const text of this.#folded)
      if (!committed.has(text) && this.#actors.get(text)?.state !== undefined)
        throw new Violation(`K2: an event of ${text} is done, and its state is not committed`);
  }

  /** Armed is what a machine has set and not left, and nothing else. */
  #checkTimers(): void {
    const armed = new Set<string>();
    for (const actor of this.#actors.values())
      for (const [id, { row, timer }] of actor.armed) {
        armed.add(row);
        if (this.#timers.has(row)) continue;
        if (!timer.isOptional) throw new Violation(`K9: timer ${id} of ${actor.text} is gone`);
        // It went off, and nobody was there to be sent to.
        this.#demandDue(timer);
        actor.armed.delete(id);
      }
    for (const [row, { key, id }] of this.#timers)
      if (!armed.has(row)) throw new Violation(`K12: timer ${id} of ${key} has outlived its state`);
  }

  #checkKeys(): void {
    for (const record of this.#batch.keys) {
      const wrong = this.#actorOf(record.text).difference(record);
      if (wrong !== undefined)
        throw new Violation(`K12: the row of ${nameOf(record.text)} differs in ${wrong}`);
    }
    for (const path of this.#batch.gone(KEYS_PREFIX)) {
      const text = this.#textOf(path);
      if (this.#actors.get(text)?.isOver === false)
        throw new Violation(`K12: ${nameOf(text)} is forgotten, and has not ended`);
      this.#actors.delete(text);
    }
  }

  // Access.

  #actorOf(text: string): ShadowActor {
    const actor = this.#actors.get(text) ?? new ShadowActor(text);
    this.#actors.set(text, actor);
    return actor;
  }

  #learnTexts(entries: readonly Entry[]): void {
    for (const entry of under(entries, KEYS_PREFIX))
      this.#texts.set(entry.key.slice(KEYS_PREFIX.length), read(keyRecord, entry).text);
  }

  #textOf(path: string): string {
    return this.#texts.get(path) ?? path;
  }
}

function of<Kind extends Ask["kind"]>(asks: readonly Ask[], kind: Kind): AskOf<Kind>[] {
  return asks.filter((ask): ask is AskOf<Kind> => ask.kind === kind);
}

/** A failed item is passed over: its actor may set the timer anew. It has heard of no end. */
function notWritten(key: string, id: string): TimerRecord {
  const nothing = new Uint8Array();
  const sent = { event: nothing, to: "", isOptional: false };
  return { key, id, number: NO_NUMBER, dueMs: 0, ...sent, asker: nothing, index: 0, priority: 0 };
}

function invokedBy({ key: lane, origin }: ActorItem): NonNullable<ShadowActor["parent"]> {
  const [key, id] = origin?.kind === "invocation" ? [origin.key, origin.id] : ["", ""];
  return { key, id, number: lastNumberOf(lane) };
}

function lastNumberOf(lane: string): number {
  return Number(lane.slice(lane.lastIndexOf("/") + 1));
}

function isMailFrom(key: string): (origin: Origin) => boolean {
  return (origin) => origin.kind === "mail" && origin.from === key;
}

function isAction(origin: Origin, type: string): boolean {
  return origin.kind === "action" && origin.type === type;
}

function isRefusal({ message }: FailedRecord): boolean {
  return message.startsWith("actor_done");
}

function describe({ key, origin, payload }: ActorItem): string {
  return `${origin?.kind ?? "event"} ${Buffer.from(payload).toString()} of ${nameOf(key)}`;
}

function nameOf(key: string): string {
  return key.replace(LANE_MARK, "~");
}

function same(one: Uint8Array, other: Uint8Array): boolean {
  return Buffer.compare(one, other) === 0;
}
