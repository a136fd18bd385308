// The room of keys by itself, without a ledger around it: what a start reads of keys that are idle and have a state, and what they take of memory;
// and a worker that joins a large ring.
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { setFlagsFromString } from "node:v8";
import { runInNewContext } from "node:vm";
import { assert } from "../../../src/base/assert.ts";
import { systemClock } from "../../../src/base/clock.ts";
import { newUlid } from "../../../src/base/ids.ts";
import type { WorkerId } from "../../../src/base/ids.ts";
import { systemRandom } from "../../../src/base/random.ts";
import { Assignment } from "../../../src/coordinator/keys/assignment.ts";
import { KEY_DEFAULTS } from "../../../src/coordinator/keys/key-settings.ts";
import { Keys } from "../../../src/coordinator/keys/keys.ts";
import { replayKeys } from "../../../src/coordinator/keys/replay-keys.ts";
import { keyedStamp } from "../../../src/coordinator/ledger-charts.ts";
import { keyedPlaceOf } from "../../../src/coordinator/ledger/place.ts";
import { Scrub } from "../../../src/coordinator/ledger/scrub.ts";
import { Shelf } from "../../../src/coordinator/ledger/shelf.ts";
import { openLevelStore } from "../../../src/storage/level/level-store.ts";
import type { Entry, Store } from "../../../src/storage/store.ts";

const STATE = Buffer.alloc(300, "s");
const TURN = 2_000;
const MEMBERS = 1_000;
const JOINS = 20;

export interface IdleKeys {
  readonly replayMs: number;
  readonly replayCpuMs: number;
  readonly bytesPerKey: number;
}

/** The better of two readings: the first one is of a program that is cold. */
export async function measureIdleKeys(count: number): Promise<IdleKeys> {
  const directory = mkdtempSync(join(tmpdir(), "rollout-bench-"));
  try {
    const path = join(directory, "db");
    await withStore(path, (store) => fill(store, count));
    const cold = await withStore(path, (store) => read(store, count));
    const warm = await withStore(path, (store) => read(store, count));
    return cold.replayCpuMs < warm.replayCpuMs ? cold : warm;
  } finally {
    rmSync(directory, { recursive: true, force: true });
  }
}

async function withStore<Found>(path: string, use: (store: Store) => Promise<Found>): Promise<Found> {
  const store = await openLevelStore({ path, holderName: "bench", clock: systemClock });
  try {
    return await use(store);
  } finally {
    await store.close();
  }
}

function options(): Omit<ConstructorParameters<typeof Keys>[0], "numbers" | "assignment"> {
  const shelves = { shelf: new Shelf<never>(), alone: new Shelf<never>() };
  return { settings: KEY_DEFAULTS, shelves, stamp: keyedStamp(), nextSequence: () => 0 };
}

/** Each key has had one item that left a state. */
async function fill(store: Store, count: number): Promise<void> {
  const keys = new Keys({ ...options(), numbers: undefined, assignment: undefined });
  const scrub = new Scrub(undefined, []);
  for (let from = 0; from < count; from += TURN) {
    const puts: Entry[] = [];
    const turn = { put: (entry: Entry) => void puts.push(entry), delete: () => undefined };
    keys.begin(turn);
    for (let n = from; n < Math.min(from + TURN, count); n++) {
      const place = keyedPlaceOf(0, n);
      keys.arrived(place, { id: Buffer.alloc(32, n), payload: Buffer.from("{}"), key: `customer ${n}` });
      keys.assigned(place);
      const left = { basedOn: 0, state: STATE };
      keys.settled(place, { kind: "done", left, commit: n + 1, output: Buffer.of() });
    }
    keys.turnEnds(turn, scrub);
    const outcome = await store.commit({ puts, deletes: [], durability: "flush", expect: [] });
    assert(outcome.kind === "committed", "the bench's store takes what it is given");
  }
}

async function read(store: Store, count: number): Promise<IdleKeys> {
  const before = bytesInUse();
  const [cpuBefore, fromMs] = [process.cpuUsage(), systemClock.monotonicMs()];
  const keys = await replayKeys(store, options(), () => undefined);
  const replayMs = systemClock.monotonicMs() - fromMs;
  const { user, system } = process.cpuUsage(cpuBefore);
  assert(keys.table.size === count, "every key is back");
  const bytesPerKey = (bytesInUse() - before) / count;
  assert(keys.table.size === count, "and was there until it was weighed");
  return { replayMs, replayCpuMs: (user + system) / 1_000, bytesPerKey };
}

/** After a collection, twice: what the first one lets go of may have held more. */
function bytesInUse(): number {
  setFlagsFromString("--expose-gc");
  const collect = runInNewContext("gc") as () => void;
  for (let times = 0; times < 2; times++) collect();
  const { heapUsed, external } = process.memoryUsage();
  return heapUsed + external;
}

/** The median of some joins, in milliseconds. */
export function measureJoin(): number {
  const assignment = new Assignment(KEY_DEFAULTS, undefined);
  const members = new Set<WorkerId>();
  const join = (): void => void members.add(newUlid<WorkerId>(systemClock, systemRandom));
  for (let at = 0; at < MEMBERS; at++) join();
  assignment.change(members);
  const took = Array.from({ length: JOINS }, () => {
    join();
    const fromMs = systemClock.monotonicMs();
    assignment.change(members);
    return systemClock.monotonicMs() - fromMs;
  });
  return took.toSorted((one, other) => one - other)[JOINS / 2] ?? NaN;
}
