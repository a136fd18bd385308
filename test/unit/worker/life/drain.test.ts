// The drain over its real chart and actor system, in virtual time; what it drains follows the test.
import { expect } from "chai";
import { charts } from "../../../../machines/index.ts";
import type { WorkerId } from "../../../../src/base/ids.ts";
import { seededRandom } from "../../../../src/base/random.ts";
import { ActorSystem } from "../../../../src/runtime/driver.ts";
import { MemoryStore } from "../../../../src/storage/memory/memory-store.ts";
import type { DrainRequest, TrainState } from "../../../../src/worker/life/drain.ts";
import { Drain, drainAddress } from "../../../../src/worker/life/drain.ts";
import { useClosers } from "../../../support/closers.ts";
import { workerId } from "../../../support/reactor-harness.ts";
import { RecordingLogger } from "../../../support/recording-logger.ts";
import { VirtualClock } from "../../../support/virtual-clock.ts";

const ID: WorkerId = workerId(1);

/** A drain and what it works on. Everything that it does is a line in `done`. */
class Harness {
  readonly clock: VirtualClock;
  readonly store: MemoryStore;
  readonly log = new RecordingLogger();
  readonly done: string[] = [];
  readonly idle = Promise.withResolvers<undefined>();
  readonly abandoned = Promise.withResolvers<undefined>();
  readonly flushed = Promise.withResolvers<undefined>();
  readonly goodbye = Promise.withResolvers<undefined>();
  readonly saved = Promise.withResolvers<undefined>();
  saving: AbortSignal | undefined;
  trainStateCostMs: number | undefined;
  left = false;
  system: ActorSystem | undefined;
  #drain: Drain | undefined;

  constructor(clock = new VirtualClock(), store = new MemoryStore()) {
    this.clock = clock;
    this.store = store;
  }

  async start(hasTrainState = false): Promise<void> {
    const { clock, log } = this;
    const fail = (error: unknown): never => {
      throw error;
    };
    const actors = await ActorSystem.open({
      store: this.store,
      charts,
      clock,
      random: seededRandom(1),
      log,
      durability: "flush",
      perform: async ({ type }) => this.#drain?.perform(type),
      onFatal: fail,
    });
    this.system = actors;
    const note = async (what: string, until?: Promise<unknown>): Promise<void> => {
      this.done.push(what);
      await until;
    };
    const trainState = (): TrainState => ({
      lastCostMs: this.trainStateCostMs,
      save: (signal) => {
        this.saving = signal;
        return note("save", this.saved.promise);
      },
    });
    this.#drain = await Drain.take({
      workerId: ID,
      actors,
      clock,
      log,
      trainState: hasTrainState ? trainState() : undefined,
      work: {
        stopStarting: () => void note("stop starting"),
        whenIdle: () => note("await running", this.idle.promise),
        abandon: (graceMs) => note(`abandon within ${graceMs}`, this.abandoned.promise),
        flushed: () => note("flush", this.flushed.promise),
      },
      onStarted: ({ cause, deadlineMs }: DrainRequest) =>
        note(`draining: ${cause} in ${deadlineMs - clock.monotonicMs()}`),
      onEmpty: () => note("goodbye", this.goodbye.promise),
    });
  }

  /** Asks for a drain with so much time from now, and lets happen what can happen now. */
  async request(budgetMs: number, cause: DrainRequest["cause"] = "gcp"): Promise<void> {
    const asked = this.#drain?.request({ cause, deadlineMs: this.clock.monotonicMs() + budgetMs });
    void asked?.then(() => (this.left = true));
    await this.clock.advance();
  }

  /** Lets `what` be done, and what follows from it. */
  async let(what: "idle" | "abandoned" | "flushed" | "goodbye" | "saved"): Promise<void> {
    this[what].resolve(undefined);
    await this.clock.advance();
  }

  /** Everything that was done since the last call. */
  take(): string[] {
    return this.done.splice(0);
  }

  get state(): string | undefined {
    return this.system?.stateOf(drainAddress(ID));
  }

  stop(): void {
    this.#drain?.stop();
  }

  /** The process is killed: nothing of it happens any more. */
  async kill(): Promise<void> {
    this.stop();
    for (const what of [this.idle, this.abandoned, this.flushed, this.goodbye, this.saved])
      what.resolve(undefined);
    await this.system?.close();
  }
}

describe("a drain", () => {
  const closeLater = useClosers();

  async function start(...options: Parameters<Harness["start"]>): Promise<Harness> {
    const harness = new Harness();
    await harness.start(...options);
    closeLater(() => harness.kill());
    return harness;
  }

  it("does one thing after the other, and is over after the goodbye", async () => {
    const drain = await start();
    await drain.request(15_000);
    expect([drain.state, drain.take()]).to.deep.equal([
      "Draining.Finishing",
      ["stop starting", "draining: gcp in 15000", "await running"],
    ]);
    await drain.let("idle");
    expect([drain.state, drain.take()]).to.deep.equal(["Draining.Flushing", ["flush"]]);
    await drain.let("flushed");
    expect([drain.state, drain.take(), drain.left]).to.deep.equal(["Drained", ["goodbye"], false]);
    await drain.let("goodbye");
    expect([drain.left, drain.clock.armed]).to.deep.equal([true, 0]);
  });

  it("stops starting items within the call, before anything is on the disk", async () => {
    const drain = await start();
    void drain.request(15_000);
    expect([drain.take(), drain.state]).to.deep.equal([["stop starting"], "Idle"]);
  });

  it("abandons at the deadline what still runs, and flushes when that has its results", async () => {
    const drain = await start();
    await drain.request(15_000);
    drain.take();
    await drain.clock.advance(14_999);
    expect(drain.take()).to.deep.equal([]);
    await drain.clock.advance(1);
    expect(drain.take()).to.deep.equal(["abandon within 1000"]);
    drain.idle.resolve(undefined);
    await drain.let("abandoned");
    expect([drain.take(), drain.state]).to.deep.equal([["flush"], "Draining.Flushing"]);
    await drain.let("flushed");
    expect(drain.take()).to.deep.equal(["goodbye"]);
  });

  it("without any time left abandons at once, and does the rest all the same", async () => {
    const drain = await start();
    await drain.request(-100);
    await drain.let("abandoned");
    expect(drain.take()).to.include.members(["stop starting", "abandon within 1000", "flush"]);
    await drain.let("flushed");
    expect(drain.state).to.equal("Drained");
  });

  it("does not wait for ever for results that nobody acknowledges", async () => {
    const drain = await start();
    await drain.request(60_000);
    await drain.let("idle");
    drain.take();
    await drain.clock.advance(4_999);
    expect(drain.state).to.equal("Draining.Flushing");
    await drain.clock.advance(1);
    expect([drain.state, drain.take()]).to.deep.equal(["Drained", ["goodbye"]]);
    await drain.let("flushed");
    expect(drain.take()).to.deep.equal([]);
  });

  it("that is stopped does nothing more", async () => {
    const drain = await start();
    await drain.request(15_000);
    drain.take();
    drain.stop();
    await drain.let("idle");
    await drain.clock.advance(60_000);
    expect(drain.take()).to.deep.equal([]);
  });

  describe("asked for again", () => {
    it("is only hurried: an earlier deadline counts, although more time was asked for than is left", async () => {
      const drain = await start();
      await drain.request(60_000, "aws");
      drain.take();
      await drain.clock.advance(10_000);
      await drain.request(15_000, "sigterm");
      expect(drain.take()).to.deep.equal(["stop starting"]);
      await drain.clock.advance(14_999);
      expect(drain.take()).to.deep.equal([]);
      await drain.clock.advance(1);
      expect(drain.take()).to.deep.equal(["abandon within 1000"]);
    });

    it("with a later deadline nothing changes, although less was asked for than at first", async () => {
      const drain = await start();
      await drain.request(30_000);
      await drain.clock.advance(20_000);
      await drain.request(15_000, "sigterm");
      drain.take();
      await drain.clock.advance(10_000);
      expect(drain.take()).to.deep.equal(["abandon within 1000"]);
    });

    it("when it is over, is over", async () => {
      const drain = await start();
      await drain.request(15_000);
      for (const what of ["idle", "flushed", "goodbye"] as const) await drain.let(what);
      drain.left = false;
      await drain.request(1_000);
      expect([drain.left, drain.state]).to.deep.equal([true, "Drained"]);
    });
  });

  describe("of a worker with a TrainState", () => {
    async function idleWith(costMs: number | undefined, leftMs: number): Promise<Harness> {
      const drain = new Harness();
      drain.trainStateCostMs = costMs;
      await drain.start(true);
      closeLater(() => drain.kill());
      await drain.request(15_000);
      await drain.clock.advance(15_000 - leftMs);
      drain.take();
      await drain.let("idle");
      return drain;
    }

    it("saves it when twice its last cost is left, and then flushes", async () => {
      const drain = await idleWith(3_000, 6_000);
      expect([drain.state, drain.take()]).to.deep.equal(["Draining.Saving", ["save"]]);
      await drain.let("saved");
      expect([drain.state, drain.take()]).to.deep.equal(["Draining.Flushing", ["flush"]]);
    });

    for (const [why, costMs, leftMs] of [
      ["less is left", 3_000, 5_999],
      ["its cost was never measured", undefined, 15_000],
    ] as const)
      it(`does not save it when ${why}`, async () => {
        const drain = await idleWith(costMs, leftMs);
        expect([drain.state, drain.take()]).to.deep.equal(["Draining.Flushing", ["flush"]]);
      });

    it("gives the save up at the deadline", async () => {
      const drain = await idleWith(1_000, 6_000);
      expect(drain.saving?.aborted).to.equal(false);
      await drain.clock.advance(6_000);
      await drain.let("abandoned");
      expect([drain.saving?.aborted, drain.state]).to.deep.equal([true, "Draining.Flushing"]);
    });

    it("goes on when the save fails, and says so", async () => {
      const drain = await idleWith(1_000, 6_000);
      drain.saved.reject(new Error("no space"));
      await drain.clock.advance();
      expect(drain.state).to.equal("Draining.Flushing");
      expect(drain.log.lines.map(({ message }) => message)).to.include(
        "the TrainState was not saved: no space",
      );
    });
  });

  describe("of a process that was killed", () => {
    const stories: Readonly<Record<string, (drain: Harness) => Promise<void>>> = {
      "Draining.Finishing": async () => {},
      "Draining.Flushing": (drain) => drain.let("idle"),
      Drained: async (drain) => {
        await drain.let("idle");
        await drain.let("flushed");
      },
    };
    for (const [state, story] of Object.entries(stories))
      it(`in ${state} is forgotten by the next one, which can be drained`, async () => {
        const first = new Harness();
        await first.start();
        await first.request(15_000);
        await story(first);
        expect(first.state).to.equal(state);
        const copy = new MemoryStore(await first.store.scan({ from: "!", to: "~", limit: 100 }));
        await first.kill();

        const second = new Harness(first.clock, copy);
        await second.start();
        closeLater(() => second.kill());
        await second.clock.advance(60_000);
        expect([second.state, second.take(), second.clock.armed]).to.deep.equal(["Idle", [], 0]);
        await second.request(1_000, "operator");
        expect(second.take()).to.deep.equal(["stop starting", "draining: operator in 1000", "await running"]);
      });
  });
});
