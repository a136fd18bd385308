// Items through the coordinator without sockets, with a release that rolls, without one, and with the room of releases taken out: what its
// main thread takes for an item, what it writes, and what a start reads afterwards.
import { systemClock } from "../../../src/base/clock.ts";
import { assert } from "../../../src/base/assert.ts";
import { newUlid } from "../../../src/base/ids.ts";
import { systemRandom } from "../../../src/base/random.ts";
import { currentStage } from "../../../src/coordinator/release/release.ts";
import type { Releases } from "../../../src/coordinator/release/releases.ts";
import { replay } from "../../../src/coordinator/replay.ts";
import type { CreatedReleaseAnswer } from "../../../src/coordinator/turn/input.ts";
import { RELEASES_KEY, RELEASES_PREFIX } from "../../../src/storage/keys.ts";
import type { Batch, Store } from "../../../src/storage/store.ts";
import { median } from "../alternating.ts";
import { ledInMemory } from "../in-memory-fleet.ts";
import type { InMemoryCoordinator } from "../in-memory-fleet.ts";
import { WorkingFleet } from "../working-fleet.ts";
import type { FleetTerms } from "../working-fleet.ts";
import { termsOf } from "./terms.ts";

const WORKERS = 4;
const SLOTS = 64;
const PAYLOAD_BYTES = 100;
/** A run takes a release when it has had its first items. */
const FIRST_ITEMS = 1_000;
const REPLAYS = 15;

const DIGESTS = [1, 2].map((byte) => new Uint8Array(32).fill(byte));
const [STABLE_DIGEST = new Uint8Array(), CANDIDATE_DIGEST = new Uint8Array()] = DIGESTS;
const TERMS: FleetTerms = {
  task: { digest: STABLE_DIGEST, plugin: "p", summary: "" },
  plugins: DIGESTS.map((taskDigest, at) => ({ name: "p", version: String(at + 1), taskDigest })),
  reported: { execution: { pluginVersion: "1", startedAtWallMs: 1, durationMs: 10 }, measures: [0.5] },
};

/** `removed`: nobody asks the room of releases anything for an item or a result. */
export type RoomState = "rolling" | "idle" | "removed";

export interface InMemoryCost {
  /** Processor time of the main thread for an item, in microseconds. */
  readonly cpuUs: number;
  /** Rows with keys of their own, those of releases not counted. */
  readonly rows: number;
  /** Writes of rows of releases, and batches. */
  readonly releaseWrites: number;
  readonly batches: number;
  /** Attempts of both versions that were judged. */
  readonly judged: number;
  readonly replay: ReplayCost;
}

export interface ReplayCost {
  /** Reads of the store, of one key or of several in one go, and pages. */
  readonly reads: number;
  /** Median, in milliseconds. */
  readonly ms: number;
}

export function measureInMemory(items: number, room: RoomState, stages = 2): Promise<InMemoryCost> {
  const written = new Written();
  return ledInMemory(
    WORKERS,
    async (coordinator) => {
      const { releases } = coordinator.state;
      const fleet = new WorkingFleet(coordinator, WORKERS, SLOTS, TERMS);
      await fleet.join();
      await fleet.execute(FIRST_ITEMS, PAYLOAD_BYTES);
      if (room === "rolling") await beginRelease(coordinator, stages);
      if (room === "removed") remove(releases);
      written.clear();
      const before = process.threadCpuUsage();
      await fleet.execute(items, PAYLOAD_BYTES);
      const { user, system } = process.threadCpuUsage(before);
      const { latest } = releases;
      const counts = latest && currentStage(latest).counts;
      const judged = counts === undefined ? 0 : counts.stable.judged + counts.candidate.judged;
      assert(room !== "rolling" || releases.isRolling, "the release rolls until the end");
      const cost = { cpuUs: (user + system) / items, judged, ...written.counted };
      return { ...cost, replay: await measureReplay(coordinator) };
    },
    (batch) => written.note(batch),
  );
}

async function beginRelease({ loop }: InMemoryCoordinator, stages: number): Promise<void> {
  const id = newUlid(systemClock, systemRandom);
  const candidate = { plugin: "p", version: "2", digest: CANDIDATE_DIGEST };
  const how = { waits: false, isDryRun: false, by: "bench" };
  const request = { id, terms: termsOf(stages), candidate, ...how };
  const answered = await new Promise<CreatedReleaseAnswer>((answer) => {
    assert(loop.push({ kind: "createRelease", request, answer }), "there is room for a question");
  });
  assert(answered.kind === "created", "the release begins");
}

function remove(releases: Releases): void {
  const own = releases.stampOf("none");
  releases.stampOf = () => own;
  releases.ended = () => undefined;
  releases.turnEnds = () => undefined;
  releases.serves = () => true;
  Object.defineProperty(releases, "isRolling", { value: false });
  Object.defineProperty(releases, "isLive", { value: false });
}

class Written {
  readonly #keys = new Set<string>();
  #releaseWrites = 0;
  #batches = 0;

  note({ puts }: Batch): void {
    this.#batches++;
    for (const { key } of puts)
      if (key === RELEASES_KEY || key.startsWith(RELEASES_PREFIX)) this.#releaseWrites++;
      else this.#keys.add(key);
  }

  clear(): void {
    this.#keys.clear();
    [this.#releaseWrites, this.#batches] = [0, 0];
  }

  get counted(): Pick<InMemoryCost, "rows" | "releaseWrites" | "batches"> {
    return { rows: this.#keys.size, releaseWrites: this.#releaseWrites, batches: this.#batches };
  }
}

/** The reads of the next leader, while this one has nothing to do. */
async function measureReplay({ store, state }: InMemoryCoordinator): Promise<ReplayCost> {
  const { liveness, workersMax, epoch } = state;
  const counted = counting(store);
  const took: number[] = [];
  for (let at = 0; at < REPLAYS; at++) {
    const fromMs = systemClock.monotonicMs();
    const budgets = { maxAttempts: 3, maxLost: 5 };
    await replay(counted.store, {
      liveness,
      workersMax,
      epoch,
      budgets,
      random: systemRandom,
      nowMs: fromMs,
    });
    took.push(systemClock.monotonicMs() - fromMs);
  }
  return { reads: counted.reads() / REPLAYS, ms: median(took) };
}

function counting(store: Store): { readonly store: Store; readonly reads: () => number } {
  let reads = 0;
  const names = ["get", "getMany", "scan"] as const;
  const counted = new Proxy(store, {
    get(target, name) {
      const value: unknown = Reflect.get(target, name);
      if (typeof value !== "function") return value;
      if (names.some((one) => one === name)) reads++;
      return value.bind(target) as unknown;
    },
  });
  return { store: counted, reads: () => reads };
}
