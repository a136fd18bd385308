import { workerLifecycle } from "../../machines/worker-lifecycle.ts";
import { ignored, testChartTable } from "./chart-table.ts";

const [older, current, newer] = ["01A", "01B", "01C"] as const;
const context = { incarnation: current, isToDrain: false };
const asked = { ...context, isToDrain: true };

/** Rules of every row: only the current incarnation is heard, and only a newer one takes its place. */
const everywhere = {
  ...ignored("worker.welcomed, older", "worker.drain, older", "worker.left, older", "beat.arrived, older"),
  ...ignored("worker.started, older", "worker.started, same", "worker.drainAsked, older"),
  "worker.started, newer": "Init+Alive / announceSuperseded; incarnation = 01C",
};

/** Cells of its life, whatever is thought of its heart. */
const lives = {
  Init: (heart: string) => ({
    "worker.drainAsked": `Init+${heart}; isToDrain = true`,
    "worker.welcomed": `Ready+${heart}`,
    "worker.drain": `Draining+${heart} / announceDraining`,
    "worker.left": "Gone+Removed / announceLeft",
  }),
  Ready: (heart: string) => ({
    "worker.drainAsked": `Ready+${heart}; isToDrain = true`,
    ...ignored("worker.welcomed"),
    "worker.drain": `Draining+${heart} / announceDraining`,
    "worker.left": "Gone+Removed / announceLeft",
  }),
  Draining: () => ({
    ...ignored("worker.drainAsked", "worker.welcomed", "worker.drain"),
    "worker.left": "Gone+Removed / announceLeft",
  }),
};

/** Cells of its heart, whatever its life has come to. */
const hearts = {
  Alive: (life: string) => ({
    "beat.overdue": `${life}+Suspected / announceSuspected`,
    ...ignored("worker.expired", "beat.arrived", "beat.timedOut"),
  }),
  Suspected: (life: string) => ({
    "beat.arrived": `${life}+Alive / announceRecovered`,
    "beat.timedOut": `${life}+Failed / announceFailed`,
    ...ignored("worker.expired", "beat.overdue"),
  }),
  Failed: (life: string) => ({
    "worker.expired": `${life}+Removed / forget`,
    "beat.arrived": `${life}+Alive / announceRecovered`,
    ...ignored("beat.overdue", "beat.timedOut"),
  }),
  Removed: (life: string) => ({
    "worker.expired": `${life}+Removed / forget`,
    ...ignored("beat.arrived", "beat.overdue", "beat.timedOut"),
  }),
};

/** Until it has left, neither knows of the other. */
const living = Object.fromEntries(
  Object.entries(lives).flatMap(([life, cellsOfLife]) =>
    Object.entries(hearts).map(([heart, cellsOfHeart]) => {
      const cells = { ...everywhere, ...cellsOfLife(heart), ...cellsOfHeart(life) };
      return [`${life}+${heart}`, { context, cells }] as const;
    }),
  ),
);

describe("the chart of a worker's life", () => {
  testChartTable({
    machine: workerLifecycle,
    input: context,
    begins: "Init+Alive; incarnation = 01B, isToDrain = false",
    compiles: true,
    events: {
      "worker.welcomed": { type: "worker.welcomed", incarnation: current },
      "worker.welcomed, older": { type: "worker.welcomed", incarnation: older },
      "worker.drainAsked": { type: "worker.drainAsked", incarnation: current },
      "worker.drainAsked, older": { type: "worker.drainAsked", incarnation: older },
      "worker.drain": { type: "worker.drain", incarnation: current },
      "worker.drain, older": { type: "worker.drain", incarnation: older },
      "worker.left": { type: "worker.left", incarnation: current },
      "worker.left, older": { type: "worker.left", incarnation: older },
      "worker.started, newer": { type: "worker.started", incarnation: newer },
      "worker.started, same": { type: "worker.started", incarnation: current },
      "worker.started, older": { type: "worker.started", incarnation: older },
      "worker.expired": { type: "worker.expired" },
      "beat.arrived": { type: "beat.arrived", incarnation: current },
      "beat.arrived, older": { type: "beat.arrived", incarnation: older },
      "beat.overdue": { type: "beat.overdue" },
      "beat.timedOut": { type: "beat.timedOut" },
    },
    rows: {
      ...living,
      "Ready+Alive, asked to drain": {
        state: "Ready+Alive",
        context: asked,
        cells: {
          ...everywhere,
          "worker.started, newer": "Init+Alive / announceSuperseded; incarnation = 01C, isToDrain = false",
          "worker.drain": "Draining+Alive / announceDraining",
          "worker.left": "Gone+Removed / announceLeft",
          "beat.overdue": "Ready+Suspected / announceSuspected",
          ...ignored("worker.drainAsked", "worker.welcomed", "worker.expired"),
          ...ignored("beat.arrived", "beat.timedOut"),
        },
      },
      "Init+Failed, asked to drain": {
        state: "Init+Failed",
        context: asked,
        cells: {
          ...everywhere,
          "worker.started, newer": "Init+Alive / announceSuperseded; incarnation = 01C, isToDrain = false",
          "worker.welcomed": "Ready+Failed",
          "worker.drain": "Draining+Failed / announceDraining",
          "worker.left": "Gone+Removed / announceLeft",
          "worker.expired": "Init+Removed / forget",
          "beat.arrived": "Init+Alive / announceRecovered",
          ...ignored("worker.drainAsked", "beat.overdue", "beat.timedOut"),
        },
      },
      "Gone+Removed": {
        context,
        cells: {
          ...everywhere,
          ...ignored("worker.drainAsked"),
          "worker.expired": "Gone+Removed / forget",
          ...ignored("worker.welcomed", "worker.drain", "worker.left"),
          ...ignored("beat.arrived", "beat.overdue", "beat.timedOut"),
        },
      },
    },
  });
});
