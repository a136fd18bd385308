// An asynchronous standby that was promoted lacks what the primary had answered as committed.
import { expect } from "chai";
import { StorageLease } from "../../src/coordinator/lead/lease.ts";
import { laterOf, NO_EXTENT } from "../../src/coordinator/lead/store-memory.ts";
import type { Remembered, StoreMemory } from "../../src/coordinator/lead/store-memory.ts";
import type { Store } from "../../src/storage/store.ts";
import { eventually } from "../support/eventually.ts";
import { query } from "../support/postgres-database.ts";
import { PostgresPair } from "../support/postgres-pair.ts";
import { openTestStore } from "../support/postgres-store.ts";
import { failureOf } from "../support/rejection.ts";
import { newTestCluster, startCoordinator } from "../support/test-coordinator.ts";
import type { StartedCoordinator, TestCluster } from "../support/test-coordinator.ts";

const EPOCHS_PER_BRANCH = 65_536;

function newMemory(): StoreMemory {
  let known: Remembered = { ...NO_EXTENT, accepted: 0 };
  return {
    recall: async () => known,
    note: (seen) => void (known = laterOf(known, { ...NO_EXTENT, accepted: known.accepted, ...seen })),
    adopt: (accepted) => void (known = laterOf(known, accepted)),
    keep: async () => undefined,
    accept: (extent) => void (known = { ...extent, epoch: known.epoch, accepted: known.accepted + 1 }),
  };
}

describe("a Postgres whose asynchronous standby was promoted", () => {
  let pair: PostgresPair;
  let cluster: TestCluster;
  let store: Store;
  const memory = newMemory();

  before(async () => {
    pair = await PostgresPair.start({ synchronous_standby_names: "" });
    cluster = await newTestCluster();
    const primary = await openTestStore(pair.primary.url, cluster.runId);
    const first = await startCoordinator({ ...cluster, store: primary }, { memory });
    await first.coordinator.stop();
    await pair.received();
    await query(pair.standby.url, "ALTER SYSTEM SET primary_conninfo = ''");
    await query(pair.standby.url, "SELECT pg_reload_conf()");
    const followers = "SELECT FROM pg_stat_replication";
    await eventually("nobody follows", async () => (await query(pair.primary.url, followers)).length === 0);
    // Leaderships that the standby does not hear of.
    for (let time = 0; time < 2; time++) {
      const { coordinator } = await startCoordinator({ ...cluster, store: primary }, { memory });
      await coordinator.stop();
    }
    await primary.close();
    await pair.primary.halt("SIGQUIT");
    await pair.promote();
    await eventually("the standby is the primary", async () => {
      const [row] = await query(pair.standby.url, "SELECT pg_is_in_recovery() AS waits");
      return row?.["waits"] === false;
    });
    store = await openTestStore(pair.standby.url, cluster.runId);
  });

  after(async () => {
    await store.close();
    await pair.close();
  });

  const lead = (options: Parameters<typeof startCoordinator>[1] = {}): Promise<StartedCoordinator> =>
    startCoordinator({ ...cluster, store }, options);

  it("is not led by a host that has seen more of it, and is left as it was", async () => {
    const claims = await new StorageLease(store, "a look").read();
    expect(claims.lease).to.deep.include({ epoch: 0, holder: null });
    const error = await failureOf(lead({ memory }));
    expect(error).to.include({ code: "store_rolled_back" });
    expect(await new StorageLease(store, "a look").read()).to.deep.equal(claims);
  });

  it("is led by one that has seen nothing, above every epoch that was lost, and says so", async () => {
    const { generation } = (await new StorageLease(store, "a look").read()).lease ?? {};
    expect(generation, "it has another timeline").to.not.equal(store.generation);
    const { coordinator, events } = await lead();
    expect(coordinator.epoch).to.be.at.least(EPOCHS_PER_BRANCH);
    expect(events.of("store_generation_changed")).to.deep.equal([
      { epoch: coordinator.epoch, from: generation, to: store.generation },
    ]);
    await coordinator.stop();
    const next = await lead();
    expect(next.coordinator.epoch).to.equal(coordinator.epoch + 1);
    expect(next.events.of("store_generation_changed")).to.deep.equal([]);
    await next.coordinator.stop();
  });
});
