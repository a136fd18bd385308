// Attempts and results of a simulated run by their names: to know them again, and for a person.
import { itemIdText } from "../../src/coordinator/ledger/place.ts";
import type { RunningRecord } from "../../src/coordinator/ledger/records.ts";
import type { Result } from "../../src/gen/rollout/v1/work_pb.ts";
import { short } from "./sim-backend.ts";

/** An attempt, named as far as its identity goes across losses of power. */
export function attemptName(item: string, attempt: number, worker: string): string {
  return `${item}#${attempt}@${worker}`;
}

export function describe(running: RunningRecord | undefined): string {
  return running === undefined ? "nobody's" : `with ${running.worker} as #${running.attempt}`;
}

export function nameOf({ attempt }: Result): string {
  return `${short(itemIdText(attempt?.itemId ?? new Uint8Array()))}#${attempt?.attempt}`;
}

export function resultName(result: Result): string {
  const { attempt, incarnation, outcome } = result;
  return [
    itemIdText(attempt?.itemId ?? new Uint8Array()),
    attempt?.attempt,
    Buffer.from(incarnation).toString("hex"),
    outcome,
  ].join();
}
