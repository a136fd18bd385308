// The record of one step: what the interpreter wants of its scope, in order, and the asks that come of it. An ask that the
// step takes back is none at all.
import type { EventObject } from "xstate";
import { isEvent } from "../../../base/actor-address.ts";
import type { CreatedActor, ScopeAction } from "../../../runtime/transition.ts";
import type { Ask, AskOf } from "../key-asks.ts";
import { Reference } from "./actor-reference.ts";
import type { StepActors, StepChild } from "./step-actors.ts";
import { demandWithinLimits, STEP_LIMITS } from "./step-limits.ts";

/** An action that a step asks for, as it is put by. */
export interface GivenAction {
  /** The names of logic that lead to its machine; absent for that of the type. */
  readonly source?: string;
  readonly params?: unknown;
  readonly context?: unknown;
  readonly event?: EventObject;
}

/** The facts of the machine that a record needs. */
export interface MachineFacts {
  /** The names of logic that lead to it. */
  readonly source: string;
  /** The kind of the logic of that name. Throws a TypeError when an actor cannot have it as a child. */
  kindOf(src: string): StepChild["kind"];
  /** The names of logic that lead to that of this name, from the type's machine. */
  sourceOf(src: string): string;
  /** Whether it is the implementation of the action of that name. */
  isAction(type: string, exec: unknown): boolean;
  /** Whether there are actors of that type. */
  hasType(type: string): boolean;
}

/** The rest of it is known when the step is over. */
type Entry =
  | { readonly kind: "created" | "left"; readonly child: StepChild }
  | { readonly kind: "sent"; readonly params: SendParams }
  | AskOf<"timer" | "cancel" | "action">;

interface SendParams {
  /** XState puts the reference in place of an id when the child is there. */
  readonly to: unknown;
  readonly event: EventObject;
  readonly id?: unknown;
  readonly delay?: number | undefined;
}

/** The rest ends with its actor. */
const ENDS_WITH: ReadonlySet<Ask["kind"]> = new Set(["send", "action"]);
const NOT_SHARED = "actors share nothing; give it references, and send events";

export class StepRecord {
  readonly #actors: StepActors;
  readonly #machine: MachineFacts;
  /** Begins the ids of timers that have none. */
  readonly #idPrefix: string;
  readonly #entries: Entry[] = [];
  #ids = 0;

  constructor(actors: StepActors, machine: MachineFacts, idPrefix: string) {
    this.#actors = actors;
    this.#machine = machine;
    this.#idPrefix = idPrefix;
  }

  /** The interpreter has made an actor, for a child or for one of a child's. */
  created(ref: CreatedActor): void {
    const actors = this.#actors;
    if (ref._parent !== actors.self) return;
    const { id, src, _syncSnapshot: isWatched = false, options } = ref;
    if (typeof src !== "string")
      throw new TypeError("it spawns an actor without a name: name it among the actors of setup()");
    if (id === "" || id.includes("/") || id.includes("\0"))
      throw new TypeError(`it starts ${src} as ${JSON.stringify(id)}: an id is not empty and has no /`);
    if (options.systemId !== undefined || isWatched)
      throw new TypeError(`it starts ${src} with ${isWatched ? "syncSnapshot" : "systemId"}: ${NOT_SHARED}`);
    ref.send = (event) => this.sent({ to: ref, event });
    const replaced = actors.live(id);
    if (replaced !== undefined) this.#leave(replaced);
    const input = { value: options.input };
    const kind = this.#machine.kindOf(src);
    const child: StepChild = { id, src, kind, ref, input, hasEnded: false, isLeft: false };
    actors.add(child);
    this.#entries.push({ kind: "created", child });
  }

  /** The interpreter wants an action to be carried out. */
  acted({ type, params, exec, info }: ScopeAction): void {
    switch (type) {
      case "xstate.sendTo":
        return this.sent(params as SendParams);
      case "xstate.raise": {
        const { id, delay, event } = params as SendParams;
        // One without a delay is taken within the step.
        return delay === undefined ? undefined : void this.#entries.push(this.#timer(id, delay, event));
      }
      case "xstate.cancel":
        return void this.#entries.push({
          kind: "cancel",
          id: String((params as { sendId: unknown }).sendId),
        });
      case "xstate.stopChild":
        return this.#stopped(params);
      case "xstate.spawnChild":
        return demandSpawned(params as { readonly actorRef?: object; readonly src: unknown });
      case "xstate.emit":
      case "xstate.log":
        return;
      default:
        return this.#act(type, params, info, exec);
    }
  }

  sent(params: SendParams): void {
    this.#entries.push({ kind: "sent", params });
  }

  /** `isOver`: the actor is final after the step. Throws when it asks for more than a step may. */
  asks(isOver: boolean): Ask[] {
    const asks = this.#entries.flatMap((entry) => this.#askOf(entry));
    const standing = withoutCancelled(asks).filter(({ kind }) => !isOver || ENDS_WITH.has(kind));
    demandWithinLimits(standing);
    if (this.#actors.allLive().length > STEP_LIMITS.children)
      throw new RangeError(`it has more than ${STEP_LIMITS.children} live invocations and children`);
    return standing;
  }

  #stopped(ref: unknown): void {
    // XState stops a child once more that was left before, and one that was never there.
    if (ref === undefined || (ref instanceof Reference && ref.isGone)) return;
    const child = this.#actors.childOf(ref);
    if (child === undefined) throw new TypeError("it stops an actor that is not its child");
    this.#leave(child);
  }

  #leave(child: StepChild): void {
    if (child.isLeft) return;
    child.isLeft = true;
    this.#entries.push({ kind: "left", child });
  }

  #act(type: string, params: unknown, { context, event }: ScopeAction["info"], exec: unknown): void {
    if (!this.#machine.isAction(type, exec))
      throw new TypeError(`it has action ${type} without a name: name it among the actions of setup()`);
    // A function that takes nothing is given nothing.
    const takes = (exec as { readonly length: number }).length > 0;
    const { source } = this.#machine;
    const given = { ...(source !== "" && { source }), ...(takes && { params, context, event }) };
    const written = this.#actors.written(given, `action ${type}`);
    this.#entries.push({ kind: "action", type, params: JSON.stringify(written) });
  }

  #askOf(entry: Entry): readonly Ask[] {
    switch (entry.kind) {
      case "created":
        return entry.child.isLeft ? [] : [this.#start(entry.child)];
      case "left": {
        const { id, input, hasEnded } = entry.child;
        return input === undefined && !hasEnded ? [{ kind: "stop", id }] : [];
      }
      case "sent":
        return this.#askOfSend(entry.params);
      case "timer":
      case "cancel":
      case "action":
        return [entry];
    }
  }

  #start({ id, src, kind, input }: StepChild): Ask {
    const source = this.#machine.sourceOf(src);
    const written = this.#actors.written(input?.value ?? null, `the input of ${id}`);
    const text = input?.value === undefined ? "" : JSON.stringify(written);
    return { kind: kind === "promise" ? "invocation" : "child", id, source, input: text };
  }

  #askOfSend({ to: target, event, id, delay }: SendParams): readonly Ask[] {
    const to = this.#actors.addressOf(target);
    if (to === undefined) throw new TypeError(`it sends ${event.type} to what is no reference to an actor`);
    const child = this.#actors.childOf(target);
    // A child that has ended, or is left by this step, takes nothing; an invocation never does.
    const isDeaf = child !== undefined && (child.isLeft || child.hasEnded || child.kind === "promise");
    if (isDeaf || (target instanceof Reference && target.isGone)) return [];
    const type = to.slice(0, to.indexOf("/"));
    if (!this.#machine.hasType(type))
      throw new TypeError(`it sends ${event.type} to ${to}, and there are no actors ${type}`);
    const own = to === this.#actors.place.key ? undefined : to;
    if (delay !== undefined) return [this.#timer(id, delay, event, own)];
    return [{ kind: "send", to, event: this.#textOf(event), onlyIfThere: this.#isWithin(to) }];
  }

  #timer(id: unknown, delay: number, event: EventObject, to?: string): AskOf<"timer"> {
    if (!Number.isFinite(delay)) throw new RangeError(`the delay of ${event.type} is ${delay}`);
    // XState's types say so; a machine in JavaScript may say something else.
    if (id !== undefined && typeof id !== "string")
      throw new TypeError(`the id of the delayed ${event.type} is a ${typeof id}, and not a text`);
    const delayMs = Math.max(0, Math.ceil(delay));
    const isAfter = to === undefined && event.type.startsWith(AFTER);
    const text = isAfter ? JSON.stringify(event) : this.#textOf(event);
    const named = id ?? `${this.#idPrefix}${this.#ids++}`;
    const onlyIfThere = to !== undefined && this.#isWithin(to);
    return { kind: "timer", id: named, delayMs, event: text, to, onlyIfThere };
  }

  /** Whether it is within the same actor, as a parent or a child is: those are there before they can be sent to, or are over. */
  #isWithin(to: string): boolean {
    const { root } = this.#actors.place;
    return to === root || to.startsWith(`${root}/`) || to.split("/").length > 2;
  }

  #textOf(event: EventObject): string {
    const { type } = event;
    if (!isEvent(event))
      throw new TypeError(`it sends ${JSON.stringify(type)}: such events come from XState alone`);
    return JSON.stringify(this.#actors.written(event, `event ${type}`));
  }
}

/** Begins the events by which the interpreter leaves a state after a time. */
export const AFTER = "xstate.after.";

function demandSpawned({ actorRef, src }: { readonly actorRef?: object; readonly src: unknown }): void {
  if (actorRef === undefined) throw new TypeError(`it spawns ${String(src)}, which is not implemented`);
}

/** A timer that is cancelled in the same step, or set again, was never set. */
function withoutCancelled(asks: readonly Ask[]): Ask[] {
  const met = new Set<string>();
  const standing = asks.toReversed().filter((ask) => {
    if (ask.kind !== "timer" && ask.kind !== "cancel") return true;
    const isLast = !met.has(ask.id);
    met.add(ask.id);
    return isLast || ask.kind === "cancel";
  });
  return standing.toReversed();
}
