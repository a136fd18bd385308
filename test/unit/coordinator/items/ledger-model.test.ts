// The reactor and its ledger over real stores, against a model, along random ways.
import fc from "fast-check";
import { systemClock } from "../../../../src/base/clock.ts";
import { openLevelStore } from "../../../../src/storage/level/level-store.ts";
import { MemoryStore } from "../../../../src/storage/memory/memory-store.ts";
import type { Store } from "../../../../src/storage/store.ts";
import { command, LedgerRun } from "./ledger-commands.ts";
import { useTemporaryDirectory } from "../../../support/temporary-directory.ts";

const SEED = 20_261_118;

async function run(store: Store, commands: readonly Parameters<LedgerRun["do"]>[0][]): Promise<void> {
  try {
    const ledger = await LedgerRun.start(store, SEED);
    for (const next of commands) await ledger.do(next);
    await ledger.finish();
  } finally {
    await store.close();
  }
}

describe("the ledger, whatever happens to it,", () => {
  const directory = useTemporaryDirectory();

  it("is what the model says after each step, and ends with every item final once (in memory)", async () => {
    await fc.assert(
      fc.asyncProperty(fc.array(command, { minLength: 40, maxLength: 100 }), (commands) =>
        run(new MemoryStore(), commands),
      ),
      { numRuns: 150, seed: SEED },
    );
  });

  it("stays what the model says when its run is cancelled", async () => {
    const commands = fc.array(command, { minLength: 10, maxLength: 40 });
    await fc.assert(
      fc.asyncProperty(commands, commands, async (before, after) => {
        const ledger = await LedgerRun.start(new MemoryStore(), SEED);
        for (const next of before) await ledger.do(next);
        await ledger.cancel();
        for (const next of after) await ledger.do(next);
      }),
      { numRuns: 60, seed: SEED },
    );
  });

  it("is what the model says after each step, and ends with every item final once (on LevelDB)", async () => {
    let number = 0;
    await fc.assert(
      fc.asyncProperty(fc.array(command, { minLength: 40, maxLength: 100 }), async (commands) => {
        const path = directory.file(`store-${++number}`);
        await run(await openLevelStore({ path, holderName: "test", clock: systemClock }), commands);
      }),
      { numRuns: 15, seed: SEED },
    );
  });
});
