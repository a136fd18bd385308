import { fileURLToPath } from "node:url";
import { machineBackend } from "../../../src/worker/backends/code/code-backend.ts";
import { KILL_GRACE_MS, LIMITS } from "../../support/backend-case.ts";
import type { BackendCase } from "../../support/backend-case.ts";

export const backendCase: BackendCase = {
  name: "machine",
  can: new Set(["list", "echo", "fail", "crash", "hang", "big", "complain", "save", "meet"]),
  open: ({ directory, ...surroundings }) =>
    machineBackend({
      ...surroundings,
      module: fileURLToPath(new URL("./item-machine-program.ts", import.meta.url)),
      export: "machine",
      checkpointIntervalMs: 0,
      workingDirectory: directory,
      memoryLimitBytes: undefined,
      loadTimeoutMs: 20_000,
      abortGraceMs: KILL_GRACE_MS,
      ...LIMITS,
    }),
  savedText: (checkpoint) => {
    const { snapshot } = JSON.parse(Buffer.from(checkpoint).toString()) as {
      snapshot: { context: { saved: string } };
    };
    return snapshot.context.saved;
  },
  executesIn: "children",
};
