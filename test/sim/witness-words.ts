// Attempts and results in words of violations.
import type { RunningRecord } from "../../src/coordinator/ledger/records.ts";
import { itemIdText } from "../../src/coordinator/ledger/place.ts";
import type { Result } from "../../src/gen/rollout/v1/work_pb.ts";
import { short } from "./sim-backend.ts";

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
