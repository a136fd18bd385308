// A chart with everything that the actor system has to deal with: effects, guards and assigns that throw. Its notes are
// numbered, so that a note that is sent again after a crash is ignored.
import { assign, setup } from "xstate";
import type { Chart } from "../../../machines/migration.ts";

interface BellContext {
  readonly notes: number;
  readonly rings: number;
}

export type BellEvent =
  /** Number `at` counts from 0. It has two effects: `play` and `record`. */
  | { readonly type: "bell.note"; readonly at: number }
  | { readonly type: "bell.due" }
  | { readonly type: "bell.guardThrows" }
  | { readonly type: "bell.assignThrows" };

const fault = (): never => {
  throw new Error("the bell is cracked");
};

export const bell = setup({
  types: {
    context: {} as BellContext,
    events: {} as BellEvent,
  },
  guards: {
    isNext: ({ context, event }) => event.type === "bell.note" && event.at === context.notes,
    throws: fault,
  },
  actions: {
    count: assign({ notes: ({ context }) => context.notes + 1 }),
    ringOnce: assign({ rings: ({ context }) => context.rings + 1 }),
    assignThrows: assign(fault),
    play: (_, _params: { at: number }) => {},
    record: () => {},
    greet: () => {},
    announceRing: () => {},
  },
}).createMachine({
  id: "bell",
  version: "1",
  context: { notes: 0, rings: 0 },
  initial: "Quiet",
  entry: "greet",
  on: {
    "bell.note": {
      guard: "isNext",
      actions: [{ type: "play", params: ({ event }) => ({ at: event.at }) }, "count", "record"],
    },
    "bell.due": { target: ".Ringing", actions: ["ringOnce", "announceRing"] },
    "bell.guardThrows": { guard: "throws", target: ".Ringing" },
    "bell.assignThrows": { target: ".Ringing", actions: ["announceRing", "assignThrows"] },
  },
  states: { Quiet: {}, Ringing: {} },
});

export const bellCharts = { bell: { machine: bell, migrations: [] } } as const satisfies Record<
  string,
  Chart
>;
