// A chart with everything that can be compiled, for proving that it is: hierarchy, parallel regions, entry and exit
// actions, eventless transitions, guards and actions with parameters, forbidden events, a final state. It does nothing
// useful.
import { assign, setup } from "xstate";

interface NestedContext {
  readonly n: number;
}

interface Kicked {
  readonly k: number;
}

type NestedEvent = { readonly type: "X" | "Y" | "OUT" | "NEVER" } & Kicked;

export const nestedChart = setup({
  types: { context: {} as NestedContext, events: {} as NestedEvent },
  guards: {
    isBig: ({ context }) => context.n > 3,
    isOdd: ({ event }) => event.k % 2 === 1,
    exceeds: ({ context }, params: { limit: number }) => context.n > params.limit,
  },
  actions: {
    increase: assign({ n: ({ context, event }) => context.n + event.k }),
    add: assign(({ context }, params: { by: number }) => ({ n: context.n + params.by })),
    reset: assign({ n: 0 }),
    say: (_, _params: { word: string }) => {},
    enter: () => {},
    leave: () => {},
  },
}).createMachine({
  id: "nested",
  version: "1",
  initial: "idle",
  context: { n: 0 },
  on: { NEVER: {} },
  states: {
    idle: { on: { X: { target: "both", actions: "increase" }, NEVER: {} } },
    both: {
      type: "parallel",
      entry: "enter",
      exit: ["leave", { type: "say", params: { word: "bye" } }],
      on: { OUT: { guard: "isBig", target: "after", actions: { type: "say", params: { word: "out" } } } },
      states: {
        left: {
          initial: "a",
          states: {
            a: {
              entry: "increase",
              exit: { type: "say", params: { word: "a" } },
              always: { guard: { type: "exceeds", params: { limit: 5 } }, target: "c" },
              on: { X: [{ guard: "isOdd", target: "b" }, { actions: ["increase", "enter"] }] },
            },
            b: {
              entry: [
                { type: "add", params: { by: 2 } },
                { type: "say", params: { word: "b" } },
              ],
              on: { X: { target: "a", reenter: true }, Y: "c" },
            },
            c: {
              on: { Y: { guard: { type: "exceeds", params: { limit: 9 } }, target: "a", actions: "reset" } },
            },
          },
        },
        right: {
          initial: "x",
          states: {
            x: { on: { X: "y", Y: { guard: "isOdd", actions: { type: "add", params: { by: 1 } } } } },
            y: {
              initial: "one",
              on: { Y: { guard: "isOdd", target: "x" }, OUT: {} },
              states: { one: { on: { Y: "two" } }, two: { entry: "increase" } },
            },
          },
        },
      },
    },
    after: {
      on: { X: { guard: "isOdd", target: "both", actions: "reset" }, Y: { actions: "increase" } },
      always: { guard: { type: "exceeds", params: { limit: 40 } }, target: "end" },
    },
    end: { type: "final", entry: { type: "say", params: { word: "end" } } },
  },
});
