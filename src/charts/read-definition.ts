// From a machine's definition as JSON, as a program that is not ours tells it, to the model. The definition is taken apart first and only
// what a chart has is built anew, within bounds; then XState itself makes a machine of it, which says what targets and initials mean.
//
// Keeps true: nothing in a definition is run, and one that is hostile costs no more than its bounds.
import { createMachine } from "xstate";
import type { AnyStateMachine } from "xstate";
import { describeError } from "../base/errors.ts";
import type { ChartModel } from "./model.ts";
import { MAX_DEPTH, MAX_STATES, readMachine, UnreadableMachine } from "./read-machine.ts";

export interface ReadDefinition {
  readonly model: ChartModel;
  /** The program has left out what is nested deeper than it tells. */
  readonly isCut: boolean;
}

type JsonObject = Readonly<Record<string, unknown>>;

/** A name of a state, an event or an action. */
const NAME_CHARACTERS_MAX = 200;
/** All paths together: states with long names that are nested deep would otherwise be many times their definition. */
const PATH_CHARACTERS_MAX = 1_000_000;
const TEXT_CHARACTERS_MAX = 2_000;
const TRANSITIONS_MAX = 20_000;
const KINDS: readonly unknown[] = ["atomic", "compound", "parallel", "final", "history"];
/** Marks of `safe-stable-stringify`, which writes definitions for `@statelyai/inspect`, for what is deeper than its limit. */
const CUT: readonly unknown[] = ["[Object]", "[Array]", "[Circular]"];
/** Names that would be no names of entries in objects of XState's. */
const IMPOSSIBLE: readonly string[] = ["__proto__"];

/** Whether it tells of states, events or anything else of a machine; other actors are told as `{"id": …}`. */
export function isMachineDefinition(text: string): boolean {
  return !/^\{"id":"(?:[^"\\]|\\.)*"\}$/.test(text);
}

/** Throws UnreadableMachine; the message says why in words for a person. */
export function readDefinition(text: string): ReadDefinition {
  let definition: unknown;
  try {
    definition = JSON.parse(text);
  } catch {
    throw new UnreadableMachine("it is no JSON");
  }
  const reader = new DefinitionReader();
  const config = reader.state(definition, [], 0);
  const id = nameIn(definition, "id") ?? "(machine)";
  const version = nameIn(definition, "version");
  let machine: AnyStateMachine;
  try {
    machine = createMachine({ ...config, id, ...(version !== undefined && { version }) });
  } catch (error) {
    throw new UnreadableMachine(describeError(error).slice(0, TEXT_CHARACTERS_MAX));
  }
  return { model: readMachine(machine), isCut: reader.isCut };
}

/** Builds the part of a definition anew that a chart has; counts what it has built. */
class DefinitionReader {
  isCut = false;
  #states = 0;
  #transitions = 0;
  #pathCharacters = 0;

  state(value: unknown, path: readonly string[], pathCharacters: number): JsonObject {
    if (CUT.includes(value)) {
      this.isCut = true;
      return {};
    }
    const where = path.length === 0 ? "it" : `its state ${path.join(".")}`;
    if (!isObject(value)) throw new UnreadableMachine(`${where} is no object`);
    this.#count(path, pathCharacters);
    const { type, initial, history, target, on, always, after, onDone, invoke, entry, exit, tags } = value;
    const description = textOf(value["description"]);
    const kind = KINDS.includes(type) ? type : undefined;
    const within = (found: unknown): unknown => this.#oneOrMany(found, pathCharacters);
    return {
      ...(kind !== undefined && { type: kind }),
      ...(description !== undefined && { description }),
      ...(initial !== undefined && { initial: this.#initial(initial, pathCharacters) }),
      ...(history !== undefined && { history: history === "deep" ? "deep" : "shallow" }),
      ...(typeof target === "string" && { target: named(target) }),
      ...(on !== undefined && { on: this.#byName(on, within) }),
      ...(always !== undefined && { always: within(always) }),
      ...(after !== undefined && { after: this.#byName(after, within) }),
      ...(onDone !== undefined && { onDone: within(onDone) }),
      ...(invoke !== undefined && { invoke: this.#list(invoke).map((one) => this.#invoke(one, within)) }),
      ...(entry !== undefined && { entry: this.#actions(entry) }),
      ...(exit !== undefined && { exit: this.#actions(exit) }),
      ...(tags !== undefined && { tags: this.#list(tags).flatMap((tag) => textOf(tag) ?? []) }),
      ...this.#inner(value["states"], path, pathCharacters),
    };
  }

  #count(path: readonly string[], pathCharacters: number): void {
    if (++this.#states > MAX_STATES) throw new UnreadableMachine(`it has more than ${MAX_STATES} states`);
    if (path.length > MAX_DEPTH)
      throw new UnreadableMachine(`its states are nested more than ${MAX_DEPTH} deep`);
    this.#pathCharacters += pathCharacters;
    if (this.#pathCharacters > PATH_CHARACTERS_MAX)
      throw new UnreadableMachine("the paths of its states are too long");
  }

  #inner(states: unknown, path: readonly string[], pathCharacters: number): JsonObject {
    if (states === undefined || (isObject(states) && Object.keys(states).length === 0)) return {};
    const inner = this.#byName(states, (state, key) =>
      this.state(state, [...path, key], pathCharacters + key.length + 1),
    );
    return Object.keys(inner).length === 0 ? {} : { states: inner };
  }

  #byName(found: unknown, build: (value: unknown, key: string) => unknown): JsonObject {
    if (CUT.includes(found)) this.isCut = true;
    if (!isObject(found)) return {};
    return Object.fromEntries(
      Object.entries(found).map(([key, value]) => [named(key), build(value, key)] as const),
    );
  }

  #initial(initial: unknown, pathCharacters: number): unknown {
    if (!isObject(initial)) return textOf(initial);
    return this.#transition(initial, pathCharacters);
  }

  #oneOrMany(found: unknown, pathCharacters: number): unknown {
    return this.#list(found).map((one) => this.#transition(one, pathCharacters));
  }

  #transition(found: unknown, pathCharacters: number): JsonObject {
    if (++this.#transitions > TRANSITIONS_MAX)
      throw new UnreadableMachine(`it has more than ${TRANSITIONS_MAX} transitions`);
    this.#pathCharacters += pathCharacters;
    if (this.#pathCharacters > PATH_CHARACTERS_MAX)
      throw new UnreadableMachine("the paths of its transitions are too long");
    if (CUT.includes(found)) {
      this.isCut = true;
      return {};
    }
    if (typeof found === "string") return { target: named(found) };
    if (!isObject(found)) return {};
    const { target, guard, actions, reenter } = found;
    const description = textOf(found["description"]);
    const targets = target === undefined ? [] : this.#list(target).flatMap((one) => textOf(one) ?? []);
    return {
      ...(targets.length > 0 && { target: targets.map(named) }),
      ...(guard !== undefined && guard !== null && { guard: reference(guard) }),
      ...(actions !== undefined && { actions: this.#actions(actions) }),
      ...(reenter === true && { reenter }),
      ...(description !== undefined && { description }),
    };
  }

  #invoke(found: unknown, within: (value: unknown) => unknown): JsonObject {
    const { id, src, onDone, onError, onSnapshot } = isObject(found) ? found : {};
    return {
      src: typeof src === "string" ? named(src) : (nameIn(src, "type") ?? nameIn(src, "id") ?? "inline"),
      ...(typeof id === "string" && { id: named(id) }),
      ...(onDone !== undefined && { onDone: within(onDone) }),
      ...(onError !== undefined && { onError: within(onError) }),
      ...(onSnapshot !== undefined && { onSnapshot: within(onSnapshot) }),
    };
  }

  #actions(found: unknown): unknown[] {
    return this.#list(found).map(reference);
  }

  #list(found: unknown): readonly unknown[] {
    if (CUT.includes(found)) {
      this.isCut = true;
      return [];
    }
    return Array.isArray(found) ? found : [found];
  }
}

/** A guard, an action: by its name alone. */
function reference(found: unknown): JsonObject {
  return { type: typeof found === "string" ? named(found) : (nameIn(found, "type") ?? "inline") };
}

function nameIn(found: unknown, field: string): string | undefined {
  const value = isObject(found) ? found[field] : undefined;
  return typeof value === "string" && value !== "" ? named(value) : undefined;
}

function named(name: string): string {
  if (IMPOSSIBLE.includes(name)) throw new UnreadableMachine(`it calls something ${name}`);
  if (name.length > NAME_CHARACTERS_MAX)
    throw new UnreadableMachine(
      `a name in it is longer than ${NAME_CHARACTERS_MAX} characters: ${name.slice(0, 40)}…`,
    );
  return name;
}

function textOf(value: unknown): string | undefined {
  return typeof value === "string" ? value.slice(0, TEXT_CHARACTERS_MAX) : undefined;
}

function isObject(value: unknown): value is JsonObject {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}
