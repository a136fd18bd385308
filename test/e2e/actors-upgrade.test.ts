// Workers get code whose states have another shape, one after the other, while transfers go on: whoever has the older code is given no account
// that the newer has written, and each account is migrated once.
import { QUICK, withCluster } from "../support/cluster.ts";
import {
  Bank,
  expectAllKept,
  expectSendsOnce,
  expectTimersOnce,
  NEWER_BANK,
  outcomeOf,
  writeBank,
} from "./bank.ts";

describe("actors whose code goes from state_version 1 to 2 under load", () => {
  it("go on by workers of both, and end with states of 2, nothing lost and nothing twice", async () => {
    await withCluster({ ...QUICK, "worker.slots": 3 }, async (cluster) => {
      await writeBank(cluster);
      const bank = new Bank(cluster);
      await cluster.startCoordinator();
      const older = await bank.startWorker();
      await bank.give(0);
      await bank.startWorker({}, NEWER_BANK);
      await bank.give(1);
      const another = await bank.startWorker();
      await bank.give(2);
      await another.kill();
      older.send("SIGTERM");
      await bank.give(3);
      const outcome = await outcomeOf(bank);
      expectAllKept(outcome, 10);
      expectTimersOnce(outcome);
      expectSendsOnce(outcome);
    });
  });
});
