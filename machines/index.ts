// The registry: every chart, by its id, with what its persisted snapshots need. A chart is added here or it does not exist.
import { allocation } from "./allocation.ts";
import { coordinatorRole } from "./coordinator-role.ts";
import { execution } from "./execution.ts";
import { fleet } from "./fleet.ts";
import { key } from "./key.ts";
import type { Chart } from "./migration.ts";
import { releaseStage } from "./release-stage.ts";
import { release } from "./release.ts";
import { run } from "./run.ts";
import { spotDrain } from "./spot-drain.ts";
import type { DrainContext } from "./spot-drain.ts";
import { workItem } from "./work-item.ts";
import { workerLifecycle } from "./worker-lifecycle.ts";
import { workerStay } from "./worker-stay.ts";
import { workerTrust } from "./worker-trust.ts";

export const charts = {
  allocation: { machine: allocation, migrations: [] },
  "coordinator-role": {
    machine: coordinatorRole,
    // A candidate with an epoch has resigned; who fenced a coordinator was not written down.
    migrations: [
      {
        from: "1",
        to: "2",
        migrate: ({ value, context }) => {
          const { epoch } = context as { readonly epoch: number | null };
          const fenced = { kind: "fenced", epoch, seenEpoch: null, by: null };
          const ending = value === "Fenced" ? fenced : { kind: "resigned", epoch };
          return { value, context: { epoch, ending: epoch === null || value === "Leader" ? null : ending } };
        },
      },
      // A candidate of version 2 had claimed nothing.
      {
        from: "2",
        to: "3",
        migrate: ({ value, context }) => ({
          value: value === "Candidate" ? { Candidate: "Following" } : value,
          context,
        }),
      },
      // Whether it had made room for another was not written down, and is over with its process.
      {
        from: "3",
        to: "4",
        migrate: ({ value, context }) => ({
          value:
            typeof value === "object" && value["Candidate"] === "Following"
              ? { Candidate: { Following: "Willing" } }
              : value,
          context,
        }),
      },
    ],
  },
  execution: {
    machine: execution,
    // Every state of version 1 is one of version 2.
    migrations: [{ from: "1", to: "2", migrate: (snapshot) => snapshot }],
  },
  fleet: { machine: fleet, migrations: [] },
  key: {
    machine: key,
    // Every state of version 1 is one of version 2.
    migrations: [{ from: "1", to: "2", migrate: (snapshot) => snapshot }],
    predecessors: [
      {
        version: "1",
        structure: "a0320559cdce01c0",
        states: sameStates("Idle", "Waiting", "Running", "Delayed", "Parked", "Retired"),
      },
    ],
  },
  release: { machine: release, migrations: [] },
  "release-stage": { machine: releaseStage, migrations: [] },
  run: { machine: run, migrations: [], predecessors: [] },
  "spot-drain": {
    machine: spotDrain,
    migrations: [
      // A drain of version 1 or 2 did not outlive its process, so its moments are never looked at.
      {
        from: "1",
        to: "2",
        migrate: ({ value, context }) => ({ value, context: { ...(context as object), flushUntilMs: null } }),
      },
      {
        from: "2",
        to: "3",
        migrate: ({ value, context }) => {
          const { cause, deadlineMs } = context as DrainContext;
          const unknown = {
            sinceMs: 0,
            untilMs: deadlineMs,
            machineEndsMs: null,
            boot: "",
            saveCostMs: null,
          };
          return { value, context: { cause, deadlineMs, ...unknown } };
        },
      },
    ],
  },
  "work-item": {
    machine: workItem,
    // There were no releases.
    migrations: [
      {
        from: "1",
        to: "2",
        migrate: ({ value, context }) => ({
          value,
          context: { ...(context as object), trial: "", tried: "" },
        }),
      },
    ],
    // A row of version 1 is one of version 2 that no release has tried.
    predecessors: [
      {
        version: "1",
        structure: "b2e3f8b011452b1f",
        states: { Pending: "Pending", Running: "Running", Done: "Done", Failed: "Failed" },
      },
    ],
  },
  "worker-lifecycle": { machine: workerLifecycle, migrations: [], predecessors: [] },
  "worker-stay": { machine: workerStay, migrations: [] },
  "worker-trust": { machine: workerTrust, migrations: [], predecessors: [] },
} as const satisfies Readonly<Record<string, Chart>>;

function sameStates(...names: readonly string[]): Readonly<Record<string, string>> {
  return Object.fromEntries(names.map((name) => [name, name]));
}
