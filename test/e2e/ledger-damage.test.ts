// A row of the ledger that is damaged while everybody works: met by a leader in full swing, it ends the coordinator as damage
// and as nothing else.
import { expect } from "chai";
import { systemClock } from "../../src/base/clock.ts";
import { ITEMS_PREFIX } from "../../src/storage/keys.ts";
import { openLevelStore } from "../../src/storage/level/level-store.ts";
import { prefixRange } from "../../src/storage/store.ts";
import type { Cluster } from "../support/cluster.ts";
import { withCluster } from "../support/cluster.ts";

/** More than a leader has in memory of them at once, so that the last one is met in the middle of the work. */
const ITEMS = 12_000;

describe("a ledger with a damaged row", () => {
  it("ends its coordinator with exit code 6 and the key, whatever is on its way to the disk", () =>
    withCluster({ "worker.slots": 64 }, async (cluster) => {
      const first = await cluster.startCoordinator();
      await cluster.submit(Array.from({ length: ITEMS }, (_, at) => at));
      await first.stop();
      const key = await damageLastItem(cluster);

      const coordinator = await cluster.startCoordinator();
      const worker = { env: { ROLLOUT_MOCK_SLEEP: "0ms" } };
      for (let count = 0; count < 2; count++) cluster.launchWorker(worker);
      const { code } = await coordinator.ended;
      const said = coordinator.stderr.at(-1);
      expect(said).to.match(/^error: the database .* is damaged at /);
      expect(said).to.include(key);
      expect(code).to.equal(6);
    }));
});

/** Returns its key. */
async function damageLastItem(cluster: Cluster): Promise<string> {
  const path = cluster.file("data/rollout.db");
  const store = await openLevelStore({ path, holderName: "a test", clock: systemClock });
  const rows = await store.scan({ ...prefixRange(ITEMS_PREFIX), limit: ITEMS });
  const { key = "", value = new Uint8Array() } = rows.at(-1) ?? {};
  const puts = [
    { key, value: Uint8Array.from(value, (byte, at) => (at === value.length - 1 ? byte ^ 1 : byte)) },
  ];
  await store.commit({ puts, deletes: [], expect: [], durability: "sync" });
  await store.close();
  return key;
}
