// The most that one step of a durable actor may ask for. The coordinator refuses what is more, and so would fail the event: here it is refused
// with words for the one who has written the machine.
import type { Ask } from "../key-asks.ts";

export const STEP_LIMITS = Object.freeze({
  /** Events that one step may send. */
  sends: 256,
  /** All that one step asks for, beside its state. */
  bytes: 1_024 * 1_024,
  /** Timers that an actor has. */
  timers: 64,
  /** Live invocations and children of an actor. */
  children: 64,
});

/** Throws a RangeError when it is more than a step may ask for. */
export function demandWithinLimits(asks: readonly Ask[]): void {
  const count = (kind: Ask["kind"]): number => asks.filter((ask) => ask.kind === kind).length;
  const [sends, timers] = [count("send"), count("timer")];
  const bytes = asks.reduce((sum, ask) => sum + sizeOf(ask), 0);
  if (sends > STEP_LIMITS.sends)
    throw new RangeError(`it sends ${sends} events at once; ${STEP_LIMITS.sends} are allowed`);
  if (timers > STEP_LIMITS.timers)
    throw new RangeError(`it sets ${timers} timers; an actor has at most ${STEP_LIMITS.timers}`);
  if (bytes > STEP_LIMITS.bytes)
    throw new RangeError(`it asks for ${bytes} bytes beside its state; ${STEP_LIMITS.bytes} are allowed`);
}

function sizeOf(ask: Ask): number {
  switch (ask.kind) {
    case "stop":
    case "cancel":
      return Buffer.byteLength(ask.id);
    case "timer":
      return Buffer.byteLength(ask.id + ask.event + (ask.to ?? ""));
    case "invocation":
    case "child":
      return Buffer.byteLength(ask.id + ask.source + ask.input);
    case "send":
      return Buffer.byteLength(ask.to + ask.event);
    case "action":
      return Buffer.byteLength(ask.type + ask.params);
  }
}
