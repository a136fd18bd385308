import { fileURLToPath } from "node:url";
import { moduleBackend } from "../../../src/worker/backends/code/code-backend.ts";
import { CHECKPOINT_LIMIT, KILL_GRACE_MS, OUTPUT_LIMIT, STATE_LIMIT } from "../../support/backend-case.ts";
import type { BackendCase } from "../../support/backend-case.ts";

export const backendCase: BackendCase = {
  name: "module",
  can: new Set([
    "list",
    "echo",
    "fail",
    "crash",
    "hang",
    "big",
    "garble",
    "complain",
    "save",
    "meet",
    "slot",
    "learn",
  ]),
  open: ({ directory, ...surroundings }) =>
    moduleBackend({
      ...surroundings,
      module: fileURLToPath(new URL("./item-module-program.ts", import.meta.url)),
      export: "execute",
      parameters: {},
      workingDirectory: directory,
      memoryLimitBytes: undefined,
      loadTimeoutMs: 20_000,
      abortGraceMs: KILL_GRACE_MS,
      maxOutputBytes: OUTPUT_LIMIT,
      maxCheckpointBytes: CHECKPOINT_LIMIT,
      maxStateBytes: STATE_LIMIT,
    }),
  savedText: (checkpoint) => JSON.parse(Buffer.from(checkpoint).toString()) as string,
  executesIn: "children",
};
