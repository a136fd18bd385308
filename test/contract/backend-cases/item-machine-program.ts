// The machine that executes items of the backends' contract as the `machine` backend has it. An item that saves something
// does so by being in a state, and goes on from there after a while.
import { appendFileSync } from "node:fs";
import { fromPromise, setup } from "xstate";
import { behave } from "../../support/item-behaviour.ts";
import type { ItemBehaviour } from "../../support/item-behaviour.ts";

/** Long enough for the test to end the attempt before. */
const WAIT_MS = 2_000;

export const machine = setup({
  types: {
    context: {} as { readonly item: ItemBehaviour; readonly saved: string },
    input: {} as ItemBehaviour,
  },
  actors: {
    behaving: fromPromise<unknown, ItemBehaviour>(async ({ input }) => {
      const behaved = await behave(input, {
        checkpoint: "",
        save: () => undefined,
        complain: (words) => console.error(words),
        ignoreEnd: () => {
          for (const signal of ["SIGTERM", "SIGINT", "SIGHUP"]) process.on(signal, () => undefined);
        },
      });
      if (behaved.kind === "failed") throw new Error(behaved.words);
      // With its quotes as many bytes as were asked for.
      return behaved.kind === "bytes" ? behaved.bytes.subarray(2).toString() : behaved.value;
    }),
  },
  guards: { saves: ({ context }) => context.item.do === "save" },
  actions: {
    tell: ({ context: { item } }) => {
      if (item.do === "save") appendFileSync(item.saved, "saved\n");
    },
  },
}).createMachine({
  id: "contract",
  version: "1",
  context: ({ input }) => ({ item: input, saved: input.do === "save" ? input.checkpoint : "" }),
  initial: "deciding",
  states: {
    deciding: { always: [{ guard: "saves", target: "saved" }, { target: "behaving" }] },
    saved: { entry: "tell", after: { [WAIT_MS]: "over" } },
    behaving: {
      invoke: { src: "behaving", input: ({ context }) => context.item, onDone: "done" },
    },
    over: { type: "final", output: ({ context }) => context.saved },
    done: { type: "final", output: ({ event }) => (event as unknown as { output: unknown }).output },
  },
  output: ({ event }) => (event as { readonly output?: unknown }).output,
});
