import type { StayContext } from "../../machines/worker-stay.ts";
import { workerStay } from "../../machines/worker-stay.ts";
import { ignored, testChartTable } from "./chart-table.ts";

const NEVER = Number.MAX_SAFE_INTEGER;

const alone: StayContext = {
  ...{ orphanMs: 30_000, lifetimeMs: 100_000, idleMs: 20_000, boot: "this boot", beganAtMs: 80_000 },
  ...{ awaitedFromMs: 80_000, untilMs: 110_000, cause: null },
};
const limits = { orphanMs: 30_000, lifetimeMs: 100_000, idleMs: null };
const unlimited = { orphanMs: null, lifetimeMs: null, idleMs: null };

/** A process in the place of one that was killed goes on; others begin anew. */
const starts = {
  "worker.started": "Alone; idleMs = null, awaitedFromMs = 90000, untilMs = 120000",
  "worker.started, near the end": "Alone; idleMs = null, awaitedFromMs = 170000, untilMs = 180000",
  "worker.started, on another boot":
    "Alone; idleMs = null, boot = another boot, beganAtMs = 90000, awaitedFromMs = 90000, untilMs = 120000",
  "worker.started, nobody knows the boot":
    'Alone; idleMs = null, boot = "", beganAtMs = 90000, awaitedFromMs = 90000, untilMs = 120000',
  "worker.started, without limits": `Alone; orphanMs = null, lifetimeMs = null, idleMs = null, awaitedFromMs = 90000, untilMs = ${NEVER}`,
};

describe("the chart of a stay", () => {
  testChartTable({
    machine: workerStay,
    begins: `Alone; orphanMs = null, lifetimeMs = null, idleMs = null, boot = "", beganAtMs = 0, awaitedFromMs = 0, untilMs = ${NEVER}, cause = null`,
    compiles: true,
    events: {
      "worker.started": { type: "worker.started", atMs: 90_000, boot: "this boot", limits },
      "worker.started, near the end": { type: "worker.started", atMs: 170_000, boot: "this boot", limits },
      "worker.started, on another boot": {
        type: "worker.started",
        atMs: 90_000,
        boot: "another boot",
        limits,
      },
      "worker.started, nobody knows the boot": { type: "worker.started", atMs: 90_000, boot: "", limits },
      "worker.started, without limits": {
        ...{ type: "worker.started", atMs: 90_000, boot: "this boot" },
        limits: unlimited,
      },
      "leader.answered": { type: "leader.answered", atMs: 81_000 },
      "leader.lost": { type: "leader.lost", atMs: 85_000 },
      "work.began": { type: "work.began" },
      "work.ended": { type: "work.ended", atMs: 90_000 },
      "time.passed, too early": { type: "time.passed", atMs: 99_999 },
      "time.passed": { type: "time.passed", atMs: 110_000 },
      "time.passed, for good": { type: "time.passed", atMs: 180_000 },
    },
    rows: {
      Alone: {
        context: alone,
        cells: {
          ...starts,
          "leader.answered": "Idle; awaitedFromMs = 81000, untilMs = 101000",
          ...ignored("leader.lost", "work.began", "work.ended", "time.passed, too early"),
          "time.passed": `Leaving / askDrain; untilMs = ${NEVER}, cause = orphan`,
          "time.passed, for good": `Leaving / askDrain; untilMs = ${NEVER}, cause = lifetime`,
        },
      },
      "Alone, without limits": {
        state: "Alone",
        context: { ...alone, ...unlimited, untilMs: NEVER },
        cells: {
          "worker.started":
            "Alone; orphanMs = 30000, lifetimeMs = 100000, awaitedFromMs = 90000, untilMs = 120000",
          "worker.started, near the end":
            "Alone; orphanMs = 30000, lifetimeMs = 100000, awaitedFromMs = 170000, untilMs = 180000",
          "worker.started, on another boot":
            "Alone; orphanMs = 30000, lifetimeMs = 100000, boot = another boot, beganAtMs = 90000, awaitedFromMs = 90000, untilMs = 120000",
          "worker.started, nobody knows the boot":
            'Alone; orphanMs = 30000, lifetimeMs = 100000, boot = "", beganAtMs = 90000, awaitedFromMs = 90000, untilMs = 120000',
          "worker.started, without limits": "Alone; awaitedFromMs = 90000",
          "leader.answered": "Idle; awaitedFromMs = 81000",
          ...ignored("leader.lost", "work.began", "work.ended"),
          ...ignored("time.passed, too early", "time.passed", "time.passed, for good"),
        },
      },
      Idle: {
        context: { ...alone, awaitedFromMs: 81_000, untilMs: 101_000 },
        cells: {
          ...starts,
          "work.began": "Working; untilMs = 180000",
          "work.ended": "Idle; awaitedFromMs = 90000, untilMs = 110000",
          "leader.lost": "Alone; awaitedFromMs = 85000, untilMs = 115000",
          ...ignored("leader.answered", "time.passed, too early"),
          "time.passed": `Leaving / askDrain; untilMs = ${NEVER}, cause = idle`,
          "time.passed, for good": `Leaving / askDrain; untilMs = ${NEVER}, cause = lifetime`,
        },
      },
      Working: {
        context: { ...alone, awaitedFromMs: 81_000, untilMs: 180_000 },
        cells: {
          ...starts,
          "worker.started, near the end": "Alone; idleMs = null, awaitedFromMs = 170000",
          "work.ended": "Idle; awaitedFromMs = 90000, untilMs = 110000",
          "leader.lost": "Alone; awaitedFromMs = 85000, untilMs = 115000",
          ...ignored("leader.answered", "work.began", "time.passed, too early", "time.passed"),
          "time.passed, for good": `Leaving / askDrain; untilMs = ${NEVER}, cause = lifetime`,
        },
      },
      // It has left: another process begins anew.
      Leaving: {
        context: { ...alone, untilMs: NEVER, cause: "orphan" },
        cells: {
          "worker.started":
            "Alone; idleMs = null, beganAtMs = 90000, awaitedFromMs = 90000, untilMs = 120000, cause = null",
          "worker.started, near the end":
            "Alone; idleMs = null, beganAtMs = 170000, awaitedFromMs = 170000, untilMs = 200000, cause = null",
          "worker.started, on another boot":
            "Alone; idleMs = null, boot = another boot, beganAtMs = 90000, awaitedFromMs = 90000, untilMs = 120000, cause = null",
          "worker.started, nobody knows the boot":
            'Alone; idleMs = null, boot = "", beganAtMs = 90000, awaitedFromMs = 90000, untilMs = 120000, cause = null',
          "worker.started, without limits": `Alone; orphanMs = null, lifetimeMs = null, idleMs = null, beganAtMs = 90000, awaitedFromMs = 90000, cause = null`,
          ...ignored("leader.answered", "leader.lost", "work.began", "work.ended"),
          ...ignored("time.passed, too early", "time.passed", "time.passed, for good"),
        },
      },
    },
  });
});
