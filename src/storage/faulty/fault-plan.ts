// Which call of a store goes wrong, and how. A plan is a function of the call's number and kind, so that a script and a
// seed look the same to the store, and the same plan over the same calls does the same again.
import type { Random } from "../../base/random.ts";

export type Operation = "get" | "scan" | "commit";

export type Fault =
  /** A read throws; a commit is not executed and answers `unknown`. */
  | { readonly kind: "fail_before" }
  /** The call is executed. A commit then answers `unknown`; a read throws, as nothing else could have come of it. */
  | { readonly kind: "fail_after" }
  /** The call is executed when the time has passed. Later commits wait behind it: order holds. */
  | { readonly kind: "delay"; readonly delayMs: number };

/** `undefined`: this call goes well. `nth` counts the calls of that operation, from 1. Asked once per call, in order. */
export type FaultPlan = (operation: Operation, nth: number) => Fault | undefined;

export const noFaults: FaultPlan = () => undefined;

export interface ScriptedFault {
  readonly operation: Operation;
  readonly nth: number;
  readonly fault: Fault;
}

/** Exactly these faults. */
export function scriptedFaults(script: readonly ScriptedFault[]): FaultPlan {
  return (operation, nth) => script.find((line) => line.operation === operation && line.nth === nth)?.fault;
}

/** Probabilities for each call, in [0, 1]; their sum is at most 1. A left-out one is 0. */
export interface FaultRates {
  readonly failBefore?: number;
  readonly failAfter?: number;
  readonly delay?: number;
  /** Delays are uniform in [0, delayMaxMs). */
  readonly delayMaxMs?: number;
}

/** Faults drawn from `random`: two draws for each call, whatever comes of it, so that rates do not shift the sequence. */
export function seededFaults(random: Random, rates: FaultRates): FaultPlan {
  const { failBefore = 0, failAfter = 0, delay = 0, delayMaxMs = 0 } = rates;
  return () => {
    const [which, howLong] = [random.unit(), random.unit()];
    if (which < failBefore) return { kind: "fail_before" };
    if (which < failBefore + failAfter) return { kind: "fail_after" };
    if (which < failBefore + failAfter + delay) return { kind: "delay", delayMs: howLong * delayMaxMs };
    return undefined;
  };
}
