// Accounts that move money between each other, as durable actors, for tests with real processes: each transfer takes from one and sends to
// another, sets a timer, spawns a machine that ends, and has a promise executed. A transfer that is lost, or done twice, shows in their counts.
import { writeFile } from "node:fs/promises";
import { expect } from "chai";
import type { Cluster } from "../support/cluster.ts";

export const ACCOUNTS = 6;
export const CENTS_EACH = 1_000;

const MODULE = `
import { actor, defineActor } from "rollout/actors";
import { appendFileSync } from "node:fs";
import { assign, fromPromise, raise, sendTo, setup, spawnChild, stopChild } from "xstate";

const audit = setup({}).createMachine({
  context: ({ input }) => ({ n: input.n }),
  initial: "open",
  states: { open: { after: { 20: "closed" } }, closed: { type: "final" } },
  output: ({ context }) => context.n,
});

const machine = setup({
  actors: {
    audit,
    receipt: fromPromise(async ({ input }) => input.n),
  },
  actions: { tell: (given, params) => appendFileSync(process.env.BANK_LOG, given.id + " " + given.key + " " + params.n + "\\n") },
}).createMachine({
  context: ({ input }) => ({ id: input.id, cents: ${CENTS_EACH}, gave: [], took: [], rang: [], audited: [], receipts: [] }),
  on: {
    give: {
      actions: [
        assign({
          cents: ({ context, event }) => context.cents - event.cents,
          gave: ({ context, event }) => [...context.gave, event.n],
        }),
        sendTo(({ event }) => actor("account", String(event.to)), ({ event }) => ({ type: "take", cents: event.cents, n: event.n })),
        raise(({ event }) => ({ type: "ring", n: event.n }), { delay: 300 }),
        spawnChild("audit", { id: ({ event }) => "audit" + event.n, input: ({ event }) => ({ n: event.n }) }),
        spawnChild("receipt", { id: ({ event }) => "receipt" + event.n, input: ({ event }) => ({ n: event.n }) }),
        { type: "tell", params: ({ event }) => ({ n: event.n }) },
      ],
    },
    take: {
      actions: assign({
        cents: ({ context, event }) => context.cents + event.cents,
        took: ({ context, event }) => [...context.took, event.n],
      }),
    },
    ring: { actions: assign({ rang: ({ context, event }) => [...context.rang, event.n] }) },
    "xstate.done.actor.*": {
      actions: [
        assign({
          audited: ({ context, event }) => event.actorId.startsWith("audit") ? [...context.audited, event.output] : context.audited,
          receipts: ({ context, event }) => event.actorId.startsWith("receipt") ? [...context.receipts, event.output] : context.receipts,
        }),
        stopChild(({ event }) => event.actorId),
      ],
    },
  },
});
export const account = defineActor({ machine });
`;

const MANIFEST = `name = "bank"
version = "1"
backend = "actor"

[actor]
module = "bank.js"
types = ["account"]
state_version = 1
`;

export interface Account {
  readonly id: string;
  readonly cents: number;
  readonly gave: readonly number[];
  readonly took: readonly number[];
  readonly rang: readonly number[];
  readonly audited: readonly number[];
  readonly receipts: readonly number[];
}

export async function writeBank(cluster: Cluster): Promise<void> {
  await writeFile(cluster.file("bank.mjs"), MODULE);
  await writeFile(cluster.file("bank.toml"), MANIFEST.replace("bank.js", "bank.mjs"));
}

export async function accountsOf(cluster: Cluster): Promise<Account[]> {
  const { stdout, stderr } = await cluster.run("actor", "list", "--json");
  expect(stderr).to.equal("");
  return stdout
    .split("\n")
    .slice(0, -1)
    .map((line) => JSON.parse(line) as { readonly key: string; readonly context: Account })
    .filter(({ key }) => key.split("/").length === 2)
    .map(({ context }) => context);
}
