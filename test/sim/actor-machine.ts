// The machine of every actor in a simulated run: a function of a state and an event, and of nothing else, so that whoever knows the events
// knows the states. It leaves its state by chance, with all that the state has begun, and begins the same names anew: what comes too late
// for one of them would be taken for an answer to the next.
import { createHash } from "node:crypto";
import type { Ask, KeyEnd } from "../../src/worker/backends/key-asks.ts";
import type { ItemKind } from "./workload.ts";
import { kindOf } from "./workload.ts";
import { Violation } from "./world.ts";

export interface ActorEvent {
  readonly idText: string;
  readonly key: string;
  readonly payload: Uint8Array;
  readonly origin: { readonly kind: string; readonly id?: string } | undefined;
}

export interface ActorStep {
  readonly state: Uint8Array;
  readonly asks: readonly Ask[];
  readonly end?: KeyEnd;
}

interface MachineState {
  /** The version of the code that has written it. */
  readonly version: number;
  readonly events: number;
  /** Made of all its events, in order. */
  readonly digest: string;
  readonly nextTurn: number;
  /** Invocations and children, and the turn in which each was begun. */
  readonly live: Readonly<Record<string, number>>;
  readonly timers: Readonly<Record<string, number>>;
  /** A child's: the turn of its parent that has begun it. */
  readonly own: number;
  readonly hasEnded: boolean;
}

/** The content of items that actors make. */
interface Told {
  /** How many more items may come of it, one after the other. */
  readonly energy: number;
  /** The turn of the actor that has begun what it is about. */
  readonly turn: number;
  readonly from: string;
  /** Grows with what the same actor sends. */
  readonly order: readonly [events: number, at: number];
}

const BEGINNING: MachineState = {
  ...{ version: 0, events: 0, digest: "", nextTurn: 1, live: {}, timers: {}, own: 0, hasEnded: false },
};
/** Some machines have code of version 1, and get that of 2 in the course of the run. */
export const LATEST_VERSION = 2;
const ENERGY = 4;
const DEPTH_MAX = 2;
const CHILD = "part";
const DIGEST_DIGITS = 16;
const TIMER_UNIT_MS = 12;
const TTL_UNIT_MS = 20;

/** Actors of these numbers come to an end now and then; a message to one that has ended is passed over. */
function mayEnd(key: string): boolean {
  return depthOf(key) > 0 || Number(key.slice(1)) % 2 === 1;
}

function actorName(number: number): string {
  return `k${number}`;
}

/** Theirs and those of all their children. */
export function namesOfActors(count: number): string[] {
  const names = Array.from({ length: count }, (_, number) => actorName(number));
  for (let depth = 0, last = names; depth < DEPTH_MAX; depth++) {
    last = last.map((name) => `${name}/${CHILD}`);
    names.push(...last);
  }
  return names;
}

function depthOf(key: string): number {
  return key.split("/").length - 1;
}

/** Items from inside are of all kinds too. */
export function kindOfItem(idText: string, payload: Uint8Array): ItemKind {
  if (payload[0] !== 0x7b) return kindOf(payload);
  const [chance] = drawsOf(`${idText} kind`);
  return KINDS_INSIDE.find(([below]) => chance < below)?.[1] ?? "ok";
}

const KINDS_INSIDE: readonly (readonly [number, ItemKind])[] = [
  [20, "flaky"],
  [28, "bad"],
  [50, "slow"],
];

function toldOf(payload: Uint8Array): Told | undefined {
  const found = /^\{[^}]*\}/.exec(Buffer.from(payload).toString());
  return found === null ? undefined : (JSON.parse(found[0]) as Told);
}

/** Undefined without a state. */
export function versionOf(state: Uint8Array | undefined): number | undefined {
  return state && stateFrom(state).version;
}

function stateFrom(bytes: Uint8Array): MachineState {
  return JSON.parse(Buffer.from(bytes).toString()) as MachineState;
}

/** Throws a violation where the event is none for this state. `actors`: how many there are that nobody has begun. */
export function stepActor(
  before: Uint8Array | undefined,
  event: ActorEvent,
  { version, actors }: { readonly version: number; readonly actors: number },
): ActorStep {
  const state = before === undefined ? BEGINNING : stateFrom(before);
  const { key, idText, payload, origin } = event;
  if (state.version > version)
    throw new Violation(`K8: a state of ${key} of version ${state.version} is given to code of ${version}`);
  if (state.hasEnded) throw new Violation(`K12: ${key} has ended, and is given an event`);
  if (origin?.kind === "start" && state.events > 0)
    throw new Violation(`K12: ${key} is begun, and has a state of another actor`);
  const told = toldOf(payload);
  const draws = drawsOf(idText);
  const next = new Step(key, heard(state, event, told), (told?.energy ?? ENERGY) - 1);
  if (draws[0] < 120) next.leave(draws);
  else if (draws[6] < 60) next.setTimer("again", draws[4]);
  next.speak(draws, actors);
  const digest = digestOf(`${state.digest}\n${idText}\n${Buffer.from(payload).toString()}`);
  return next.step({ version, digest, ends: origin?.kind !== "start" && endsBy(key, draws) });
}

/** The state behind the end of something that it has begun. Throws a violation if it does not wait for that. */
function heard(state: MachineState, { key, origin }: ActorEvent, told: Told | undefined): MachineState {
  const { kind = "", id = "" } = origin ?? {};
  switch (kind) {
    case "start":
      return { ...state, own: told?.turn ?? 0 };
    case "timer":
      demandAwaited(key, `timer ${id}`, state.timers[id], told);
      return { ...state, timers: without(state.timers, id) };
    case "outcome":
    case "failure":
      demandAwaited(key, `${kind} of ${id}`, state.live[id], told);
      return { ...state, live: without(state.live, id) };
    default:
      return state;
  }
}

/** An end without a word of its own, as that of poison, does not say of which turn it is. */
function demandAwaited(key: string, what: string, turn: number | undefined, told: Told | undefined): void {
  if (turn === undefined || (told !== undefined && told.turn !== turn))
    throw new Violation(
      `K10: the ${what} of turn ${told?.turn} reaches ${key}, which waits for turn ${turn}`,
    );
}

function endsBy(key: string, draws: Draws): boolean {
  return mayEnd(key) && draws[13] < (depthOf(key) > 0 ? 90 : 30);
}

/** One step under way. */
class Step {
  readonly #key: string;
  readonly #before: MachineState;
  readonly #energy: number;
  readonly #asks: Ask[] = [];
  #live: Record<string, number>;
  #timers: Record<string, number>;
  #nextTurn: number;
  #said = 0;
  #draws: Draws | undefined;

  constructor(key: string, before: MachineState, energy: number) {
    this.#key = key;
    this.#before = before;
    this.#energy = energy;
    this.#live = { ...before.live };
    this.#timers = { ...before.timers };
    this.#nextTurn = before.nextTurn;
  }

  /** Out of its state and into it again: all that it has begun is left, and begun anew by chance. */
  leave(draws: Draws): void {
    for (const id of Object.keys(this.#live)) this.#asks.push({ kind: "stop", id });
    for (const id of Object.keys(this.#timers)) this.#asks.push({ kind: "cancel", id });
    [this.#live, this.#timers] = [{}, {}];
    if (draws[1] < 130) this.#begin("invocation", "work");
    if (draws[2] < 90 && depthOf(this.#key) < DEPTH_MAX) this.#begin("child", CHILD);
    if (draws[3] < 140) this.setTimer("late", draws[4]);
  }

  #begin(kind: "invocation" | "child", id: string): void {
    if (this.#energy <= 0) return;
    const turn = this.#nextTurn++;
    this.#live[id] = turn;
    this.#asks.push({ kind, id, source: id, input: this.#say(turn) });
  }

  /** Set again, it replaces the one that is armed. */
  setTimer(id: string, length: number): void {
    if (this.#energy <= 0) return;
    const turn = this.#nextTurn++;
    this.#timers[id] = turn;
    const delayMs = length * TIMER_UNIT_MS;
    this.#asks.push({
      kind: "timer",
      id,
      delayMs,
      event: this.#say(turn),
      to: undefined,
      onlyIfThere: false,
    });
  }

  speak(draws: Draws, actors: number): void {
    if (this.#energy <= 0) return;
    this.#draws = draws;
    const others = [draws[8], draws[9]].map((draw) => actorName(draw % actors)).slice(0, draws[7] % 3);
    for (const to of others) this.#send(to);
    const parent = this.#key.slice(0, Math.max(0, this.#key.lastIndexOf("/")));
    if (parent !== "" && draws[10] < 100) this.#send(parent);
    const friend = actorName(draws[9] % actors);
    if (draws[11] < 40 && friend !== this.#key) this.#sendLater(friend, draws[5]);
    if (draws[12] < 50) this.#asks.push({ kind: "action", type: "tell", params: this.#say(0) });
  }

  #send(to: string): void {
    this.#asks.push({ kind: "send", to, event: this.#say(0), onlyIfThere: mayEnd(to) });
  }

  /** Nobody is told that it was sent. */
  #sendLater(to: string, length: number): void {
    const delayMs = length * TIMER_UNIT_MS;
    const timer = {
      kind: "timer",
      id: "post",
      delayMs,
      event: this.#say(0),
      onlyIfThere: mayEnd(to),
    } as const;
    this.#asks.push({ ...timer, to });
  }

  #say(turn: number): string {
    const order = [this.#before.events, this.#said++] as const;
    const told: Told = { energy: this.#energy, turn, from: this.#key, order };
    return JSON.stringify(told);
  }

  step(done: { readonly version: number; readonly digest: string; readonly ends: boolean }): ActorStep {
    const { events, own } = this.#before;
    const { version, digest } = done;
    const [nextTurn, live, timers] = [this.#nextTurn, this.#live, this.#timers];
    const left = done.ends ? { live: {}, timers: {} } : { live, timers };
    const after: MachineState = {
      version,
      events: events + 1,
      digest,
      nextTurn,
      ...left,
      own,
      hasEnded: done.ends,
    };
    const state = Buffer.from(JSON.stringify(after));
    if (!done.ends) {
      // A child is there now.
      if (live[CHILD] !== undefined && (this.#draws?.[14] ?? 0) < 80 && this.#energy > 0)
        this.#send(`${this.#key}/${CHILD}`);
      return { state, asks: this.#asks };
    }
    const asks = this.#asks.filter(({ kind }) => kind === "send" || kind === "action");
    return { state, asks, end: this.#end() };
  }

  #end(): KeyEnd {
    const { own } = this.#before;
    const [draw, how] = drawsOf(`${this.#key} ${this.#before.digest} end`);
    const word = JSON.stringify({ energy: this.#energy, turn: own, from: this.#key, order: [0, 0] });
    const idleTtlMs = depthOf(this.#key) > 0 || draw > 200 ? undefined : draw * TTL_UNIT_MS;
    return how < 60 ? { output: "", error: word, idleTtlMs } : { output: word, error: undefined, idleTtlMs };
  }
}

function without(all: Readonly<Record<string, number>>, id: string): Record<string, number> {
  return Object.fromEntries(Object.entries(all).filter(([name]) => name !== id));
}

type Draws = readonly [
  ...[number, number, number, number, number, number, number, number],
  ...[number, number, number, number, number, number, number, number],
];

/** Numbers below 256 that the text decides. */
function drawsOf(text: string): Draws {
  const bytes = createHash("sha256").update(text).digest();
  return Array.from({ length: 16 }, (_, at) => bytes[at] ?? 0) as unknown as Draws;
}

function digestOf(text: string): string {
  return createHash("sha256").update(text).digest("hex").slice(0, DIGEST_DIGITS);
}
