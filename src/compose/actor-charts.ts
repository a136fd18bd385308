// The charts of durable actors with the states that they are in: that of a type, and those of the machines that it starts within itself.
import { actorPlace } from "../base/actor-address.ts";
import type { Clock } from "../base/clock.ts";
import { failure } from "../base/errors.ts";
import type { NamedMachine } from "../charts/named-machine.ts";
import { readMachine, UnreadableMachine } from "../charts/read-machine.ts";
import { KeyNews } from "../client/key-news.ts";
import type { SeenKey } from "../client/key-news.ts";
import { readActorState } from "../runtime/actor-state.ts";
import type { ActorState } from "../runtime/actor-state.ts";
import { machineWithin } from "../worker/backends/actor/actor-logic.ts";
import { unknownKey } from "./key-deeds.ts";
import type { RolloutClient } from "./rollout-client.ts";

export interface LitChart {
  readonly machine: NamedMachine;
  /** Null while it has no state. */
  readonly value: unknown;
}

export interface LitChartsOptions {
  readonly actor: string;
  /** The machine of its type. */
  readonly type: NamedMachine;
  readonly clock: Clock;
  /** Else one is given whenever the actor is in another state, until the run is over. */
  readonly isOnce: boolean;
  readonly signal: AbortSignal;
  /** Around each reading; undefined when it is to be repeated. */
  readonly read: (reading: () => Promise<SeenKey>) => Promise<SeenKey | undefined>;
}

/** The machine of an actor in that state; undefined when its type has no such machine. Throws UnreadableMachine. */
export function machineOfActor(
  type: NamedMachine,
  { source = "" }: Pick<ActorState, "source">,
): NamedMachine | undefined {
  if (source === "") return type;
  const machine = machineWithin(type.machine, source);
  return machine && { ...type, name: `${type.name}/${source}`, machine, model: readMachine(machine) };
}

/** Rejects with actor_unknown when it is there only to be seen once, machine_unusable, and what `read` rejects with. */
export async function* litCharts(
  { keyCalls }: Pick<RolloutClient, "keyCalls">,
  { actor, type, clock, isOnce, signal, read }: LitChartsOptions,
): AsyncGenerator<LitChart> {
  const news = new KeyNews(keyCalls, actor, clock);
  const isWithin = actorPlace(actor)?.parent !== undefined;
  let given: string | undefined;
  while (!signal.aborted) {
    const seen = await read(() => news.next(signal)).catch((error: unknown) => {
      if (!signal.aborted) throw error;
    });
    if (seen === undefined) continue;
    const { key, isOver } = seen;
    if (key === undefined && isOnce) throw unknownKey(actor, "actor");
    const state = key?.state && readActorState(key.state);
    const text = JSON.stringify([state?.snapshot.value, state?.source]);
    // Its state alone says which machine an actor within another one is.
    const isNamed = state !== undefined || !isWithin;
    if (!isNamed && isOnce) throw unusable(actor, "it has no state yet that says which machine it is");
    if (isNamed && text !== given)
      yield { machine: demandMachine(actor, type, state), value: state?.snapshot.value ?? null };
    if (isNamed) given = text;
    if (isOnce || isOver) return;
  }
}

function demandMachine(actor: string, type: NamedMachine, state: ActorState | undefined): NamedMachine {
  try {
    const machine = machineOfActor(type, state ?? {});
    if (machine !== undefined) return machine;
  } catch (error) {
    if (!(error instanceof UnreadableMachine)) throw error;
    throw unusable(actor, error.message);
  }
  throw unusable(actor, `${type.name} has no machine ${state?.source ?? ""}`);
}

function unusable(actor: string, reason: string): Error {
  const advice = "name the plugin that its worker has, and see with `rollout actor get` what it is";
  return failure("machine_unusable", { file: actor, reason, advice });
}
