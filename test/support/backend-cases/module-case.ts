import { fileURLToPath } from "node:url";
import { moduleBackend } from "../../../src/worker/backends/module/module-backend.ts";
import { CHECKPOINT_LIMIT, KILL_GRACE_MS, OUTPUT_LIMIT } from "../backend-case.ts";
import type { BackendCase } from "../backend-case.ts";

export const backendCase: BackendCase = {
  name: "module",
  can: new Set(["list", "echo", "fail", "crash", "hang", "big", "garble", "complain", "save", "meet"]),
  open: ({ directory, ...surroundings }) =>
    moduleBackend({
      ...surroundings,
      module: fileURLToPath(new URL("../item-module-program.ts", import.meta.url)),
      export: "execute",
      parameters: {},
      workingDirectory: directory,
      memoryLimitBytes: undefined,
      loadTimeoutMs: 20_000,
      abortGraceMs: KILL_GRACE_MS,
      maxOutputBytes: OUTPUT_LIMIT,
      maxCheckpointBytes: CHECKPOINT_LIMIT,
    }),
  savedText: (checkpoint) => JSON.parse(Buffer.from(checkpoint).toString()) as string,
  executesIn: "children",
};
