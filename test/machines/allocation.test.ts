import { allocation } from "../../machines/allocation.ts";
import { ignored, testChartTable } from "./chart-table.ts";

const asked = {
  ...{ askedAtMs: 1, launchedAtMs: 1, missed: 0, ref: "" },
  ...{ queuedAtMs: null, bootedAtMs: null, joinedAtMs: null, endingAtMs: null, endedAtMs: null },
  ...{ cause: null, isPreempted: false, stops: 0, stopAtMs: 0, reason: "" },
};
const queued = { ...asked, ref: "job 7", queuedAtMs: 2 };
const booting = { ...queued, bootedAtMs: 4 };
const joined = { ...booting, joinedAtMs: 5 };
const ending = { ...joined, cause: "idle", endingAtMs: 6, stopAtMs: 6 };

/** Its launch was answered, and no list is waited for. */
const launched = ignored(
  "launch.accepted",
  "launch.refused",
  "launch.full",
  "launch.repeated",
  "list.missed",
  "list.queued",
);
const over = {
  ...launched,
  ...ignored("list.running", "list.ended", "list.gone", "worker.joined", "worker.left", "worker.mute"),
  ...ignored("end.asked", "stop.sent"),
};

/** While it ends and has not joined, whatever it ends for. */
const unjoined = {
  "launch.accepted": "Ending; ref = job 7",
  "launch.refused": "Gone / announceEnded; endedAtMs = 2, reason = no such image",
  "launch.full": "Gone / announceEnded; endedAtMs = 2, reason = quota",
  "list.running": "Ending; ref = job 7, bootedAtMs = 4",
  "worker.joined": "Ending; bootedAtMs = 5, joinedAtMs = 5",
  "stop.sent": "Ending; stops = 1, stopAtMs = 17",
  ...ignored("launch.repeated", "list.missed", "list.queued", "worker.left", "worker.mute", "end.asked"),
};
const failing = {
  "list.ended": "Failed / announceFailed; endedAtMs = 8, isPreempted = true",
  "list.gone": "Failed / announceFailed; endedAtMs = 8",
};

describe("the chart of an allocation", () => {
  testChartTable({
    machine: allocation,
    input: { atMs: 1 },
    begins:
      'Requested; askedAtMs = 1, launchedAtMs = 1, missed = 0, ref = "", queuedAtMs = null, bootedAtMs = null, joinedAtMs = null, endingAtMs = null, endedAtMs = null, cause = null, isPreempted = false, stops = 0, stopAtMs = 0, reason = ""',
    compiles: true,
    events: {
      "launch.accepted": { type: "launch.accepted", atMs: 2, ref: "job 7" },
      "launch.refused": { type: "launch.refused", atMs: 2, reason: "no such image" },
      "launch.full": { type: "launch.full", atMs: 2, reason: "quota" },
      "launch.repeated": { type: "launch.repeated", atMs: 9 },
      "list.missed": { type: "list.missed", atMs: 3 },
      "list.queued": { type: "list.queued", atMs: 3, ref: "job 7" },
      "list.running": { type: "list.running", atMs: 4, ref: "job 7" },
      "list.ended": { type: "list.ended", atMs: 8, isPreempted: true },
      "list.gone": { type: "list.gone", atMs: 8 },
      "worker.joined": { type: "worker.joined", atMs: 5 },
      "worker.left": { type: "worker.left", atMs: 6 },
      "worker.mute": { type: "worker.mute", atMs: 6 },
      "end.asked": { type: "end.asked", atMs: 6, cause: "idle" },
      "stop.sent": { type: "stop.sent", atMs: 7, againAtMs: 17 },
    },
    rows: {
      Requested: {
        context: asked,
        cells: {
          "launch.accepted": "Queued; ref = job 7, queuedAtMs = 2",
          "launch.refused": "Failed / announceFailed; endedAtMs = 2, reason = no such image",
          "launch.full": "Gone; endedAtMs = 2, reason = quota",
          "launch.repeated": "Requested; launchedAtMs = 9",
          "list.missed": "Requested; missed = 1",
          "list.queued": "Queued; ref = job 7, queuedAtMs = 3",
          "list.running": "Booting; ref = job 7, bootedAtMs = 4",
          "list.ended": "Failed / announceFailed; endedAtMs = 8, isPreempted = true",
          "worker.joined": "Joined / announceJoined; bootedAtMs = 5, joinedAtMs = 5",
          "end.asked": "Ending; endingAtMs = 6, cause = idle, stopAtMs = 6",
          ...ignored("list.gone", "worker.left", "worker.mute", "stop.sent"),
        },
      },
      Queued: {
        context: queued,
        cells: {
          "list.running": "Booting; bootedAtMs = 4",
          "list.ended": "Failed / announceFailed; endedAtMs = 8, isPreempted = true",
          "list.gone": "Failed / announceFailed; endedAtMs = 8",
          "worker.joined": "Joined / announceJoined; bootedAtMs = 5, joinedAtMs = 5",
          "end.asked": "Ending; endingAtMs = 6, cause = idle, stopAtMs = 6",
          ...launched,
          ...ignored("worker.left", "worker.mute", "stop.sent"),
        },
      },
      Booting: {
        context: booting,
        cells: {
          "list.ended": "Failed / announceFailed; endedAtMs = 8, isPreempted = true",
          "list.gone": "Failed / announceFailed; endedAtMs = 8",
          "worker.joined": "Joined / announceJoined; joinedAtMs = 5",
          "end.asked": "Ending; endingAtMs = 6, cause = idle, stopAtMs = 6",
          ...launched,
          ...ignored("list.running", "worker.left", "worker.mute", "stop.sent"),
        },
      },
      Joined: {
        context: joined,
        cells: {
          "list.ended": "Gone / announceEnded; endedAtMs = 8, isPreempted = true",
          "list.gone": "Gone / announceEnded; endedAtMs = 8",
          "worker.left": "Ending; endingAtMs = 6, cause = left, stopAtMs = 6",
          "worker.mute": "Ending; endingAtMs = 6, cause = mute, stopAtMs = 6",
          "end.asked": "Ending; endingAtMs = 6, cause = idle, stopAtMs = 6",
          ...launched,
          ...ignored("list.running", "worker.joined", "stop.sent"),
        },
      },
      Ending: {
        context: ending,
        cells: {
          "launch.accepted": "Ending",
          "launch.refused": "Gone / announceEnded; endedAtMs = 2, reason = no such image",
          "launch.full": "Gone / announceEnded; endedAtMs = 2, reason = quota",
          "list.ended": "Gone / announceEnded; endedAtMs = 8, isPreempted = true",
          "list.gone": "Gone / announceEnded; endedAtMs = 8",
          "stop.sent": "Ending; stops = 1, stopAtMs = 17",
          ...ignored(
            "launch.repeated",
            "list.missed",
            "list.queued",
            "list.running",
            "worker.joined",
            "worker.left",
            "worker.mute",
            "end.asked",
          ),
        },
      },
      "Ending, never joined": {
        state: "Ending",
        context: { ...asked, cause: "start_timeout", endingAtMs: 6, stopAtMs: 6 },
        cells: { ...unjoined, ...failing },
      },
      "Ending, never out of the queue": {
        state: "Ending",
        context: { ...asked, cause: "queue_timeout", endingAtMs: 6, stopAtMs: 6 },
        cells: { ...unjoined, ...failing },
      },
      "Ending, not wanted any more before it joined": {
        state: "Ending",
        context: { ...asked, cause: "operator", endingAtMs: 6, stopAtMs: 6 },
        cells: {
          ...unjoined,
          "list.ended": "Gone / announceEnded; endedAtMs = 8, isPreempted = true",
          "list.gone": "Gone / announceEnded; endedAtMs = 8",
        },
      },
      Failed: {
        context: { ...booting, endedAtMs: 8 },
        cells: over,
      },
      Gone: {
        context: { ...ending, endedAtMs: 8 },
        cells: over,
      },
    },
  });
});
