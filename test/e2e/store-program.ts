// A program that does with a LevelDB store what its standard input says, a line of JSON for each step, and answers each by
// a line. It stands for a coordinator where a test needs a process of its own. Argument: the path of the database.
import { writeSync } from "node:fs";
import { createInterface } from "node:readline";
import { systemClock } from "../../src/base/clock.ts";
import { RolloutError } from "../../src/base/errors.ts";
import { openLevelStore } from "../../src/storage/level/level-store.ts";
import type { CommitOutcome, Store } from "../../src/storage/store.ts";
import { batchOf, EVERYTHING, putOf, textOf } from "../support/batch.ts";
import type { StoreAnswer, StoreStep } from "./store-process.ts";

const VALUE_BYTES = 60_000;

// Synchronous, so that what was said was said, however the process ends.
const say = (answer: StoreAnswer): void => void writeSync(1, `${JSON.stringify(answer)}\n`);

/** As the composition root does: a line for the failure, and its exit code. */
function fail(error: unknown): never {
  if (!(error instanceof RolloutError)) throw error;
  say({ kind: "failed", code: error.code, message: error.message });
  process.exit(error.row.exit);
}

function accept(outcome: CommitOutcome): void {
  if (outcome.kind === "unknown") fail(outcome.cause);
  say({ kind: outcome.kind });
}

/** Incompressible and large values, each synced, until the disk refuses. Says the number of each that was acknowledged. */
async function fill(store: Store): Promise<never> {
  let state = 1;
  const filler = (): string => {
    const characters = new Uint8Array(VALUE_BYTES);
    for (let at = 0; at < VALUE_BYTES; at++) {
      state = (Math.imul(state, 1_103_515_245) + 12_345) >>> 0;
      characters[at] = 33 + ((state >>> 16) % 94);
    }
    return Buffer.from(characters).toString("latin1");
  };
  for (let number = 0; ; number++) {
    const puts = [putOf(`filled/${String(number).padStart(6, "0")}`, filler())];
    const outcome = await store.commit(batchOf({ puts, durability: "sync" }));
    if (outcome.kind !== "committed") {
      const later = await store.commit(batchOf({ puts, durability: "sync" }));
      say({ kind: "after_failure", outcome: later.kind });
      fail(outcome.kind === "unknown" ? outcome.cause : outcome);
    }
    say({ kind: "acknowledged", number });
  }
}

async function perform(store: Store, step: StoreStep): Promise<void> {
  switch (step.kind) {
    case "put":
      return accept(await store.commit(batchOf({ puts: [putOf(step.key, step.text)], durability: "sync" })));
    case "keys":
      return say({ kind: "keys", keys: (await store.scan(EVERYTHING)).map(({ key }) => key) });
    case "get":
      return say({ kind: "value", text: textOf(await store.get(step.key)) ?? null });
    case "fill":
      return fill(store);
    case "close":
      await store.close();
      return say({ kind: "closed" });
  }
}

const store = await openLevelStore({
  path: process.argv[2] ?? "",
  holderName: "store program",
  clock: systemClock,
}).catch(fail);
say({ kind: "open", pid: process.pid });
for await (const line of createInterface({ input: process.stdin })) {
  const step = JSON.parse(line) as StoreStep;
  await perform(store, step);
  if (step.kind === "close") break;
}
process.stdin.destroy();
