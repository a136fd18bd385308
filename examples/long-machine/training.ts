// A long computation as a machine: prepares, trains for as many epochs as the item says, and is done. Each epoch is a
// transition, so whenever a worker is taken away, another one goes on in the epoch that this one was in.
import { appendFileSync } from "node:fs";
import { assign, setup } from "xstate";

interface Item {
  readonly id: string;
  readonly epochs: number;
  /** How long an epoch takes, in milliseconds: a stand-in for the work. */
  readonly epoch_ms: number;
  /** A file to which each epoch adds a line: to see that none is done twice. */
  readonly journal?: string;
}

interface Training extends Item {
  readonly epoch: number;
  readonly loss: number;
}

/** The share of the loss that is left after an epoch. */
const PROGRESS = 0.8;

export const training = setup({
  types: { context: {} as Training, input: {} as Item },
  delays: { anEpoch: ({ context }) => context.epoch_ms },
  guards: { isTrained: ({ context }) => context.epoch >= context.epochs },
  actions: {
    learn: assign({
      epoch: ({ context }) => context.epoch + 1,
      loss: ({ context }) => context.loss * PROGRESS,
    }),
    note: ({ context: { id, epoch, loss, journal } }) => {
      console.log(`${id}: epoch ${epoch}, loss ${loss.toFixed(4)}`);
      if (journal !== undefined) appendFileSync(journal, `${id} ${epoch}\n`);
    },
  },
}).createMachine({
  id: "training",
  version: "1",
  context: ({ input }) => ({ ...input, epoch: 0, loss: 1 }),
  initial: "preparing",
  states: {
    preparing: { after: { 50: "training" } },
    training: {
      always: { guard: "isTrained", target: "done" },
      after: { anEpoch: { target: "training", reenter: true, actions: ["learn", "note"] } },
    },
    done: { type: "final" },
  },
  output: ({ context: { epochs, loss } }) => ({ epochs, loss: Number(loss.toFixed(6)) }),
});
