// A machine of a fleet: the real worker on it, whose machine is given back when its process has ended, however it has.
import { WorkerNode } from "./worker-node.ts";
import type { WorkerNodeOptions } from "./worker-node.ts";

export class FleetMachine extends WorkerNode {
  readonly #onEnded: () => void;

  constructor(options: WorkerNodeOptions, onEnded: () => void) {
    super(options, 1);
    this.#onEnded = onEnded;
  }

  /** Nobody starts it again. */
  override startSoon(): void {
    this.#onEnded();
  }
}
