import { systemClock } from "../../../../src/base/clock.ts";
import { openLevelStore } from "../../../../src/storage/level/level-store.ts";
import type { Store } from "../../../../src/storage/store.ts";
import { useTemporaryDirectory } from "../../../support/temporary-directory.ts";
import { ActorRun } from "./actor-run.ts";

const STEPS = 80;
/** More for a campaign. */
const SEEDS = Number(process.env["ACTOR_SEEDS"] ?? 2);
const FIRST = Number(process.env["ACTOR_SEED"] ?? 1);

async function walk(seed: number, store?: Store): Promise<void> {
  try {
    const run = await ActorRun.start(seed, store);
    for (let step = 0; step < STEPS; step++) await run.step();
    await run.finish();
  } catch (error) {
    throw new Error(`seed ${seed}: ${String(error)}`, { cause: error });
  }
}

describe("actors, whatever happens to them,", () => {
  const directory = useTemporaryDirectory();

  it("hear each message and each timer once, and only ends that they wait for (in memory)", async () => {
    for (let seed = FIRST; seed < FIRST + SEEDS; seed++) await walk(seed);
  });

  it("do so over a database on disk", async () => {
    const path = directory.file("store");
    const store = await openLevelStore({ path, holderName: "test", clock: systemClock });
    try {
      await walk(2_001, store);
    } finally {
      await store.close();
    }
  });
});
