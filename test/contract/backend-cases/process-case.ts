import { fileURLToPath } from "node:url";
import { ProcessBackend } from "../../../src/worker/backends/process/process-backend.ts";
import { EVERYTHING, KILL_GRACE_MS, LIMITS } from "../../support/backend-case.ts";
import type { BackendCase } from "../../support/backend-case.ts";

const PROGRAM = fileURLToPath(new URL("./item-loop.ts", import.meta.url));

export const backendCase: BackendCase = {
  name: "process",
  can: EVERYTHING,
  open: ({ directory, ...surroundings }) =>
    new ProcessBackend({
      ...surroundings,
      command: [process.execPath, PROGRAM],
      cwd: directory,
      concurrency: 1,
      readyTimeoutMs: 20_000,
      killGraceMs: KILL_GRACE_MS,
      ...LIMITS,
    }),
  executesIn: "children",
};
