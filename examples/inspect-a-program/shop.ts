// A program with actors, to be looked at while it runs: a shop that takes orders, each of which is an actor with a chart of its own. It tells
// of them by `@statelyai/inspect`, as that package's documents say, to the address that it is given:
//
//     rollout inspect --listen
//     node examples/inspect-a-program/shop.ts 'ws://127.0.0.1:PORT/?token=…'
import { createWebSocketInspector } from "@statelyai/inspect";
import { assign, createActor, fromPromise, sendTo, setup, stopChild } from "xstate";
import type { ActorRefFrom } from "xstate";

const order = setup({
  types: {
    context: {} as { readonly number: number; readonly tries: number },
    input: {} as { readonly number: number },
    events: {} as { readonly type: "order.paid" | "order.cancelled" },
  },
  actors: {
    /** Every third card is refused. */
    charge: fromPromise(async ({ input }: { input: { number: number; tries: number } }) => {
      if (input.number % 3 === 0 && input.tries === 0) throw new Error("the card was refused");
      return { receipt: `R-${input.number}` };
    }),
  },
  guards: { mayTryAgain: ({ context }) => context.tries < 2 },
  actions: { countTry: assign({ tries: ({ context }) => context.tries + 1 }) },
  delays: { patience: 400, packing: 600, labelling: 300, driving: 900 },
}).createMachine({
  id: "order",
  context: ({ input }) => ({ number: input.number, tries: 0 }),
  initial: "Paying",
  on: { "order.cancelled": ".Cancelled" },
  states: {
    Paying: {
      invoke: {
        src: "charge",
        input: ({ context }) => context,
        onDone: "Packing",
        onError: [{ guard: "mayTryAgain", target: "Refused", actions: "countTry" }, { target: "Cancelled" }],
      },
    },
    Refused: { after: { patience: "Paying" } },
    Packing: {
      type: "parallel",
      states: {
        parcel: {
          initial: "Open",
          states: { Open: { after: { packing: "Closed" } }, Closed: { type: "final" } },
        },
        label: {
          initial: "Blank",
          states: { Blank: { after: { labelling: "Printed" } }, Printed: { type: "final" } },
        },
      },
      onDone: "OnTheWay",
    },
    OnTheWay: { after: { driving: "Delivered" } },
    Delivered: { type: "final" },
    Cancelled: { type: "final" },
  },
});

interface ShopContext {
  readonly taken: number;
  readonly orders: readonly ActorRefFrom<typeof order>[];
}

const shop = setup({
  types: {
    context: {} as ShopContext,
    events: {} as { readonly type: "shop.close" | "shop.open" },
  },
  actors: { order },
  delays: { nextOrder: 700 },
  actions: {
    takeOrder: assign(({ context, spawn }) => {
      const taken = context.taken + 1;
      const ref = spawn("order", { id: `order-${taken}`, input: { number: taken } });
      return { taken, orders: [...context.orders, ref].slice(-5) };
    }),
  },
}).createMachine({
  id: "shop",
  context: { taken: 0, orders: [] },
  initial: "Open",
  states: {
    Open: {
      after: { nextOrder: { target: "Open", reenter: true, actions: "takeOrder" } },
      on: { "shop.close": "Closing" },
    },
    Closing: {
      entry: [
        // The last order is not wanted any more.
        sendTo(({ context }) => context.orders.at(-1) ?? "none", { type: "order.cancelled" }),
        stopChild(({ context }) => context.orders[0] ?? "none"),
      ],
      after: { 2000: "Closed" },
    },
    Closed: { type: "final" },
  },
});

const [url, orders = "20"] = process.argv.slice(2);
if (url === undefined) throw new Error("give the address that `rollout inspect --listen` has said");

const inspector = createWebSocketInspector({ url });
const actor = createActor(shop, { inspect: inspector.inspect });
actor.subscribe({
  next: ({ context, value }) => {
    if (value === "Open" && context.taken >= Number(orders)) actor.send({ type: "shop.close" });
  },
  // It tells of the last step when the loop comes to it.
  complete: () => setTimeout(() => inspector.stop(), 200),
});
actor.start();
