// The drain over its real chart and actor system, in virtual time; what it drains follows the test.
import { expect } from "chai";
import type { WorkerId } from "../../../../src/base/ids.ts";
import { seededRandom } from "../../../../src/base/random.ts";
import type { EventPayloads } from "../../../../src/observe/events.ts";
import { MemoryStore } from "../../../../src/storage/memory/memory-store.ts";
import type { DrainRequest } from "../../../../src/worker/life/drain.ts";
import { Drain } from "../../../../src/worker/life/drain.ts";
import { useClosers } from "../../../support/closers.ts";
import { incarnationId, workerId } from "../../../support/world-worker.ts";
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
  /** How often there is still something to save when it is looked. */
  looksLeft = Infinity;
  left = false;
  unacknowledged = 0;
  completed: EventPayloads["drain_completed"] | undefined;
  #drain: Drain | undefined;

  constructor(clock = new VirtualClock(), store = new MemoryStore()) {
    this.clock = clock;
    this.store = store;
  }

  async start({ hasTrainState = false, boot = "this boot" } = {}): Promise<void> {
    const { clock, log, store } = this;
    const unacknowledged = (): number => this.unacknowledged;
    const note = async (what: string, until?: Promise<unknown>): Promise<void> => {
      this.done.push(what);
      await until;
    };
    const learner = {
      save: (timeLeftMs: number, signal: AbortSignal): Promise<void> => {
        this.saving = signal;
        return note(`save within ${timeLeftMs}`, this.saved.promise);
      },
    };
    this.#drain = await Drain.open({
      ...{ workerId: ID, incarnation: incarnationId(1), boot },
      ...{ store, clock, log, random: seededRandom(1) },
      events: {
        emit: (topic, told) => {
          if (topic === "drain_completed") this.completed = told as EventPayloads["drain_completed"];
          if (topic !== "drain_started") return;
          const { cause, deadline_ms } = told as EventPayloads["drain_started"];
          void note(`draining: ${cause} in ${deadline_ms}`);
        },
      },
      learners: () => (hasTrainState && this.looksLeft-- > 0 ? [learner] : []),
      work: {
        stopStarting: () => void note("stop starting"),
        whenIdle: () => note("await running", this.idle.promise),
        abandon: (graceMs) => {
          // Processes that execute have learned something, and end with it.
          this.looksLeft = 0;
          return note(`abandon within ${graceMs}`, this.abandoned.promise);
        },
        flushed: () => note("flush", this.flushed.promise),
        get unacknowledged() {
          return unacknowledged();
        },
      },
      heartbeat: () => ({
        beatNow: () => {},
        tell: () => note("goodbye", this.goodbye.promise).then(() => true),
      }),
      onFatal: (error) => {
        throw error;
      },
    });
    void this.#drain.left.then(() => (this.left = true));
  }

  /** Asks for a drain with so much time from now, and lets happen what can happen now. */
  async request(
    budgetMs: number,
    cause: DrainRequest["cause"] = "gcp",
    machineEndsMs?: number,
  ): Promise<void> {
    const deadlineMs = this.clock.monotonicMs() + budgetMs;
    const asked = this.#drain?.request({ cause, deadlineMs, machineEndsMs });
    void asked?.then(() => this.#drain?.left).then(() => (this.left = true));
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

  get cause(): string | undefined {
    return this.#drain?.progress?.cause;
  }

  get state(): string | undefined {
    return this.#drain?.state;
  }

  stop(): void {
    void this.#drain?.stop();
  }

  /** The process is killed: nothing of it happens any more. */
  async kill(): Promise<void> {
    const stopped = this.#drain?.stop();
    for (const what of [this.idle, this.abandoned, this.flushed, this.goodbye, this.saved])
      what.resolve(undefined);
    await stopped;
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
      ["stop starting", "stop starting", "draining: gcp in 15000", "await running"],
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

  for (const [left, when] of [
    [3, "its flush has expired"],
    [0, "all were acknowledged"],
  ] as const)
    it(`says at its end that ${left} results are not acknowledged when ${when}`, async () => {
      const drain = await start();
      await drain.request(60_000);
      await drain.let("idle");
      drain.unacknowledged = left;
      if (left === 0) await drain.let("flushed");
      else await drain.clock.advance(5_000);
      await drain.let("goodbye");
      expect([drain.left, drain.completed?.unacknowledged_results]).to.deep.equal([true, left]);
      expect(drain.completed?.took_ms).to.equal(left === 0 ? 0 : 5_000);
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

    it("for the same deadline keeps the cause that it began with", async () => {
      const drain = await start();
      await drain.request(15_000, "gcp");
      await drain.request(15_000, "sigterm");
      expect(drain.cause).to.equal("gcp");
      await drain.request(14_999, "sigterm");
      expect(drain.cause).to.equal("sigterm");
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
    /** One that is idle when so much is left of its 15 s; a drain before has measured a save, unless nobody has. */
    async function idleWith(costMs: number | undefined, leftMs: number): Promise<Harness> {
      const before = new Harness();
      await before.start({ hasTrainState: true });
      if (costMs !== undefined) {
        await before.request(60_000, "sigterm");
        await before.let("idle");
        await before.clock.advance(costMs);
        await before.let("saved");
      }
      const copy = new MemoryStore(await before.store.scan({ from: "!", to: "~", limit: 100 }));
      await before.kill();
      const drain = new Harness(before.clock, copy);
      await drain.start({ hasTrainState: true });
      closeLater(() => drain.kill());
      await drain.request(15_000);
      await drain.clock.advance(15_000 - leftMs);
      drain.take();
      await drain.let("idle");
      return drain;
    }

    const said = ({ log }: Harness): string[] =>
      log.lines.map(({ message }) => message).filter((message) => message.includes("TrainState"));

    it("saves it when twice its last cost is left, which a process before may have measured, and then flushes", async () => {
      const drain = await idleWith(3_000, 6_000);
      expect([drain.state, drain.take()]).to.deep.equal(["Draining.Saving", ["save within 6000"]]);
      await drain.let("saved");
      expect([drain.state, drain.take()]).to.deep.equal(["Draining.Flushing", ["flush"]]);
      expect(said(drain)).to.deep.equal(["the TrainState is saved"]);
    });

    it("begins a first save with the least time that is left", async () => {
      const drain = await idleWith(undefined, 1);
      expect(drain.state).to.equal("Draining.Saving");
    });

    it("does not save when less time is left than a save takes, and says so", async () => {
      const drain = await idleWith(3_000, 5_999);
      expect([drain.state, drain.take()]).to.deep.equal(["Draining.Flushing", ["flush"]]);
      expect(said(drain)).to.deep.equal(["the TrainState was not saved: there is no time left for it"]);
    });

    it("says that it was not saved where what had it still executed at the deadline, and was ended", async () => {
      const drain = await start({ hasTrainState: true });
      await drain.request(15_000);
      drain.take();
      await drain.clock.advance(15_000);
      await drain.let("abandoned");
      expect([drain.state, drain.take()]).to.deep.equal([
        "Draining.Flushing",
        ["abandon within 1000", "flush"],
      ]);
      expect(said(drain)).to.deep.equal(["the TrainState was not saved: there is no time left for it"]);
    });

    it("gives a first save, of which nobody knows the cost, half of what is left, and goes on then", async () => {
      const drain = await idleWith(undefined, 6_000);
      expect([drain.state, drain.take()]).to.deep.equal(["Draining.Saving", ["save within 3000"]]);
      await drain.clock.advance(2_999);
      expect([drain.state, drain.saving?.aborted]).to.deep.equal(["Draining.Saving", false]);
      await drain.clock.advance(1);
      expect([drain.state, drain.saving?.aborted]).to.deep.equal(["Draining.Flushing", true]);
      expect([drain.take(), said(drain)]).to.deep.equal([
        ["flush"],
        ["the TrainState was not saved: there is no time left for it"],
      ]);
      await drain.let("saved");
      expect([drain.state, drain.take()]).to.deep.equal(["Draining.Flushing", []]);
    });

    it("gives the save up at the deadline, or when it is hurried", async () => {
      for (const hurriedToMs of [undefined, 2_500]) {
        const drain = await idleWith(1_000, 6_000);
        if (hurriedToMs !== undefined) await drain.request(hurriedToMs, "sigterm");
        await drain.clock.advance((hurriedToMs ?? 6_000) - 1);
        expect([drain.saving?.aborted, drain.state]).to.deep.equal([false, "Draining.Saving"]);
        await drain.clock.advance(1);
        expect([drain.saving?.aborted, drain.state]).to.deep.equal([true, "Draining.Flushing"]);
      }
    });

    it("goes on when the save fails, and says so", async () => {
      const drain = await idleWith(1_000, 6_000);
      drain.saved.reject(new Error("no space"));
      await drain.clock.advance();
      expect(drain.state).to.equal("Draining.Flushing");
      expect(said(drain)).to.deep.equal(["the TrainState was not saved: no space"]);
    });

    it("does not take a process that has died meanwhile for a save that cost nothing", async () => {
      const before = new Harness();
      await before.start({ hasTrainState: true });
      before.looksLeft = 1;
      await before.request(15_000);
      await before.let("idle");
      expect([before.state, before.take().at(-1)]).to.deep.equal(["Draining.Flushing", "flush"]);
      expect(said(before)).to.deep.equal(["the TrainState was not saved: what had it has ended"]);
      const rows = await before.store.scan({ from: "!", to: "~", limit: 100 });
      await before.kill();
      const texts = rows.map(({ value }) => Buffer.from(value).toString("latin1"));
      expect(texts.filter((text) => text.includes("saveCostMs"))).to.have.length(1);
      expect(texts.join("")).to.match(/saveCostMs"?\W*(null|\xc0)/u);
    });

    it("asks no process to save that has learned nothing", async () => {
      const drain = new Harness();
      await drain.start();
      closeLater(() => drain.kill());
      await drain.request(15_000);
      await drain.let("idle");
      expect([drain.state, said(drain)]).to.deep.equal(["Draining.Flushing", []]);
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
    /** The next process over what the one before it has left on the disk. */
    async function successorOf(first: Harness, boot?: string): Promise<Harness> {
      const copy = new MemoryStore(await first.store.scan({ from: "!", to: "~", limit: 100 }));
      await first.kill();
      const second = new Harness(first.clock, copy);
      await second.start(boot === undefined ? {} : { boot });
      closeLater(() => second.kill());
      await second.clock.advance();
      return second;
    }

    it("is gone on with where a notice came to a drain that it hurried", async () => {
      const first = new Harness();
      await first.start();
      await first.request(60_000, "operator");
      await first.request(15_000, "aws", first.clock.monotonicMs() + 120_000);
      const second = await successorOf(first);
      expect(second.state).to.equal("Draining.GoingOn");
    });

    for (const [state, story] of Object.entries(stories))
      it(`in ${state} is gone on with by the next one on the same boot while a cloud's notice lasts`, async () => {
        const first = new Harness();
        await first.start();
        await first.request(15_000, "gcp", first.clock.monotonicMs() + 30_000);
        // Somebody may hurry it: the machine is taken away all the same.
        await first.request(14_000, "sigterm");
        await story(first);
        expect(first.state).to.equal(state);
        await first.clock.advance(1_000);

        const second = await successorOf(first);
        expect([second.state, second.take()]).to.deep.equal([
          "Draining.GoingOn",
          ["stop starting", "draining: sigterm in 29000"],
        ]);
        await second.request(20_000, "gcp", second.clock.monotonicMs() + 30_000);
        expect([second.state, second.take()]).to.deep.equal(["Draining.GoingOn", ["stop starting"]]);
        await second.request(15_000, "sigterm");
        expect([second.state, second.take()]).to.deep.equal([
          "Draining.Flushing",
          ["stop starting", "flush"],
        ]);
        for (const what of ["flushed", "goodbye"] as const) await second.let(what);
        expect([second.left, second.state]).to.deep.equal([true, "Drained"]);

        const third = await successorOf(second);
        await third.clock.advance(29_999);
        expect([third.state, third.clock.armed]).to.deep.equal(["Draining.GoingOn", 1]);
        await third.clock.advance(1);
        for (const what of ["abandoned", "flushed", "goodbye"] as const) await third.let(what);
        expect([third.left, third.state]).to.deep.equal([true, "Drained"]);

        const fourth = await successorOf(third);
        expect([fourth.state, fourth.take()]).to.deep.equal(["Idle", []]);
      });

    for (const [why, boot] of [
      ["of another boot", "another boot"],
      ["that does not know its boot", ""],
    ] as const)
      it(`is forgotten by one ${why}, notice or not`, async () => {
        const first = new Harness();
        await first.start({ boot: boot === "" ? "" : "this boot" });
        await first.request(15_000, "aws", first.clock.monotonicMs() + 120_000);
        const second = await successorOf(first, boot);
        expect([second.state, second.take()]).to.deep.equal(["Idle", []]);
      });

    for (const [state, story] of Object.entries(stories))
      it(`in ${state} is forgotten by the next one, which can be drained`, async () => {
        const first = new Harness();
        await first.start();
        await first.request(15_000);
        await story(first);
        expect(first.state).to.equal(state);
        const second = await successorOf(first);
        await second.clock.advance(60_000);
        expect([second.state, second.take(), second.clock.armed]).to.deep.equal(["Idle", [], 0]);
        await second.request(1_000, "operator");
        expect(second.take()).to.deep.equal([
          ...["stop starting", "stop starting"],
          ...["draining: operator in 1000", "await running"],
        ]);
      });
  });
});
