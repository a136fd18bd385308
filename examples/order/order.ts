// An order, from its cart to its delivery: a durable actor for each order, whose events come from a file. docs/actors.md tells of it.
import { defineActor } from "rollout/actors";
import type { ActorInput } from "rollout/actors";
import { assign, setup } from "xstate";

interface Line {
  readonly name: string;
  readonly cents: number;
}

export const order = defineActor({
  machine: setup({
    types: {
      context: {} as { id: string; lines: Line[]; cents: number },
      events: {} as
        | ({ type: "add" } & Line)
        | { type: "pay"; cents: number }
        | { type: "ship" }
        | { type: "cancel" },
      input: {} as ActorInput,
    },
    guards: {
      isEnough: ({ context, event }) => event.type === "pay" && event.cents >= context.cents,
    },
    actions: {
      addLine: assign(({ context, event }) =>
        event.type === "add"
          ? {
              lines: [...context.lines, { name: event.name, cents: event.cents }],
              cents: context.cents + event.cents,
            }
          : {},
      ),
    },
  }).createMachine({
    context: ({ input }) => ({ id: input.id, lines: [], cents: 0 }),
    initial: "cart",
    states: {
      cart: {
        tags: "open",
        on: { add: { actions: "addLine" }, pay: { guard: "isEnough", target: "paid" }, cancel: "cancelled" },
      },
      paid: { tags: "open", on: { ship: "shipped", cancel: "cancelled" } },
      shipped: { type: "final" },
      cancelled: { type: "final" },
    },
    output: ({ context }) => ({ cents: context.cents }),
  }),
});
