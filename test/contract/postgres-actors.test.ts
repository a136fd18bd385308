// The room of keys with actors over a Postgres, as over the store in memory and the one on disk: test/unit/coordinator/keys/actor-run.test.ts.
import { usePostgresDatabase } from "../support/postgres-database.ts";
import { openTestStore } from "../support/postgres-store.ts";
import { ActorRun } from "../unit/coordinator/keys/actor-run.ts";

const SEED = 3_001;
const STEPS = 40;

describe("actors over a Postgres", () => {
  const database = usePostgresDatabase();

  it("receive each message and each timer once, and the ends only of children and promises that they wait for", async () => {
    const store = await openTestStore(database.url);
    try {
      const run = await ActorRun.start(SEED, store);
      for (let step = 0; step < STEPS; step++) await run.step();
      await run.finish();
    } finally {
      await store.close();
    }
  });
});
