// One machine of durable actors: that of a type, or one that it starts within itself. Its interpreter runs in a kept scope, which does
// nothing but tell the record of the step under way.
import { isDeepStrictEqual } from "node:util";
import type { AnyMachineSnapshot, AnyStateMachine, EventObject } from "xstate";
import type { ActorSnapshot } from "../../../runtime/actor-state.ts";
import { inertScope } from "../../../runtime/transition.ts";
import type { CreateActor, InertScope } from "../../../runtime/transition.ts";
import { kindOfLogic, logicOf, machineBelow, withInertActors } from "./actor-logic.ts";
import type { StepActors, StepChild } from "./step-actors.ts";
import type { MachineFacts, StepRecord } from "./step-record.ts";

/** Transitions that one event may cause, unless the machine says otherwise. */
const MICROSTEPS_MAX = 10_000;

/** Members of XState's own actors that its types keep to themselves. */
interface OwnActor {
  id: string;
  _parent: object | undefined;
  _snapshot: unknown;
  send: (event: EventObject) => void;
}

export interface MachineOptions {
  /** As the user has written it, with all its logic. It was found fit. */
  readonly machine: AnyStateMachine;
  /** The names of logic that lead to it, from the machine of the type. */
  readonly source: string;
  /** Whether there are actors of that type. */
  readonly hasType: (type: string) => boolean;
  /** From the copy of XState that has made the machine. */
  readonly create: CreateActor;
}

export class ActorMachine implements MachineFacts {
  readonly #options: MachineOptions;
  readonly #inert: AnyStateMachine;
  readonly #scope: InertScope;
  readonly #self: OwnActor;
  readonly #below = new Map<string, ActorMachine>();
  #record: StepRecord | undefined;
  #named = 0;

  constructor(options: MachineOptions) {
    const { machine, create } = options;
    this.#options = options;
    this.#inert = withInertActors(machine);
    // Eventless transitions in a circle are an error of the event, and not a process that never answers.
    const { options: bounds } = this.#inert;
    if (bounds.maxIterations === Infinity) bounds.maxIterations = MICROSTEPS_MAX;
    const hearing = {
      onAction: (action: Parameters<StepRecord["acted"]>[0]) => this.#record?.acted(action),
      onCreated: (actor: Parameters<StepRecord["created"]>[0]) => this.#record?.created(actor),
    };
    this.#scope = inertScope(this.#inert, hearing, (made) => create(made, { input: {} }));
    this.#self = this.#scope.self as unknown as OwnActor;
    // Ids of children that have none of their own: as many as this process has made would differ at each worker.
    const system = this.#scope.system as unknown as { _bookId: () => string };
    system._bookId = () => `x:${this.#named++}`;
  }

  /** As the user has written it. */
  get machine(): AnyStateMachine {
    return this.#options.machine;
  }

  get source(): string {
    return this.#options.source;
  }

  get self(): object {
    return this.#self;
  }

  /** Ids that were made for children, by the actor whose step was the last. */
  get named(): number {
    return this.#named;
  }

  /** The machine at the end of those names; undefined when there is none. */
  at(source: string): ActorMachine | undefined {
    const names = source === "" ? [] : source.split("/");
    return names.reduce<ActorMachine | undefined>(
      (machine, name) => machine && (machine.#below.get(name) ?? machine.#makeBelow(name)),
      this,
    );
  }

  kindOf(src: string): StepChild["kind"] {
    const kind = kindOfLogic(logicOf(this.machine, src));
    if (kind === undefined) throw new TypeError(`it starts ${src}, which is neither a promise nor a machine`);
    return kind;
  }

  sourceOf(src: string): string {
    const { source } = this.#options;
    const name = writtenName(src);
    return source === "" ? name : `${source}/${name}`;
  }

  isAction(type: string, exec: unknown): boolean {
    const actions = this.machine.implementations.actions as Readonly<Record<string, unknown>>;
    return Object.hasOwn(actions, type) && actions[type] === exec;
  }

  hasType(type: string): boolean {
    return this.#options.hasType(type);
  }

  /** The state in which an actor begins, which may be one of an error. */
  begin(actors: StepActors, record: StepRecord, input: unknown): AnyMachineSnapshot {
    return this.#within(actors, record, () => {
      const snapshot: unknown = this.#inert.getInitialSnapshot(this.#scope, input);
      return snapshot as AnyMachineSnapshot;
    });
  }

  /** Throws what the machine throws. */
  next(
    actors: StepActors,
    record: StepRecord,
    from: AnyMachineSnapshot,
    event: EventObject,
  ): AnyMachineSnapshot {
    return this.#within(actors, record, () => {
      this.#self._snapshot = from;
      const after: unknown = this.#inert.transition(from, event, this.#scope);
      return after as AnyMachineSnapshot;
    });
  }

  /** `named`: ids that the actor has made before. Throws when this machine does not have the state whole. */
  restore(actors: StepActors, snapshot: ActorSnapshot, named: number): AnyMachineSnapshot {
    this.#named = named;
    const machine = this.#inert;
    const { value, historyValue = {} } = snapshot;
    // XState would take a state that has become compound for its first child.
    const resolved: unknown = machine.resolveState({ value, context: {} }).value;
    if (!isDeepStrictEqual(resolved, value))
      throw new Error(`${JSON.stringify(value)} is not a whole state of the machine`);
    for (const { id } of Object.values(historyValue).flat()) machine.getStateNodeById(id);
    // XState would look for references in all that the context leads to.
    const bare = { ...snapshot, historyValue, children: {}, context: {} };
    const restored: unknown = machine.restoreSnapshot(bare as never, this.#scope as never);
    const context = actors.revived(snapshot.context);
    return { ...(restored as AnyMachineSnapshot), context, children: actors.stubs } as AnyMachineSnapshot;
  }

  /** Forgets how many ids the actor of the last step had made. */
  reset(): void {
    this.#named = 0;
  }

  #within<Found>(actors: StepActors, record: StepRecord, step: () => Found): Found {
    const { place, parent } = actors;
    const self = this.#self;
    self.id = place.name ?? place.key;
    self._parent = parent;
    self.send = (event) => record.sent({ to: self, event });
    this.#record = record;
    try {
      return step();
    } finally {
      this.#record = undefined;
    }
  }

  #makeBelow(name: string): ActorMachine | undefined {
    const machine = machineBelow(this.machine, name);
    if (machine === undefined) return undefined;
    const source = this.sourceOf(decodeURIComponent(name));
    const made = new ActorMachine({ ...this.#options, machine, source });
    this.#below.set(name, made);
    return made;
  }
}

/** The names that lead to the machine, and the last one as the machine has it. */
export function splitSource(source: string): { readonly machine: string; readonly src: string } {
  const at = source.lastIndexOf("/");
  return { machine: source.slice(0, Math.max(at, 0)), src: decodeURIComponent(source.slice(at + 1)) };
}

/** A name of logic without a `/`. */
function writtenName(src: string): string {
  return src.replaceAll("%", "%25").replaceAll("/", "%2F");
}
