// A key: the items that belong together run one at a time and in order. The first of those that are to run is its head. A head
// that failed for good stays the head and parks the key: nothing behind it runs until an operator has decided what becomes of it.
import { assign, setup } from "xstate";

export interface KeyContext {
  /** Items that are to run, the head included; a head that has failed does not count. */
  readonly mail: number;
  /** An operator has paused it: it parks as soon as nothing of it runs, and stays so until it is resumed. */
  readonly isPaused: boolean;
  /** The head has failed for good. */
  readonly hasFailed: boolean;
  /** The head waits before it may run again. */
  readonly isDelayed: boolean;
}

export type KeyEvent =
  /** An item more: submitted, or retried by an operator after it was skipped. */
  | { readonly type: "mail.arrived" }
  | { readonly type: "key.assigned" }
  /** The head is final, and does not stop the rest: it has run, or nobody wants it any more before it could. */
  | { readonly type: "item.settled" }
  /** The head has failed for good, and stops the rest. */
  | { readonly type: "item.failed" }
  | { readonly type: "item.returned" }
  | { readonly type: "item.delayed" }
  | { readonly type: "item.due" }
  /** An operator retries the head that has failed. */
  | { readonly type: "item.retried" }
  | { readonly type: "key.paused" }
  | { readonly type: "key.resumed" }
  /** An operator goes on without the head that has failed. */
  | { readonly type: "key.skipped" }
  /** An operator forgets the key, its state included. */
  | { readonly type: "key.retired" };

const arrives = { "mail.arrived": { actions: "countArrival" } } as const;

export const key = setup({
  types: { context: {} as KeyContext, events: {} as KeyEvent },
  guards: {
    isPaused: ({ context }) => context.isPaused,
    isNotPaused: ({ context }) => !context.isPaused,
    hasMore: ({ context }) => context.mail > 1,
    hasFailed: ({ context }) => context.hasFailed,
    hasFailedAndIsPaused: ({ context }) => context.hasFailed && context.isPaused,
    hasFailedBeforeMail: ({ context }) => context.hasFailed && context.mail > 0,
    isFree: ({ context }) => !context.hasFailed,
    isFreeAndDelayed: ({ context }) => !context.hasFailed && context.isDelayed,
    isFreeWithMail: ({ context }) => !context.hasFailed && context.mail > 0,
    isDelayed: ({ context }) => context.isDelayed,
  },
  actions: {
    countArrival: assign({ mail: ({ context }) => context.mail + 1 }),
    countEnd: assign({ mail: ({ context }) => context.mail - 1 }),
    holdFailed: assign({ mail: ({ context }) => context.mail - 1, hasFailed: true }),
    takeBackFailed: assign({ mail: ({ context }) => context.mail + 1, hasFailed: false }),
    letGoOfFailed: assign({ hasFailed: false }),
    beginDelay: assign({ isDelayed: true }),
    endDelay: assign({ isDelayed: false }),
    pause: assign({ isPaused: true }),
    resume: assign({ isPaused: false }),
  },
}).createMachine({
  id: "key",
  version: "2",
  context: { mail: 0, isPaused: false, hasFailed: false, isDelayed: false },
  initial: "Idle",
  states: {
    Idle: {
      on: {
        "mail.arrived": { target: "Waiting", actions: "countArrival" },
        "key.paused": { target: "Parked", actions: "pause" },
        "key.retired": "Retired",
      },
    },
    Waiting: {
      on: {
        ...arrives,
        "key.assigned": "Running",
        "item.settled": [
          { guard: "hasMore", actions: "countEnd" },
          { target: "Idle", actions: "countEnd" },
        ],
        "key.paused": { target: "Parked", actions: "pause" },
      },
    },
    Running: {
      on: {
        ...arrives,
        "item.settled": [
          { guard: "isPaused", target: "Parked", actions: "countEnd" },
          { guard: "hasMore", target: "Waiting", actions: "countEnd" },
          { target: "Idle", actions: "countEnd" },
        ],
        "item.failed": { target: "Parked", actions: "holdFailed" },
        "item.returned": [{ guard: "isPaused", target: "Parked" }, { target: "Waiting" }],
        "item.delayed": [
          { guard: "isPaused", target: "Parked", actions: "beginDelay" },
          { target: "Delayed", actions: "beginDelay" },
        ],
        "key.paused": { guard: "isNotPaused", actions: "pause" },
        "key.resumed": { guard: "isPaused", actions: "resume" },
      },
    },
    Delayed: {
      on: {
        ...arrives,
        "item.due": { target: "Waiting", actions: "endDelay" },
        "key.paused": { target: "Parked", actions: "pause" },
      },
    },
    Parked: {
      on: {
        ...arrives,
        "item.due": { guard: "isDelayed", actions: "endDelay" },
        "item.retried": [
          { guard: "hasFailedAndIsPaused", actions: "takeBackFailed" },
          { guard: "hasFailed", target: "Waiting", actions: "takeBackFailed" },
        ],
        "key.skipped": [
          { guard: "hasFailedAndIsPaused", actions: "letGoOfFailed" },
          { guard: "hasFailedBeforeMail", target: "Waiting", actions: "letGoOfFailed" },
          { guard: "hasFailed", target: "Idle", actions: "letGoOfFailed" },
        ],
        "key.paused": { guard: "isNotPaused", actions: "pause" },
        "key.resumed": [
          { guard: "isFreeAndDelayed", target: "Delayed", actions: "resume" },
          { guard: "isFreeWithMail", target: "Waiting", actions: "resume" },
          { guard: "isFree", target: "Idle", actions: "resume" },
        ],
      },
    },
    Retired: {},
  },
});
