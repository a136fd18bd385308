// An epoch is never given twice, whatever becomes of the database: it fails over to a standby that is behind, an old backup is restored,
// answers to claims are lost, and candidates are slow in between.
import { expect } from "chai";
import fc from "fast-check";
import { systemClock } from "../../../../src/base/clock.ts";
import { newUlid } from "../../../../src/base/ids.ts";
import type { Epoch, RunId } from "../../../../src/base/ids.ts";
import { systemRandom } from "../../../../src/base/random.ts";
import { StorageLease } from "../../../../src/coordinator/lead/lease.ts";
import type { LeaseRows, LostEpochs } from "../../../../src/coordinator/lead/lease.ts";
import { MemoryStore } from "../../../../src/storage/memory/memory-store.ts";
import type { Batch, CommitOutcome, Entry, ScanRange, Store } from "../../../../src/storage/store.ts";
import { claimStore } from "../../../../src/storage/store-identity.ts";
import { EVERYTHING } from "../../../support/batch.ts";

/** How an answer to a commit is lost, if it is: before the commit, or after. */
type Fault = "none" | "before" | "after";

type Step =
  /** A candidate that was never here before claims. Between its look and its claim a rival may lead, and the database may fail over. */
  | {
      readonly kind: "claim";
      readonly fault: Fault;
      readonly hasRival: boolean;
      readonly failover: number | null;
      readonly renewals: number;
    }
  /** A standby goes on from a state that was once, on a branch of its own. */
  | { readonly kind: "failover"; readonly back: number }
  /** Files of an older state are put back, which the database does not notice. */
  | { readonly kind: "restore"; readonly back: number };

/** A database and all states that it ever had. */
class Database implements Store {
  readonly location = "history";
  readonly supports = { multiProcess: true };
  everWritten = false;
  fault: Fault = "none";
  #generations = 0;
  #live = new MemoryStore();
  #states: (readonly Entry[])[] = [];

  get generation(): string {
    return `branch ${this.#generations}`;
  }

  /** Older ones are of another store. */
  forgetStates(): void {
    this.#states = this.#states.slice(-1);
  }

  /** Goes on from one of its states, counted back from the last one. */
  goBack(back: number, isNoticed: boolean): void {
    const state = this.#states[Math.max(this.#states.length - 1 - back, 0)] ?? [];
    this.#live = new MemoryStore(state);
    if (isNoticed) this.#generations++;
  }

  get(key: string): Promise<Uint8Array | undefined> {
    return this.#live.get(key);
  }

  getMany(keys: readonly string[]): Promise<readonly (Uint8Array | undefined)[]> {
    return this.#live.getMany(keys);
  }

  scan(range: ScanRange): Promise<Entry[]> {
    return this.#live.scan(range);
  }

  async commit(batch: Batch): Promise<CommitOutcome> {
    const { fault } = this;
    this.everWritten = true;
    this.fault = "none";
    const cause = new Error("a test");
    if (fault === "before") return { kind: "unknown", cause };
    const outcome = await this.#live.commit(batch);
    this.#states.push(await this.#live.scan(EVERYTHING));
    return fault === "after" ? { kind: "unknown", cause } : outcome;
  }

  async close(): Promise<void> {
    // nothing to do
  }
}

/** The rows as a candidate found them, some time before it claims. */
interface Look {
  readonly rows: LeaseRows;
  readonly lost: LostEpochs | undefined;
}

/** Everything that happened, and every epoch that somebody led under. */
class World {
  readonly given: number[] = [];
  readonly #database = new Database();
  #holders = 0;
  /** The files were put back since the last claim: only those who have seen more can tell. */
  #isSilentlyBack = false;

  /** The store has its identity before anybody claims it. */
  async begin(): Promise<void> {
    const runId = newUlid<RunId>(systemClock, systemRandom);
    await claimStore(this.#database, { runId, clock: systemClock, random: systemRandom });
    this.#database.forgetStates();
  }

  async take(step: Step): Promise<void> {
    if (step.kind !== "claim") {
      this.#database.goBack(step.back, step.kind === "failover");
      this.#isSilentlyBack = step.kind === "restore" || this.#isSilentlyBack;
      return;
    }
    const lease = this.#newLease();
    const rows = await lease.read();
    const lost = this.#lost(rows);
    if (step.hasRival) await this.#claim(this.#newLease(), 0);
    if (step.failover !== null) this.#database.goBack(step.failover, true);
    this.#database.fault = step.fault;
    await this.#claim(lease, step.renewals, { rows, lost });
  }

  #newLease(): StorageLease {
    return new StorageLease(this.#database, `holder ${this.#holders++}`);
  }

  async #claim(lease: StorageLease, renewals: number, look?: Look): Promise<void> {
    const rows = look?.rows ?? (await lease.read());
    const outcome = await lease.take(rows, look === undefined ? this.#lost(rows) : look.lost);
    if (outcome.kind !== "taken") return;
    this.#isSilentlyBack = false;
    this.given.push(outcome.leadership.epoch);
    for (let time = 0; time < renewals; time++) await lease.renew();
  }

  /** A failover is seen by its generation. A restored copy is seen by a host that remembers, and by workers. */
  #lost({ lease, epoch }: LeaseRows): LostEpochs | undefined {
    const highest = Math.max(-1, ...this.given);
    if (!this.#isSilentlyBack || Math.max(lease?.epoch ?? -1, epoch ?? -1) >= highest) return undefined;
    return { highest: highest as Epoch };
  }
}

const back = fc.nat(12);
const step: fc.Arbitrary<Step> = fc.oneof(
  {
    weight: 4,
    arbitrary: fc.record({
      kind: fc.constant("claim" as const),
      fault: fc.constantFrom("none", "none", "none", "before", "after"),
      hasRival: fc.boolean(),
      failover: fc.option(back, { freq: 3 }),
      renewals: fc.nat(2),
    }),
  },
  { weight: 2, arbitrary: fc.record({ kind: fc.constant("failover" as const), back }) },
  { weight: 1, arbitrary: fc.record({ kind: fc.constant("restore" as const), back }) },
);

describe("epochs", () => {
  it("are never given twice, over failovers, losses and generations", async () => {
    await fc.assert(
      fc.asyncProperty(fc.array(step, { minLength: 2, maxLength: 25 }), async (steps) => {
        const world = new World();
        await world.begin();
        for (const each of steps) await world.take(each);
        expect(new Set(world.given).size, String(world.given)).to.equal(world.given.length);
      }),
      { numRuns: 500 },
    );
  });
});
