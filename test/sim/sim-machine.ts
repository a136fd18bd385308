// A machine as the provider of a simulated fleet has it in its books, and the node of the cluster that it is.
import type { SimProcess } from "./process.ts";

/** The worker's machine, as far as its provider has a hand in it. */
export interface MachineNode {
  /** Its worker's, while it lives. */
  readonly process: SimProcess | undefined;
  start(): void;
  kill(): void;
  /** A notice: it drains within so long. */
  preempt(leadMs: number): void;
}

export interface SimMachine {
  readonly id: string;
  /** Another run's. */
  readonly isForeign: boolean;
  state: "queued" | "running" | "ended";
  readonly sinceMs: number;
  /** It was told to end. */
  isStopped: boolean;
  isTaken: boolean;
  node: MachineNode | undefined;
}
