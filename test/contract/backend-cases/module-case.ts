import { fileURLToPath } from "node:url";
import { moduleBackend } from "../../../src/worker/backends/code/code-backend.ts";
import { EVERYTHING, KILL_GRACE_MS, LIMITS } from "../../support/backend-case.ts";
import type { BackendCase } from "../../support/backend-case.ts";

export const backendCase: BackendCase = {
  name: "module",
  can: EVERYTHING,
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
      ...LIMITS,
    }),
  savedText: (checkpoint) => JSON.parse(Buffer.from(checkpoint).toString()) as string,
  executesIn: "children",
};
