// A chart with each kind of state and of transition that there is. It does nothing useful.
import { and, createMachine, not, or, stateIn } from "xstate";

const circle: { self?: object } = {};
circle.self = circle;

export const everyKind = createMachine({
  id: "every",
  version: "7",
  description: "All there is.",
  context: { circle },
  initial: "idle",
  on: { reset: ".idle", forbidden: {} },
  states: {
    idle: {
      tags: ["calm"],
      entry: ["greet", { type: "note", params: { circle } }],
      exit: "leave",
      on: {
        go: [
          { guard: and(["isReady", not("isLate"), or(["isFine", stateIn("idle")])]), target: "busy" },
          { actions: ["shrug"] },
        ],
        again: { target: "idle", reenter: true },
        look: { target: "idle" },
        ab: "a\\.b",
        back: "busy.left.before",
      },
      after: { 1000: "a\\.b", aWhile: { guard: "isReady", actions: "wake" } },
    },
    busy: {
      type: "parallel",
      onDone: "end",
      states: {
        left: {
          initial: "one",
          states: {
            one: { on: { next: "two" } },
            two: { type: "final" },
            before: { type: "history", history: "deep", target: "two" },
          },
        },
        right: {
          invoke: [
            { src: "fetch", onDone: { target: ".got" }, onError: "#every.end" },
            { src: "listen", id: "ear", onSnapshot: { actions: "hear" } },
          ],
          initial: "waiting",
          states: { waiting: { always: { guard: "isReady", target: "got" } }, got: { type: "final" } },
        },
      },
    },
    // A dot in a key, and states that would have its name.
    "a.b": { initial: "c", states: { c: {} } },
    a: { initial: "b", states: { b: { initial: "c", states: { c: {} } } } },
    end: { type: "final" },
  },
}).provide({
  guards: { isReady: () => false, isLate: () => false, isFine: () => true },
  delays: { aWhile: 1_000 },
});
