// The interpreter without an actor: XState's own transition function wants a scope to act in, and this one acts on
// nothing. It is made once per chart and reused, which makes a transition several times cheaper than `transition()`.
import { createActor } from "xstate";
import type { AnyStateMachine, ExecutableActionObject } from "xstate";

export type InertScope = Parameters<AnyStateMachine["transition"]>[2];

/**
 * `onAction` hears every named action of a transition in order; assigns are already applied by then. `onTaken` hears
 * that the event, or an eventless transition behind it, was taken; an event that the chart ignores is not heard of.
 */
export function inertScope(
  machine: AnyStateMachine,
  onAction: (action: ExecutableActionObject) => void,
  onTaken: () => void = () => {},
): InertScope {
  const self = createActor(machine, { input: {} });
  self.system.inspect((inspected) => {
    if (inspected.type === "@xstate.microstep" && inspected._transitions.length > 0) onTaken();
  });
  return {
    self,
    id: self.id,
    sessionId: self.sessionId,
    system: self.system,
    logger: () => {},
    defer: () => {},
    emit: () => {},
    stopChild: () => {},
    actionExecutor: onAction,
  };
}
