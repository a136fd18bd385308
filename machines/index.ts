// The registry: every chart, by its id, with what its persisted snapshots need. A chart is added here or it does not exist.
import { coordinatorRole } from "./coordinator-role.ts";
import { execution } from "./execution.ts";
import type { Chart } from "./migration.ts";
import { run } from "./run.ts";
import { spotDrain } from "./spot-drain.ts";
import { workItem } from "./work-item.ts";
import { workerLifecycle } from "./worker-lifecycle.ts";
import { workerTrust } from "./worker-trust.ts";

export const charts = {
  "coordinator-role": { machine: coordinatorRole, migrations: [] },
  execution: {
    machine: execution,
    // Every state of version 1 is one of version 2.
    migrations: [{ from: "1", to: "2", migrate: (snapshot) => snapshot }],
  },
  run: { machine: run, migrations: [] },
  "spot-drain": {
    machine: spotDrain,
    // A drain does not outlive its process, so the moment is never looked at.
    migrations: [
      {
        from: "1",
        to: "2",
        migrate: ({ value, context }) => ({ value, context: { ...(context as object), flushUntilMs: null } }),
      },
    ],
  },
  "work-item": { machine: workItem, migrations: [] },
  "worker-lifecycle": { machine: workerLifecycle, migrations: [] },
  "worker-trust": { machine: workerTrust, migrations: [] },
} as const satisfies Readonly<Record<string, Chart>>;
