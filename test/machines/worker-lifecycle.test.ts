import { workerLifecycle } from "../../machines/worker-lifecycle.ts";
import { ignored, testChartTable } from "../support/chart-table.ts";

const [older, current, newer] = ["01A", "01B", "01C"] as const;
const context = { incarnation: current, isToDrain: false };
const asked = { ...context, isToDrain: true };

/** Rules of every row: only the current incarnation is heard, and only a newer one takes its place. */
const everywhere = {
  ...ignored("worker.welcomed, older", "worker.drain, older", "worker.left, older", "beat.arrived, older"),
  ...ignored("worker.started, older", "worker.started, same", "worker.drainAsked, older"),
  "worker.started, newer": "Init+Alive / announceSuperseded; incarnation = 01C",
};

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
      "Init+Alive": {
        context,
        cells: {
          ...everywhere,
          "worker.drainAsked": "Init+Alive; isToDrain = true",
          "worker.welcomed": "Ready+Alive",
          "worker.drain": "Draining+Alive / announceDraining",
          "worker.left": "Gone+Removed / announceLeft",
          "beat.overdue": "Init+Suspected / announceSuspected",
          ...ignored("worker.expired", "beat.arrived", "beat.timedOut"),
        },
      },
      "Init+Suspected": {
        context,
        cells: {
          ...everywhere,
          "worker.drainAsked": "Init+Suspected; isToDrain = true",
          "worker.welcomed": "Ready+Suspected",
          "worker.drain": "Draining+Suspected / announceDraining",
          "worker.left": "Gone+Removed / announceLeft",
          "beat.arrived": "Init+Alive / announceRecovered",
          "beat.timedOut": "Init+Failed / announceFailed",
          ...ignored("worker.expired", "beat.overdue"),
        },
      },
      "Init+Failed": {
        context,
        cells: {
          ...everywhere,
          "worker.drainAsked": "Init+Failed; isToDrain = true",
          "worker.welcomed": "Ready+Failed",
          "worker.drain": "Draining+Failed / announceDraining",
          "worker.left": "Gone+Removed / announceLeft",
          "worker.expired": "Init+Removed / forget",
          "beat.arrived": "Init+Alive / announceRecovered",
          ...ignored("beat.overdue", "beat.timedOut"),
        },
      },
      "Init+Removed": {
        context,
        cells: {
          ...everywhere,
          "worker.drainAsked": "Init+Removed; isToDrain = true",
          "worker.welcomed": "Ready+Removed",
          "worker.drain": "Draining+Removed / announceDraining",
          "worker.left": "Gone+Removed / announceLeft",
          "worker.expired": "Init+Removed / forget",
          ...ignored("beat.arrived", "beat.overdue", "beat.timedOut"),
        },
      },
      "Ready+Alive": {
        context,
        cells: {
          ...everywhere,
          "worker.drainAsked": "Ready+Alive; isToDrain = true",
          "worker.drain": "Draining+Alive / announceDraining",
          "worker.left": "Gone+Removed / announceLeft",
          "beat.overdue": "Ready+Suspected / announceSuspected",
          ...ignored("worker.welcomed", "worker.expired", "beat.arrived", "beat.timedOut"),
        },
      },
      "Ready+Suspected": {
        context,
        cells: {
          ...everywhere,
          "worker.drainAsked": "Ready+Suspected; isToDrain = true",
          "worker.drain": "Draining+Suspected / announceDraining",
          "worker.left": "Gone+Removed / announceLeft",
          "beat.arrived": "Ready+Alive / announceRecovered",
          "beat.timedOut": "Ready+Failed / announceFailed",
          ...ignored("worker.welcomed", "worker.expired", "beat.overdue"),
        },
      },
      "Ready+Failed": {
        context,
        cells: {
          ...everywhere,
          "worker.drainAsked": "Ready+Failed; isToDrain = true",
          "worker.drain": "Draining+Failed / announceDraining",
          "worker.left": "Gone+Removed / announceLeft",
          "worker.expired": "Ready+Removed / forget",
          "beat.arrived": "Ready+Alive / announceRecovered",
          ...ignored("worker.welcomed", "beat.overdue", "beat.timedOut"),
        },
      },
      "Ready+Removed": {
        context,
        cells: {
          ...everywhere,
          "worker.drainAsked": "Ready+Removed; isToDrain = true",
          "worker.drain": "Draining+Removed / announceDraining",
          "worker.left": "Gone+Removed / announceLeft",
          "worker.expired": "Ready+Removed / forget",
          ...ignored("worker.welcomed", "beat.arrived", "beat.overdue", "beat.timedOut"),
        },
      },
      "Draining+Alive": {
        context,
        cells: {
          ...everywhere,
          ...ignored("worker.drainAsked"),
          "worker.left": "Gone+Removed / announceLeft",
          "beat.overdue": "Draining+Suspected / announceSuspected",
          ...ignored("worker.welcomed", "worker.drain", "worker.expired", "beat.arrived", "beat.timedOut"),
        },
      },
      "Draining+Suspected": {
        context,
        cells: {
          ...everywhere,
          ...ignored("worker.drainAsked"),
          "worker.left": "Gone+Removed / announceLeft",
          "beat.arrived": "Draining+Alive / announceRecovered",
          "beat.timedOut": "Draining+Failed / announceFailed",
          ...ignored("worker.welcomed", "worker.drain", "worker.expired", "beat.overdue"),
        },
      },
      "Draining+Failed": {
        context,
        cells: {
          ...everywhere,
          ...ignored("worker.drainAsked"),
          "worker.left": "Gone+Removed / announceLeft",
          "worker.expired": "Draining+Removed / forget",
          "beat.arrived": "Draining+Alive / announceRecovered",
          ...ignored("worker.welcomed", "worker.drain", "beat.overdue", "beat.timedOut"),
        },
      },
      "Draining+Removed": {
        context,
        cells: {
          ...everywhere,
          ...ignored("worker.drainAsked"),
          "worker.left": "Gone+Removed / announceLeft",
          "worker.expired": "Draining+Removed / forget",
          ...ignored("worker.welcomed", "worker.drain", "beat.arrived", "beat.overdue", "beat.timedOut"),
        },
      },
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
