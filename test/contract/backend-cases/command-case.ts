import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { CommandBackend } from "../../../src/worker/backends/command/command-backend.ts";
import { EVERYTHING, KILL_GRACE_MS, LIMITS } from "../../support/backend-case.ts";
import type { BackendCase } from "../../support/backend-case.ts";

const PROGRAM = fileURLToPath(new URL("./item-command.ts", import.meta.url));

export const backendCase: BackendCase = {
  name: "command",
  can: EVERYTHING,
  open: ({ directory, ...surroundings }) =>
    new CommandBackend({
      ...surroundings,
      command: [process.execPath, PROGRAM],
      shell: false,
      cwd: directory,
      killGraceMs: KILL_GRACE_MS,
      ...LIMITS,
      checkpointIntervalMs: 60_000,
      directory: join(directory, "attempts"),
    }),
  executesIn: "children",
};
