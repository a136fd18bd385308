import { systemClock } from "../../../../src/base/clock.ts";
import { openLevelStore } from "../../../../src/storage/level/level-store.ts";
import { useTemporaryDirectory } from "../../../support/temporary-directory.ts";
import { KeyRun } from "./key-run.ts";

const STEPS = 40;

async function walk(seed: number, options: Parameters<typeof KeyRun.start>[1] = {}): Promise<void> {
  try {
    const run = await KeyRun.start(seed, options);
    for (let step = 0; step < STEPS; step++) await run.step();
    await run.finish();
    await run.complete();
  } catch (error) {
    throw new Error(`seed ${seed}: ${String(error)}`, { cause: error });
  }
}

describe("items of keys, whatever happens to them,", () => {
  const directory = useTemporaryDirectory();

  it("run one at a time, in order, with a state that is committed once (in memory)", async () => {
    for (let seed = 1; seed <= 3; seed++) await walk(seed);
  });

  it("go on behind what failed where that is asked for", async () => {
    for (let seed = 101; seed <= 101; seed++) await walk(seed, { keys: { skipsFailed: true } });
  });

  it("do so over a database on disk", async () => {
    const store = await openLevelStore({
      path: directory.file("store"),
      holderName: "test",
      clock: systemClock,
    });
    try {
      await walk(201, { store });
    } finally {
      await store.close();
    }
  });
});
