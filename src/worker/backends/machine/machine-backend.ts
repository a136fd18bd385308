// Runs an XState machine that a JavaScript or TypeScript file exports to its final state, once for each item. Its snapshot
// is the item's checkpoint, so that another worker goes on where this one stopped.
import { ownFile } from "../../../base/own-file.ts";
import { CodeBackend } from "../code/code-backend.ts";
import type { CodeBackendOptions } from "../code/code-backend.ts";

export interface MachineBackendOptions extends Omit<CodeBackendOptions, "program" | "load"> {
  /** Absolute path of the file. */
  readonly module: string;
  /** The name of the machine. */
  readonly export: string;
  /** How often a snapshot is kept at most; 0: after each transition. */
  readonly checkpointIntervalMs: number;
}

const PROGRAM = ownFile("src/worker/backends/machine/machine-program");

export function machineBackend(options: MachineBackendOptions): CodeBackend {
  const { module, export: name, checkpointIntervalMs } = options;
  return new CodeBackend({
    ...options,
    program: PROGRAM,
    load: { module, export: name, options: { checkpointIntervalMs } },
  });
}
