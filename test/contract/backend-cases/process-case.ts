import { fileURLToPath } from "node:url";
import { ProcessBackend } from "../../../src/worker/backends/process/process-backend.ts";
import { CHECKPOINT_LIMIT, KILL_GRACE_MS, OUTPUT_LIMIT, STATE_LIMIT } from "../../support/backend-case.ts";
import type { BackendCase } from "../../support/backend-case.ts";

const PROGRAM = fileURLToPath(new URL("./item-loop.ts", import.meta.url));

export const backendCase: BackendCase = {
  name: "process",
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
    new ProcessBackend({
      ...surroundings,
      command: [process.execPath, PROGRAM],
      cwd: directory,
      concurrency: 1,
      readyTimeoutMs: 20_000,
      killGraceMs: KILL_GRACE_MS,
      maxOutputBytes: OUTPUT_LIMIT,
      maxCheckpointBytes: CHECKPOINT_LIMIT,
      maxStateBytes: STATE_LIMIT,
    }),
  executesIn: "children",
};
