// Transfers between accounts while a worker and the coordinator are killed with -9, between two of them and in the middle, and a worker
// drains. The states that are left are the evidence: what was lost, or done twice, is in none of them, or in one of them twice.
import { readFileSync } from "node:fs";
import { expect } from "chai";
import { withCluster } from "../support/cluster.ts";
import type { Cluster } from "../support/cluster.ts";
import { eventually } from "../support/eventually.ts";
import { ACCOUNTS, accountsOf, CENTS_EACH, writeBank } from "./bank.ts";
import type { Account } from "./bank.ts";

const TRANSFERS = 60;
const ROUNDS = 4;

interface Transfer {
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

class Bank {
  readonly cluster: Cluster;
  readonly given: Transfer[] = [];

  constructor(cluster: Cluster) {
    this.cluster = cluster;
  }

  async startWorker(): Promise<Awaited<ReturnType<Cluster["startWorker"]>>> {
    const env = { BANK_LOG: this.log };
    return this.cluster.startWorker({ args: ["--plugin", "bank.toml"], env });
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
    const flags = ["--plugin", "bank.toml", "--key-field", "account", "--event-id-field", "id"];
    await this.cluster.submit(events, ...flags);
    // A client that does not know whether its events have arrived sends them again.
    await this.cluster.submit(events, ...flags);
  }

  /** All accounts, when nothing is under way any more. */
  async settled(): Promise<Account[]> {
    return eventually("all transfers to be over", async () => {
      const { stdout } = await this.cluster.run("status", "--json");
      const status = JSON.parse(stdout.split("\n")[0] ?? "") as Status;
      expect(status, "nothing fails").to.include({ failed: 0 });
      const isOver = status.pending === 0 && status.running === 0 && (status.timers?.armed ?? 0) === 0;
      const inside = status.inside ?? { pending: 0, running: 0 };
      if (!isOver || inside.pending + inside.running > 0) return undefined;
      const accounts = await accountsOf(this.cluster);
      return accounts.length === ACCOUNTS && status.done === this.given.length ? accounts : undefined;
    });
  }
}

interface Status {
  readonly pending: number;
  readonly running: number;
  readonly done: number;
  readonly inside: {
    readonly pending: number;
    readonly running: number;
  } | null;
  readonly timers: { readonly armed: number } | null;
}

const sorted = (numbers: readonly number[]): number[] => [...numbers].sort((a, b) => a - b);
const numbersOf = (transfers: readonly Transfer[]): number[] => sorted(transfers.map(({ n }) => n));

describe("witnesses", () => {
  let accounts: readonly Account[] = [];
  let given: readonly Transfer[] = [];
  let told = "";

  before(async () => {
    await withCluster({ "worker.slots": 3 }, async (cluster) => {
      await writeBank(cluster);
      const bank = new Bank(cluster);
      const coordinator = await cluster.startCoordinator();
      const first = await bank.startWorker();
      const second = await bank.startWorker();
      await bank.give(0);
      await first.kill();
      await bank.give(1);
      await bank.startWorker();
      await coordinator.kill();
      await cluster.startCoordinator();
      await bank.give(2);
      second.send("SIGTERM");
      await bank.give(3);
      accounts = await bank.settled();
      given = bank.given;
      told = readFileSync(bank.log, "utf8");
    });
  });

  it("actor_survives_everything", () => {
    const sum = accounts.reduce((cents, account) => cents + account.cents, 0);
    expect(sum, "money is neither made nor lost").to.equal(ACCOUNTS * CENTS_EACH);
    for (const { id, cents, gave, audited, receipts } of accounts) {
      const own = given.filter(({ account }) => account === id);
      const gained = given.filter(({ to }) => to === id).reduce((all, one) => all + one.cents, 0);
      const spent = own.reduce((all, one) => all + one.cents, 0);
      expect(cents, `account ${id} is the fold of its events`).to.equal(CENTS_EACH + gained - spent);
      expect([...gave], `in order, at ${id}`).to.deep.equal(numbersOf(own));
      expect(sorted(audited), `machines within ${id}`).to.deep.equal(numbersOf(own));
      expect(sorted(receipts), `promises of ${id}`).to.deep.equal(numbersOf(own));
    }
    // Named actions are executed at least once, under one id each.
    const lines = [...new Set(told.split("\n").slice(0, -1))].map((line) => line.split(" "));
    expect(lines).to.have.length(given.length);
    expect(new Set(lines.map(([id]) => id)).size).to.equal(given.length);
  });

  it("actor_timer_fires_once", () => {
    for (const { id, rang } of accounts)
      expect(sorted(rang), id).to.deep.equal(numbersOf(given.filter(({ account }) => account === id)));
  });

  it("actor_send_exactly_once", () => {
    for (const { id, took } of accounts) {
      expect(sorted(took), id).to.deep.equal(numbersOf(given.filter(({ to }) => to === id)));
      for (const { id: from } of accounts) {
        const sent = given.filter(({ account, to }) => account === from && to === id);
        const heard = took.filter((n) => sent.some((one) => one.n === n));
        expect(heard, `from ${from} to ${id}, in order`).to.deep.equal(numbersOf(sent));
      }
    }
  });
});
