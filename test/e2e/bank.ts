// Accounts that move money between each other, as durable actors, for tests with real processes: each transfer takes from one and sends to
// another, sets a timer, spawns a machine that ends, and has a promise executed. A transfer that is lost, or done twice, shows in their counts.
import { readFileSync } from "node:fs";
import { writeFile } from "node:fs/promises";
import { expect } from "chai";
import type { Cluster, WorkerOptions } from "../support/cluster.ts";
import { eventually } from "../support/eventually.ts";

const ACCOUNTS = 6;
const CENTS_EACH = 1_000;
const BANK_MANIFEST = "bank.toml";
/** Version 2, whose states have another shape. */
export const NEWER_BANK = "bank-2.toml";

type BankWorker = ReturnType<Cluster["launchWorker"]>;

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

/** It counts in tenths of a cent, and goes on from accounts that count in cents. */
const NEWER_MODULE = MODULE.replaceAll("event.cents", "10 * event.cents")
  .replace("cents: 10 * event.cents, n: event.n }))", "cents: event.cents, n: event.n }))")
  .replace("cents: ${CENTS_EACH}, gave", "cents: ${10 * CENTS_EACH}, gave")
  .replace(
    "defineActor({ machine })",
    `defineActor({
      machine,
      migrations: {
        1: (snapshot, { source }) =>
          source === "" ? { ...snapshot, context: { ...snapshot.context, cents: 10 * snapshot.context.cents } } : snapshot,
      },
    })`,
  );

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
  await writeFile(cluster.file(BANK_MANIFEST), MANIFEST.replace("bank.js", "bank.mjs"));
  await writeFile(cluster.file("bank-2.mjs"), NEWER_MODULE);
  const newer = MANIFEST.replace("bank.js", "bank-2.mjs").replace("state_version = 1", "state_version = 2");
  await writeFile(cluster.file(NEWER_BANK), newer.replace('version = "1"', 'version = "2"'));
}

async function accountsOf(cluster: Cluster): Promise<Account[]> {
  const { stdout, stderr } = await cluster.run("actor", "list", "--json");
  expect(stderr).to.equal("");
  return stdout
    .split("\n")
    .slice(0, -1)
    .map((line) => JSON.parse(line) as { readonly key: string; readonly context: Account })
    .filter(({ key }) => key.split("/").length === 2)
    .map(({ context }) => context);
}

const TRANSFERS = 60;
const ROUNDS = 4;

export interface Transfer {
  readonly n: number;
  readonly account: string;
  readonly to: string;
  readonly cents: number;
}

/** Each account gives to each other one. */
function transfersOf(round: number): Transfer[] {
  const each = TRANSFERS / ROUNDS;
  return Array.from({ length: each }, (_, at) => {
    const n = round * each + at;
    const from = n % ACCOUNTS;
    const to = (from + 1 + (Math.floor(n / ACCOUNTS) % (ACCOUNTS - 1))) % ACCOUNTS;
    return { n, account: String(from), to: String(to), cents: 1 + (n % 7) };
  });
}

/** Transfers that are given, in rounds, to a cluster that executes them. */
export class Bank {
  readonly cluster: Cluster;
  readonly given: Transfer[] = [];

  constructor(cluster: Cluster) {
    this.cluster = cluster;
  }

  async startWorker(parts: WorkerOptions["env"] = {}, manifest = BANK_MANIFEST): Promise<BankWorker> {
    return this.cluster.startWorker(this.#options(parts, manifest));
  }

  /** One that has only just been started. */
  launchWorker(): BankWorker {
    return this.cluster.launchWorker(this.#options({}, BANK_MANIFEST));
  }

  #options(env: WorkerOptions["env"], manifest: string): WorkerOptions {
    return { args: ["--plugin", manifest], env: { BANK_LOG: this.log, ...env } };
  }

  get log(): string {
    return this.cluster.file("bank.log");
  }

  async give(round: number): Promise<void> {
    const transfers = transfersOf(round);
    this.given.push(...transfers);
    const events = transfers.map((transfer) => ({
      ...transfer,
      type: "give",
      id: `give-${transfer.n}`,
    }));
    const flags = ["--plugin", BANK_MANIFEST, "--key-field", "account", "--event-id-field", "id"];
    await this.cluster.submit(events, ...flags);
    // A client that does not know whether its events have arrived sends them again.
    await this.cluster.submit(events, ...flags);
  }

  /** All accounts, when nothing is under way any more. */
  async settled(): Promise<Account[]> {
    return eventually("all transfers to be over", async () => {
      const status = await this.cluster.ask((client) => client.status());
      expect(status, "nothing fails").to.include({ failed: 0 });
      const isOver = status.pending === 0 && status.running === 0 && (status.timers?.armed ?? 0) === 0;
      const inside = status.inside ?? { pending: 0, running: 0 };
      if (!isOver || inside.pending + inside.running > 0) return undefined;
      const accounts = await accountsOf(this.cluster);
      return accounts.length === ACCOUNTS && status.done === this.given.length ? accounts : undefined;
    });
  }
}

const sorted = (numbers: readonly number[]): number[] => [...numbers].sort((a, b) => a - b);
const numbersOf = (transfers: readonly Transfer[]): number[] => sorted(transfers.map(({ n }) => n));

/** The accounts at the end, the transfers that were given, and the lines of the named actions. */
export interface Outcome {
  readonly accounts: readonly Account[];
  readonly given: readonly Transfer[];
  readonly told: string;
}

export async function outcomeOf(bank: Bank): Promise<Outcome> {
  const accounts = await bank.settled();
  return { accounts, given: bank.given, told: readFileSync(bank.log, "utf8") };
}

/** `unit`: the accounts count in so many parts of a cent. */
export function expectAllKept({ accounts, given, told }: Outcome, unit = 1): void {
  const sum = accounts.reduce((cents, account) => cents + account.cents, 0);
  expect(sum, "money is neither made nor lost").to.equal(unit * ACCOUNTS * CENTS_EACH);
  for (const { id, cents, gave, audited, receipts } of accounts) {
    const own = given.filter(({ account }) => account === id);
    const gained = given.filter(({ to }) => to === id).reduce((all, one) => all + one.cents, 0);
    const spent = own.reduce((all, one) => all + one.cents, 0);
    const kept = unit * (CENTS_EACH + gained - spent);
    expect(cents, `account ${id} is the fold of its events`).to.equal(kept);
    expect([...gave], `in order, at ${id}`).to.deep.equal(numbersOf(own));
    expect(sorted(audited), `machines within ${id}`).to.deep.equal(numbersOf(own));
    expect(sorted(receipts), `promises of ${id}`).to.deep.equal(numbersOf(own));
  }
  // Named actions are executed at least once, under one id each.
  const lines = [...new Set(told.split("\n").slice(0, -1))].map((line) => line.split(" "));
  expect(lines).to.have.length(given.length);
  expect(new Set(lines.map(([id]) => id)).size).to.equal(given.length);
}

export function expectTimersOnce({ accounts, given }: Outcome): void {
  for (const { id, rang } of accounts)
    expect(sorted(rang), id).to.deep.equal(numbersOf(given.filter(({ account }) => account === id)));
}

export function expectSendsOnce({ accounts, given }: Outcome): void {
  for (const { id, took } of accounts) {
    expect(sorted(took), id).to.deep.equal(numbersOf(given.filter(({ to }) => to === id)));
    for (const { id: from } of accounts) {
      const sent = given.filter(({ account, to }) => account === from && to === id);
      const heard = took.filter((n) => sent.some((one) => one.n === n));
      expect(heard, `from ${from} to ${id}, in order`).to.deep.equal(numbersOf(sent));
    }
  }
}
