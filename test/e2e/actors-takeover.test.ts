// Transfers between accounts on a Postgres: the leader is killed with -9 in the middle of them, with a worker, and the other coordinator goes
// on with their states, their mail and their timers.
import { usePostgresDatabase } from "../support/postgres-database.ts";
import { runUntil } from "../support/run-observer.ts";
import { Bank, expectAllKept, expectSendsOnce, expectTimersOnce, outcomeOf, writeBank } from "./bank.ts";
import { withTwoCoordinators } from "./two-coordinators.ts";

describe("actors on a Postgres", () => {
  const database = usePostgresDatabase();

  it("go on under another leader: money, messages and timers", async () => {
    await withTwoCoordinators(
      database,
      { "worker.slots": 3 },
      async ({ cluster, killLeader, untilOtherLeads }) => {
        await writeBank(cluster);
        const bank = new Bank(cluster);
        const leaves = bank.launchWorker();
        bank.launchWorker();
        await bank.give(0);
        await bank.give(1);
        await runUntil(cluster, ({ done }) => done > 0);
        await killLeader();
        await leaves.kill();
        await untilOtherLeads();
        await bank.give(2);
        await bank.give(3);
        const outcome = await outcomeOf(bank);
        expectAllKept(outcome);
        expectTimersOnce(outcome);
        expectSendsOnce(outcome);
      },
    );
  });
});
