import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { CommandBackend } from "../../../src/worker/backends/command/command-backend.ts";
import { CHECKPOINT_LIMIT, KILL_GRACE_MS, OUTPUT_LIMIT, STATE_LIMIT } from "../../support/backend-case.ts";
import type { BackendCase } from "../../support/backend-case.ts";

const PROGRAM = fileURLToPath(new URL("./item-command.ts", import.meta.url));

export const backendCase: BackendCase = {
  name: "command",
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
    new CommandBackend({
      ...surroundings,
      command: [process.execPath, PROGRAM],
      shell: false,
      cwd: directory,
      killGraceMs: KILL_GRACE_MS,
      maxOutputBytes: OUTPUT_LIMIT,
      maxCheckpointBytes: CHECKPOINT_LIMIT,
      maxStateBytes: STATE_LIMIT,
      checkpointIntervalMs: 60_000,
      directory: join(directory, "attempts"),
    }),
  executesIn: "children",
};
