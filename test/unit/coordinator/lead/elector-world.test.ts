// Many coordinators over one store, with pauses, slow and lost answers, and clocks that run at different rates. In every
// case two never act on the store at once, and while the clocks agree within a tenth, two never believe that they may.
import { expect } from "chai";
import fc from "fast-check";
import type { Clock } from "../../../../src/base/clock.ts";
import { failure } from "../../../../src/base/errors.ts";
import type { Random } from "../../../../src/base/random.ts";
import { seededRandom } from "../../../../src/base/random.ts";
import { StorageElector } from "../../../../src/coordinator/lead/elector-storage.ts";
import type { Leadership } from "../../../../src/coordinator/lead/lease.ts";
import { StorageLease } from "../../../../src/coordinator/lead/lease.ts";
import { silentLogger } from "../../../../src/observe/log.ts";
import { EPOCH_KEY } from "../../../../src/storage/keys.ts";
import { MemoryStore } from "../../../../src/storage/memory/memory-store.ts";
import type { Batch, CommitOutcome, Store } from "../../../../src/storage/store.ts";
import { batchOf, putOf } from "../../../support/batch.ts";
import { leadershipIn } from "../../../support/ledger-rows.ts";
import { DelegatingStore } from "../../../support/delegating-store.ts";
import { RecordingWatchdog } from "../../../support/recording-watchdog.ts";
import { VirtualClock } from "../../../support/virtual-clock.ts";

const TIMING = { ttlMs: 5_000, renewalMs: 1_000, deadlineMs: 4_000 };
const TROUBLE_MS = 30_000;
/** Long enough for a TTL on the slowest clock, and a claim. */
const PEACE_MS = 15_000;
const TICK_MS = 50;
/** Every so many ticks, leaders write. */
const TICKS_PER_WRITE = 5;
const WORK = "work/";

interface Pause {
  readonly process: number;
  readonly atMs: number;
  readonly forMs: number;
}

interface Trouble {
  readonly seed: number;
  /** One for each process: 1.2 is a clock that runs fast by a fifth. */
  readonly rates: readonly number[];
  readonly pauses: readonly Pause[];
  /** The chance that a call is lost. */
  readonly lossRate: number;
  readonly delayMaxMs: number;
}

/** One coordinator's machine: it can be stopped, and its clock runs at a rate of its own. */
class Machine {
  readonly clock: Clock;
  readonly #world: VirtualClock;
  #stoppedUntilMs = 0;

  constructor(world: VirtualClock, rate: number) {
    this.#world = world;
    this.clock = {
      monotonicMs: () => world.monotonicMs() * rate,
      wallMs: () => 0,
      after: (delayMs, callback) => world.after(Math.max(0, delayMs) / rate, () => this.whenAwake(callback)),
      nextTurn: (callback) => world.nextTurn(() => this.whenAwake(callback)),
    };
  }

  stop(forMs: number): void {
    this.#stoppedUntilMs = Math.max(this.#stoppedUntilMs, this.#world.monotonicMs() + forMs);
  }

  get isAwake(): boolean {
    return this.#world.monotonicMs() >= this.#stoppedUntilMs;
  }

  /** Now, or when the machine goes on. */
  whenAwake(callback: () => void): void {
    if (this.isAwake) return callback();
    this.#world.after(this.#stoppedUntilMs - this.#world.monotonicMs(), () => this.whenAwake(callback));
  }
}

/** The store as one machine reaches it: late, and sometimes with no word of what happened. */
class FarStore extends DelegatingStore {
  readonly #far: { world: VirtualClock; machine: Machine; random: Random; trouble: Trouble };
  isCalm = false;

  constructor(
    inner: Store,
    far: { world: VirtualClock; machine: Machine; random: Random; trouble: Trouble },
  ) {
    super(inner);
    this.#far = far;
  }

  override async get(key: string): Promise<Uint8Array | undefined> {
    await this.#travel();
    const value = await super.get(key);
    if (this.#isLost()) throw new Error("the answer was lost");
    await this.#travel();
    return value;
  }

  override async commit(batch: Batch): Promise<CommitOutcome> {
    const cause = failure("store_write_failed", { path: "far", reason: "a test" });
    await this.#travel();
    if (this.#isLost()) {
      // It may still come: after this call was answered, and after others.
      if (this.#far.random.unit() < 0.5) void this.#travel().then(() => super.commit(batch));
      return { kind: "unknown", cause };
    }
    const outcome = await super.commit(batch);
    if (this.#isLost()) return { kind: "unknown", cause };
    await this.#travel();
    return outcome;
  }

  #isLost(): boolean {
    return !this.isCalm && this.#far.random.unit() < this.#far.trouble.lossRate;
  }

  #travel(): Promise<void> {
    const { world, machine, random, trouble } = this.#far;
    const delayMs = this.isCalm ? 1 : random.unit() * trouble.delayMaxMs;
    return new Promise((resolve) => void world.after(delayMs, () => machine.whenAwake(resolve)));
  }
}

interface Process {
  readonly machine: Machine;
  readonly store: FarStore;
  readonly elector: StorageElector;
  leadership: Leadership | undefined;
}

class World {
  readonly clock = new VirtualClock({ monotonicMs: 1_000_000 });
  readonly shared = new MemoryStore();
  readonly processes: Process[];
  /** Epochs in the order in which they were won. */
  readonly won: number[] = [];
  /** Writes that the store took: the key that names the writer's epoch, and the key that the last winner would write. */
  readonly written: [key: string, expected: string][] = [];
  readonly #trouble: Trouble;
  readonly #random: Random;
  readonly #stop = new AbortController();
  #isCalm = false;
  #started = 0;

  constructor(trouble: Trouble) {
    this.#trouble = trouble;
    this.#random = seededRandom(trouble.seed);
    const machines = trouble.rates.map((rate) => new Machine(this.clock, rate));
    this.processes = machines.map((machine) => this.#start(machine));
    for (const { process, atMs, forMs } of trouble.pauses) {
      const machine = machines[process % machines.length];
      this.clock.after(atMs, () => machine?.stop(forMs));
    }
  }

  /** No more trouble from here on. */
  calmDown(): void {
    this.#isCalm = true;
    for (const { store } of this.processes) store.isCalm = true;
  }

  end(): void {
    this.#stop.abort();
  }

  /** Candidates that may act by their own reckoning; a stopped one does nothing, and knows nothing of it. */
  believers(): Process[] {
    return this.processes.filter(({ elector }) => elector.mayAct());
  }

  /** The candidates among them that would find the epoch row as they expect it. */
  async rulers(): Promise<Process[]> {
    const row = (await this.shared.get(EPOCH_KEY)) ?? new Uint8Array();
    return this.believers().filter(({ leadership }) => {
      const expected = leadership?.epochRow.value ?? new Uint8Array(1);
      return Buffer.compare(row, expected) === 0;
    });
  }

  /** Everybody who believes that it may act acts. */
  act(): void {
    for (const { leadership, store, machine } of this.believers()) {
      if (leadership === undefined || !machine.isAwake) continue;
      const { epoch, epochRow } = leadership;
      void store.commit(batchOf({ puts: [putOf(`${WORK}${epoch}`, "x")], expect: [epochRow] }));
    }
  }

  #start(machine: Machine): Process {
    const [world, random, trouble] = [this.clock, this.#random, this.#trouble];
    const store = new FarStore(this.#watched(), { world, machine, random, trouble });
    store.isCalm = this.#isCalm;
    const lease = new StorageLease(store, `process ${++this.#started}`);
    const { clock } = machine;
    const watchdog = new RecordingWatchdog();
    const elector = new StorageElector({ lease, timing: TIMING, clock, log: silentLogger, watchdog });
    const process: Process = { machine, store, elector, leadership: undefined };
    this.#stand(process);
    return process;
  }

  #stand(process: Process): void {
    // A loser ends, and is started again as somebody new.
    const onLost = (): void => {
      const at = this.processes.indexOf(process);
      this.processes[at] = this.#start(process.machine);
    };
    process.elector.campaign({ onLost, signal: this.#stop.signal }).then(
      (leadership) => (process.leadership = leadership),
      (error: unknown) => {
        // A claim that nobody can clear up ends the process too.
        if (!this.#stop.signal.aborted && error instanceof Error) onLost();
      },
    );
  }

  /** The store itself, noting each epoch as it begins, and who writes. */
  #watched(): Store {
    const { won, written } = this;
    return new (class extends DelegatingStore {
      override async commit(batch: Batch): Promise<CommitOutcome> {
        const { epoch } = await leadershipIn(new MemoryStore(batch.puts));
        const outcome = await super.commit(batch);
        if (outcome.kind !== "committed") return outcome;
        if (typeof epoch === "number") won.push(epoch);
        for (const { key } of batch.puts)
          if (key.startsWith(WORK)) written.push([key, `${WORK}${won.at(-1)}`]);
        return outcome;
      }
    })(this.shared);
  }
}

const troubles = (rateError: number, processes: number): fc.Arbitrary<Trouble> =>
  fc.record({
    seed: fc.integer({ min: 0, max: 2 ** 31 }),
    rates: fc.array(fc.double({ min: 1 - rateError, max: 1 + rateError, noNaN: true }), {
      minLength: processes,
      maxLength: processes,
    }),
    pauses: fc.array(
      fc.record({
        process: fc.nat(processes - 1),
        atMs: fc.integer({ min: 0, max: TROUBLE_MS }),
        forMs: fc.integer({ min: 100, max: 9_000 }),
      }),
      { maxLength: 8 },
    ),
    lossRate: fc.constantFrom(0, 0.05, 0.3),
    delayMaxMs: fc.constantFrom(5, 200, 1_500),
  });

/** The most that were seen at once: who believed that they might act, and of these, whom the store would have let. */
async function live(trouble: Trouble): Promise<{ world: World; believers: number; rulers: number }> {
  const world = new World(trouble);
  let [believers, rulers] = [0, 0];
  for (let tick = 1; tick * TICK_MS <= TROUBLE_MS + PEACE_MS; tick++) {
    await world.clock.advance(TICK_MS);
    believers = Math.max(believers, world.believers().length);
    rulers = Math.max(rulers, (await world.rulers()).length);
    if (tick % TICKS_PER_WRITE === 0) world.act();
    if (tick * TICK_MS === TROUBLE_MS) world.calmDown();
  }
  return { world, believers, rulers };
}

function expectOrder({ won, written }: World): void {
  for (const [at, epoch] of won.entries()) if (at > 0) expect(epoch).to.be.above(won[at - 1] ?? NaN);
  for (const [key, expected] of written) expect(key).to.equal(expected);
}

describe("coordinators in trouble", () => {
  it("never act on the store as two leaders, epochs grow, and one leads when the trouble is over", async () => {
    await fc.assert(
      fc.asyncProperty(troubles(0.2, 3), async (trouble) => {
        const { world, rulers } = await live(trouble);
        expect(rulers).to.be.at.most(1);
        expectOrder(world);
        expect(await world.rulers()).to.have.length(1);
        expect(world.written.length).to.be.above(0);
        world.end();
        await world.clock.advance(1);
      }),
      { numRuns: 40 },
    );
  });

  it("never believe as two that they lead, while their clocks agree within a tenth", async () => {
    await fc.assert(
      fc.asyncProperty(troubles(0.1, 3), async (trouble) => {
        const { world, believers } = await live(trouble);
        expect(believers).to.be.at.most(1);
        expectOrder(world);
        world.end();
        await world.clock.advance(1);
      }),
      { numRuns: 40 },
    );
  });
});
