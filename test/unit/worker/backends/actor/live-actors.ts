// An actor of XState's own that lives in memory with all that it starts, on a clock that stands still, and its promises until they are settled.
import { createActor } from "xstate";
import type { AnyActorRef, AnyMachineSnapshot, AnyStateMachine } from "xstate";
import type { ChartWorld } from "./generated-chart.ts";

interface LiveTimer extends Scheduled {
  readonly fire: () => void;
  readonly dueMs: number;
  readonly number: number;
}

/** As XState's own system has it. */
interface Scheduled {
  readonly id: string;
  readonly source: Inner;
  readonly target: Inner;
}

/** Members that XState's types keep to themselves. */
interface Inner {
  readonly id: string;
  readonly _parent?: Inner;
  readonly _processingStatus: number;
}

const NOT_STARTED = 0;
const RUNNING = 1;

export class LiveActors implements ChartWorld {
  readonly acted = new Map<string, unknown[]>();
  readonly #promises = new Map<AnyActorRef, PromiseWithResolvers<unknown>>();
  readonly #timers = new Map<number, LiveTimer>();
  #root: AnyActorRef | undefined;
  #nowMs = 0;
  #numbers = 0;
  readonly #made = new Set<Inner>();
  /** Children that were made by the step under way, by the actor. */
  readonly #fresh = new Map<object, Set<Inner>>();
  /** Children that were sent to by an actor's step, by the actor. */
  readonly #told = new Map<object, Set<unknown>>();
  #races = 0;

  start(machine: AnyStateMachine, key: string, first: { readonly type: string }): void {
    const clock = {
      setTimeout: (fire: () => void, delayMs: number) => {
        const { target, source, id } = lastSet(root);
        const isDouble = [...this.#timers.values()].some((one) => one.source === source && one.id === id);
        if (isDouble) this.#races++;
        const dueMs = this.#nowMs + Math.max(0, delayMs);
        this.#timers.set(this.#numbers, {
          fire,
          dueMs,
          number: this.#numbers,
          target,
          source,
          id,
        });
        return this.#numbers++;
      },
      clearTimeout: (id: number) => void this.#timers.delete(id),
    };
    const input = { key, type: "chart", id: key.slice("chart/".length) };
    const root = createActor(machine, {
      id: key,
      clock,
      input,
      inspect: (event) => this.#inspect(event),
    });
    root.subscribe({ error: () => undefined });
    this.#root = root;
    // An event that it is sent before it is started comes right after its first states, as for a durable actor.
    root.send(first);
    root.start();
  }

  send(event: { readonly type: string }): void {
    this.#root?.send(event);
  }

  stop(): void {
    this.#root?.stop();
  }

  get root(): AnyActorRef {
    if (this.#root === undefined) throw new Error("it has not been started");
    return this.#root;
  }

  get nextMs(): number | undefined {
    return this.#next()?.dueMs;
  }

  advance(): void {
    const next = this.#next();
    if (next === undefined) return;
    this.#nowMs = next.dueMs;
    this.#timers.delete(next.number);
    next.fire();
  }

  get invocations(): string[] {
    return [...this.#promises.keys()].map(inner).filter(isHeard).map(pathOf).sort();
  }

  async settle(name: string, kind: "outcome" | "failure", payload: string): Promise<void> {
    const found = [...this.#promises].find(([one]) => isHeard(inner(one)) && pathOf(inner(one)) === name);
    if (found === undefined) throw new Error(`there is no promise ${name}`);
    const [actor, promise] = found;
    this.#promises.delete(actor);
    if (kind === "outcome") promise.resolve(JSON.parse(payload));
    else promise.reject(new Error(payload));
    for (let tick = 0; tick < 10; tick++) await Promise.resolve();
  }

  begun(promise: AnyActorRef): Promise<unknown> {
    const settled = Promise.withResolvers<unknown>();
    this.#promises.set(promise, settled);
    return settled.promise;
  }

  notified(actor: AnyActorRef, params: unknown): void {
    const path = pathOf(inner(actor));
    this.acted.set(path, [...(this.acted.get(path) ?? []), params]);
  }

  /**
   * A child was told something by the very step that has stopped it, or a state was entered twice without being left, so that a timer or a
   * child of it is there twice: a durable actor has one of each id.
   */
  get isRaced(): boolean {
    const running = [...this.#made].filter((actor) => actor._processingStatus === RUNNING);
    return this.#races > 0 || new Set(running.map(pathOf)).size < running.length;
  }

  /** All machines that are there, by their keys. */
  machines(): [key: string, snapshot: AnyMachineSnapshot][] {
    return machinesBelow(this.root);
  }

  #next(): LiveTimer | undefined {
    const standing = [...this.#timers.values()].filter(({ target }) => isHeard(target));
    return standing.sort((a, b) => a.dueMs - b.dueMs || a.number - b.number)[0];
  }

  #make(actor: Inner): void {
    this.#made.add(actor);
    const { _parent: parent } = actor;
    if (parent !== undefined) this.#fresh.set(parent, (this.#fresh.get(parent) ?? new Set()).add(actor));
  }

  #inspect(inspected: {
    readonly type: string;
    readonly actorRef: object;
    readonly action?: { readonly type: string; readonly params: unknown };
  }): void {
    const { type, actorRef, action } = inspected;
    if (type === "@xstate.actor") this.#make(actorRef as Inner);
    if (type === "@xstate.snapshot") {
      this.#told.delete(actorRef);
      this.#fresh.delete(actorRef);
    }
    const told = this.#told.get(actorRef) ?? new Set();
    this.#told.set(actorRef, told);
    if (action?.type === "xstate.sendTo") told.add((action.params as { readonly to: unknown }).to);
    if (action?.type !== "xstate.stopChild") return;
    if (told.has(action.params)) this.#races++;
    // It has begun all the same, which XState lets it do when its parent begins.
    const child = action.params as Inner | undefined;
    const isFresh = child !== undefined && this.#fresh.get(actorRef)?.has(child) === true;
    if (isFresh && child._processingStatus !== NOT_STARTED) this.#races++;
  }
}

function machinesBelow(actor: AnyActorRef): [key: string, snapshot: AnyMachineSnapshot][] {
  const snapshot = actor.getSnapshot() as AnyMachineSnapshot;
  if (!("value" in snapshot)) return [];
  const children = Object.values(snapshot.children as Readonly<Record<string, AnyActorRef>>);
  const below = children.flatMap((child) =>
    inner(child)._processingStatus === RUNNING ? machinesBelow(child) : [],
  );
  return [[pathOf(inner(actor)), snapshot], ...below];
}

/** The timer that was set last. */
function lastSet(root: AnyActorRef): Scheduled {
  const { _scheduledEvents: scheduled } = (root.system as unknown as System)._snapshot;
  const last = Object.values(scheduled).at(-1);
  if (last === undefined) throw new Error("no timer was set");
  return last;
}

interface System {
  readonly _snapshot: {
    readonly _scheduledEvents: Readonly<Record<string, Scheduled>>;
  };
}

function inner(actor: AnyActorRef): Inner {
  return actor as unknown as Inner;
}

/** Whether anything comes of it: what was started by an actor that has thrown runs on in XState. */
function isHeard({ _processingStatus: status, _parent: parent }: Inner): boolean {
  return status === RUNNING && (parent === undefined || isHeard(parent));
}

function pathOf({ id, _parent: parent }: Inner): string {
  return parent === undefined ? id : `${pathOf(parent)}/${id}`;
}
