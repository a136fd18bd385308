// The actors that are measured, for a worker to load: a counter of about 300 bytes, one with a state of any size, and an alarm.
import { assign, setup } from "xstate";
import { defineActor } from "../../../src/actors.ts";

interface Counted {
  readonly count: number;
  readonly pad: string;
}

const PAD = "x".repeat(100);

/** Counts; with the first event it may be made of any size. */
export const counter = defineActor({
  machine: setup({
    types: {
      context: {} as Counted,
      events: {} as { type: "add" } | { type: "grow"; bytes: number },
    },
    actions: {
      add: assign({ count: ({ context }) => context.count + 1 }),
      grow: assign({
        pad: ({ context, event }) => (event.type === "grow" ? "x".repeat(event.bytes) : context.pad),
      }),
    },
  }).createMachine({
    context: { count: 0, pad: PAD },
    initial: "counting",
    states: { counting: { on: { add: { actions: "add" }, grow: { actions: "grow" } } } },
  }),
});

/** Is told of its time after so many milliseconds, unless it is told to forget that. */
export const alarm = defineActor({
  machine: setup({
    types: {
      context: {} as { delayMs: number },
      events: {} as { type: "set"; delayMs: number } | { type: "forget" },
    },
    actions: {
      note: assign({ delayMs: ({ event }) => (event.type === "set" ? event.delayMs : 0) }),
    },
    delays: { later: ({ context }) => context.delayMs },
  }).createMachine({
    context: { delayMs: 0 },
    initial: "off",
    states: {
      off: { on: { set: { target: "armed", actions: "note" } } },
      armed: { on: { forget: "off" }, after: { later: "rung" } },
      rung: {},
    },
  }),
});
