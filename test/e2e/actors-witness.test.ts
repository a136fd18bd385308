// Transfers between accounts while a worker and the coordinator are killed with -9, between two of them and in the middle, a link is cut, and a
// worker drains. The states that are left are the evidence: what was lost, or done twice, is in none of them, or in one of them twice.
import { withCluster } from "../support/cluster.ts";
import { startTcpProxy } from "../support/tcp-proxy.ts";
import { Bank, expectAllKept, expectSendsOnce, expectTimersOnce, outcomeOf, writeBank } from "./bank.ts";
import type { Outcome } from "./bank.ts";
import { parseAddress } from "../../src/base/address.ts";

describe("witnesses", () => {
  let outcome: Outcome = { accounts: [], given: [], told: "" };

  before(async () => {
    await withCluster({ "worker.slots": 3 }, async (cluster) => {
      await writeBank(cluster);
      const bank = new Bank(cluster);
      const coordinator = await cluster.startCoordinator();
      const link = await startTcpProxy(parseAddress(cluster.address)?.port ?? 0);
      const first = await bank.startWorker();
      const second = await bank.startWorker();
      await bank.startWorker({ ROLLOUT_WORKER_COORDINATOR_ADDR: link.address });
      await bank.give(0);
      await first.kill();
      await bank.give(1);
      await bank.startWorker();
      link.cut();
      await coordinator.kill();
      await cluster.startCoordinator();
      await bank.give(2);
      second.send("SIGTERM");
      link.heal();
      await bank.give(3);
      outcome = await outcomeOf(bank);
      await link.close();
    });
  });

  it("actor_survives_everything", () => expectAllKept(outcome));

  it("actor_timer_fires_once", () => expectTimersOnce(outcome));

  it("actor_send_exactly_once", () => expectSendsOnce(outcome));
});
