// The code that is mutated, and the tests that have to notice: those beside it first, as they are quick, then others that its mistakes
// reach. Tests that compare the code with a stored copy of itself (structure.json, golden snapshots) would notice every change and count
// for none.

export interface Room {
  readonly name: string;
  readonly files: readonly string[];
  /** In order: a mutant that passes the first ones meets the next. */
  readonly tests: readonly (readonly string[])[];
}

function chart(id: string, ...further: readonly (readonly string[])[]): Room {
  return {
    name: id,
    files: [`machines/${id}.ts`],
    tests: [[`test/machines/${id}.test.ts`], ["test/machines/paths.test.ts"], ...further],
  };
}

const UNIT = "test/unit/coordinator";

export const ROOMS: readonly Room[] = [
  chart("allocation", [`${UNIT}/fleet/*.test.ts`]),
  chart("coordinator-role", [`${UNIT}/lead/role.test.ts`]),
  chart("execution"),
  chart("fleet", [`${UNIT}/fleet/*.test.ts`]),
  chart("key", [`${UNIT}/keys/*.test.ts`]),
  chart("release", [`${UNIT}/release/*.test.ts`]),
  chart("release-stage", [`${UNIT}/release/*.test.ts`]),
  chart("run", [`${UNIT}/run/*.test.ts`]),
  chart("spot-drain", ["test/unit/worker/life/drain.test.ts"]),
  chart("work-item", [`${UNIT}/session/*.test.ts`, `${UNIT}/items/*.test.ts`]),
  chart("worker-lifecycle", [`${UNIT}/workers/*.test.ts`]),
  chart("worker-stay", ["test/unit/worker/life/stay.test.ts"]),
  chart("worker-trust", [`${UNIT}/workers/*.test.ts`]),
  {
    name: "ledger",
    files: ["src/coordinator/ledger/{queue,tally,place,lookups,window,shelf}.ts"],
    tests: [
      [`${UNIT}/ledger/*.test.ts`],
      [`${UNIT}/items/*.test.ts`],
      [`${UNIT}/session/*.test.ts`, `${UNIT}/run/*.test.ts`, `${UNIT}/workers/trust.test.ts`],
    ],
  },
  {
    name: "lease",
    files: ["src/coordinator/lead/{lease,elector-storage}.ts"],
    tests: [["test/contract/lease.test.ts", `${UNIT}/lead/*.test.ts`]],
  },
  {
    name: "steal",
    files: ["src/coordinator/schedule/recall.ts"],
    tests: [
      [`${UNIT}/schedule/*.test.ts`, `${UNIT}/run/steering.test.ts`],
      [`${UNIT}/workers/hand-back.test.ts`, `${UNIT}/session/*.test.ts`],
      [`${UNIT}/release/*.test.ts`],
    ],
  },
  {
    name: "drain",
    files: ["src/worker/life/drain.ts"],
    tests: [["test/unit/worker/life/drain.test.ts"], ["test/unit/worker/workload.test.ts"]],
  },
  {
    name: "fence",
    files: [
      "src/worker/link/epoch-guard.ts",
      "src/worker/life/beat-book.ts",
      "src/coordinator/lead/watchdog.ts",
    ],
    tests: [
      [
        "test/unit/worker/link/epoch-guard.test.ts",
        "test/unit/worker/life/beat-book.test.ts",
        `${UNIT}/lead/watchdog.test.ts`,
      ],
      ["test/unit/worker/life/{heartbeat,fence-in-time}.test.ts", `${UNIT}/lead/stall-watch.test.ts`],
    ],
  },
];
