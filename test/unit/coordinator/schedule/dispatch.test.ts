import { expect } from "chai";
import type { ReportedOutcome } from "../../../../src/coordinator/turn/session-frame.ts";
import { texts, World } from "../../../support/world.ts";
import { ERROR } from "../../../support/world-worker.ts";
import type { WorldWorker } from "../../../support/world-worker.ts";

const B = "01SVBM1SS10N0000000000000B";

describe("dispatch", () => {
  let ledger: World;

  beforeEach(async () => {
    ledger = await World.start();
  });

  it("gives out by priority, then by submission", async () => {
    await ledger.submit(["low 1", "low 2"], { priority: -1 });
    await ledger.submit(["high 1", "high 2"], { submission: B, priority: 7 });
    await ledger.submit(["mid"], { submission: B, batchNumber: 2 });
    await ledger.submit(["high 3"], { submission: B, batchNumber: 3, priority: 7 });
    const worker = await ledger.worker(1, { credit: 10 });
    expect(worker.texts).to.deep.equal(["high 1", "high 2", "high 3", "mid", "low 1", "low 2"]);
  });

  it("gives a returned item out again before all that came after it", async () => {
    await ledger.submit(texts(6));
    const worker = await ledger.worker(1, { credit: 3 });
    await worker.handBack(worker.held.slice(0, 2));
    await worker.ask(3);
    expect(worker.texts).to.deep.equal(["item 2", "item 0", "item 1", "item 3"].slice(0, 4));
  });

  it("never gives more than was asked for, and what was not given is not lost", async () => {
    await ledger.submit(texts(20));
    const worker = await ledger.worker(1);
    expect(worker.held).to.have.length(0);
    for (const [more, total] of [
      [3, 3],
      [1, 4],
      [0, 4],
      [6, 10],
    ] as const) {
      await worker.ask(more);
      expect(worker.held).to.have.length(total);
    }
  });

  it("remembers what was asked for while there was nothing, and fills it when there is", async () => {
    const worker = await ledger.worker(1, { credit: 3 });
    await ledger.submit(texts(5));
    expect(worker.texts).to.deep.equal(texts(3));
  });

  it("shares few items between all workers that ask", async () => {
    const workers: WorldWorker[] = [];
    for (const number of [1, 2, 3]) workers.push(await ledger.worker(number, { credit: 100 }));
    await ledger.submit(texts(10));
    expect(workers.map(({ held }) => held.length)).to.deep.equal([4, 4, 2]);
  });

  it("gives a worker with little room no more than that, and the rest to the others", async () => {
    const workers: WorldWorker[] = [];
    for (const [number, credit] of [
      [1, 1],
      [2, 100],
    ] as const)
      workers.push(await ledger.worker(number, { credit }));
    await ledger.submit(texts(10));
    expect(workers.map(({ held }) => held.length)).to.deep.equal([1, 9]);
  });

  it("gives nothing to a worker that drains (C6), that has left, or that is suspected", async () => {
    const [draining, left, silent] = [
      await ledger.worker(1, { credit: 5 }),
      await ledger.worker(2, { credit: 5 }),
      await ledger.worker(3, { credit: 5 }),
    ];
    draining.state = "Draining";
    await draining.beat();
    left.state = "Gone";
    await left.beat();
    await ledger.watch(1_000, [draining]);
    await ledger.submit(texts(3));
    expect([draining, left, silent].map(({ held }) => held.length)).to.deep.equal([0, 0, 0]);
    await silent.beat();
    expect(silent.texts, "it is heard again").to.deep.equal(texts(3));
  });

  it("believes no more credit than a worker can have", async () => {
    const worker = await ledger.worker(1);
    for (let time = 0; time < 3; time++) await worker.ask(2 ** 32 - 1);
    expect(ledger.state.workers.get(worker.id)?.session?.credit).to.equal(16_384);
  });

  it("numbers assignments without gaps within a process, over several sessions", async () => {
    await ledger.submit(texts(9));
    const worker = await ledger.worker(1, { credit: 2 });
    await worker.hello();
    await worker.ask(3);
    // The harness checks each frame's first number against what the worker has received.
    expect(worker.received).to.equal(5);
  });

  it("puts no more into a frame than fits, and at least one item", async () => {
    const large = "x".repeat(700_000);
    await ledger.submit([`1${large}`, `2${large}`, `3${large}`]);
    const worker = await ledger.worker(1);
    await worker.ask(3);
    expect(worker.given.map(({ items }) => items.length)).to.deep.equal([2, 1]);
  });

  it("gives out more than a turn's worth in the turns that follow", async () => {
    const many = await World.start({ isChecked: false });
    await many.submit(texts(10_000));
    const workers: WorldWorker[] = [];
    for (let number = 1; number <= 5; number++) workers.push(await many.worker(number, { slots: 1_024 }));
    await many.step(...workers.map((worker) => worker.askInput(16_384)));
    await many.watch(2_000, workers);
    expect(workers.flatMap((worker) => worker.texts).sort()).to.deep.equal(texts(10_000).sort());
  });

  it("gives each item once while submissions and loads overtake each other", async () => {
    await ledger.offer(["item 1"]);
    // This leader has nothing in memory of what is there.
    await ledger.lead();
    const worker = await ledger.worker(1, { credit: 1_000 });
    for (let batchNumber = 2; batchNumber <= 20; batchNumber++) {
      await ledger.offer([`item ${batchNumber}`], { batchNumber });
      if (batchNumber % 3 === 0) await ledger.read();
      if (batchNumber % 2 === 0) await ledger.step(...ledger.fed.splice(0));
    }
    await ledger.settle();
    expect(worker.texts).to.deep.equal(Array.from({ length: 20 }, (_, at) => `item ${at + 1}`));
  });

  describe("of a run that names a plugin", () => {
    it("gives work to those only that have it, as their last beat says", async () => {
      const [without, having] = [
        await ledger.worker(1, { credit: 5 }),
        await ledger.worker(2, { credit: 1 }),
      ];
      having.plugins = [
        { name: "ocr", version: "1" },
        { name: "infer", version: "7" },
      ];
      await having.beat();
      without.plugins = [{ name: "ocr", version: "1" }];
      await without.beat();
      await ledger.submit(texts(3), { plugin: "infer" });
      expect([without.texts, having.texts]).to.deep.equal([[], ["item 0"]]);
      without.plugins = having.plugins;
      await without.beat();
      expect(without.texts).to.deep.equal(["item 1", "item 2"]);
    });

    it("tells each worker which one it is", async () => {
      const worker = await ledger.worker(1, { credit: 1 });
      worker.plugins = [{ name: "infer", version: "7" }];
      await worker.beat();
      await ledger.submit(["a"], { plugin: "infer" });
      expect(worker.given.map(({ plugin }) => plugin)).to.deep.equal(["infer"]);
    });

    it("has nothing stolen for one that does not have it", async () => {
      const victim = await ledger.worker(1, { slots: 1, credit: 4 });
      victim.plugins = [{ name: "infer", version: "7" }];
      await victim.beat();
      await ledger.worker(2, { slots: 1, credit: 4 });
      await ledger.submit(texts(4), { plugin: "infer" });
      await ledger.watch(1_000, ledger.workers);
      expect(victim.framesOf("recall")).to.deep.equal([]);
    });
  });

  describe("to workers that may be gone soon", () => {
    it("gives what the others have no room for", async () => {
      const [risky, safe] = [await ledger.worker(1, { credit: 10 }), await ledger.worker(2, { credit: 2 })];
      risky.isAtRisk = true;
      await risky.beat();
      await ledger.submit(texts(2));
      expect([risky.held.length, safe.held.length]).to.deep.equal([0, 2]);
      await ledger.submit(texts(2, "more"), { batchNumber: 2 });
      expect([risky.held.length, safe.held.length]).to.deep.equal([2, 2]);
    });

    it("gives all there is when there are no others, and again as before when they are safe", async () => {
      const [one, two] = [await ledger.worker(1, { credit: 4 }), await ledger.worker(2, { credit: 4 })];
      for (const worker of [one, two]) {
        worker.isAtRisk = true;
        await worker.beat();
      }
      await ledger.submit(texts(2));
      expect([one.held.length, two.held.length]).to.deep.equal([1, 1]);
      two.isAtRisk = false;
      await two.beat();
      await ledger.submit(texts(1, "more"), { batchNumber: 2 });
      expect(two.texts).to.include("more 0");
    });

    it("takes nothing for them from a backlog that is safer where it is", async () => {
      const [safe, risky] = [
        await ledger.worker(1, { slots: 1, credit: 4 }),
        await ledger.worker(2, { slots: 1, credit: 4 }),
      ];
      risky.isAtRisk = true;
      await risky.beat();
      await ledger.submit(texts(4));
      await ledger.watch(1_000, ledger.workers);
      expect(safe.framesOf("recall")).to.deep.equal([]);
      safe.isAtRisk = true;
      await safe.beat();
      await ledger.watch(500, ledger.workers);
      expect(safe.framesOf("recall")).to.have.length(1);
    });
  });

  describe("of what a worker has failed", () => {
    /** Longer than the longest wait after a first failure, shorter than anybody's patience. */
    const BACKOFF_MS = 1_250;

    it("goes to another worker, even if that has room later", async () => {
      const [failing, other] = [await ledger.worker(1, { credit: 1 }), await ledger.worker(2)];
      await ledger.submit(["a"]);
      await failing.report([...failing.held], ERROR);
      await failing.ask(5);
      await ledger.watch(BACKOFF_MS, ledger.workers);
      expect(failing.held).to.have.length(0);
      await other.ask(1);
      expect(other.texts).to.deep.equal(["a"]);
    });

    it("does not keep it from other work, nor others from theirs", async () => {
      const [failing, other] = [await ledger.worker(1, { credit: 2 }), await ledger.worker(2)];
      await ledger.submit(["a", "b", "c", "d"]);
      await failing.report(failing.held.slice(0, 1), ERROR);
      await ledger.watch(BACKOFF_MS, ledger.workers);
      await failing.ask(1);
      expect(failing.texts).to.deep.equal(["b", "c"]);
      await other.ask(2);
      expect(other.texts, "what came first comes first").to.deep.equal(["a", "d"]);
    });

    for (const [what, change] of [
      ["has left", { state: "Gone" }],
      ["drains", { state: "Draining" }],
      ["cannot execute it", { plugins: [] }],
    ] as const)
      it(`goes to the same worker when the other ${what}`, async () => {
        const [failing, other] = [await ledger.worker(1, { credit: 1 }), await ledger.worker(2)];
        for (const worker of [failing, other]) {
          worker.plugins = [{ name: "infer", version: "1" }];
          await worker.beat();
        }
        await ledger.submit(["a"], { plugin: "infer" });
        await failing.report([...failing.held], ERROR);
        Object.assign(other, change);
        await other.beat();
        await failing.ask(1);
        await ledger.watch(BACKOFF_MS, [failing]);
        expect(failing.texts).to.deep.equal(["a"]);
      });

    it("goes to the same worker in the end when the other has never room for it", async () => {
      const [failing] = [await ledger.worker(1, { credit: 1 }), await ledger.worker(2)];
      await ledger.submit(["a"]);
      await failing.report([...failing.held], ERROR);
      await failing.ask(1);
      await ledger.watch(59_000, ledger.workers);
      expect(failing.held).to.have.length(0);
      await ledger.watch(3_000, ledger.workers);
      expect(failing.texts).to.deep.equal(["a"]);
    });

    it("is given out once, whatever is read of it meanwhile", async () => {
      const [failing, other] = [await ledger.worker(1, { credit: 2 }), await ledger.worker(2)];
      await ledger.submit(["a", "b", "c", "d"]);
      const [a, b] = failing.held;
      if (a === undefined || b === undefined) return expect.fail("they were given out");
      await failing.report([b], ERROR);
      await ledger.watch(BACKOFF_MS, ledger.workers);
      await failing.ask(1);
      expect(failing.texts, "the other may have it").to.deep.equal(["a", "c"]);
      failing.forget([a]);
      await ledger.step({ kind: "handedBack", workerId: failing.id, port: failing.port, attempts: [a] });
      await ledger.read();
      expect(
        ledger.fed.map(({ kind }) => kind),
        "both rows were read",
      ).to.include("loaded");
      await ledger.step(other.askInput(1));
      expect(other.texts).to.deep.equal(["b"]);
      await ledger.settle();
      await other.ask(5);
      await failing.ask(5);
      expect([...failing.texts, ...other.texts].sort()).to.deep.equal(["a", "b", "c", "d"]);
    });

    it("is remembered by the next leader", async () => {
      const [failing, other] = [await ledger.worker(1, { credit: 1 }), await ledger.worker(2)];
      await ledger.submit(["a"]);
      await failing.report([...failing.held], ERROR);
      await ledger.watch(BACKOFF_MS, ledger.workers);
      await ledger.lead();
      for (const worker of [failing, other]) {
        await worker.rejoin();
        await worker.ask(1);
      }
      expect([failing.texts, other.texts]).to.deep.equal([[], ["a"]]);
    });
  });

  describe("of an item that runs alone", () => {
    const SHARED: ReportedOutcome = { kind: "crash_shared", message: "the server died" };

    it("waits for a worker that has nothing, and that gets nothing beside it until it has ended", async () => {
      const worker = await ledger.worker(1, { slots: 4, credit: 3 });
      await ledger.submit(texts(6));
      await worker.report(worker.held.slice(0, 1), SHARED);
      await worker.ask(4);
      expect(worker.texts, "it still has other work").to.deep.equal(["item 1", "item 2"]);
      await worker.report([...worker.held]);
      expect(worker.held.map(({ text, alone }) => [text, alone])).to.deep.equal([["item 0", true]]);
      await worker.ask(5);
      expect(worker.texts).to.deep.equal(["item 0"]);
      await worker.report([...worker.held]);
      expect(worker.held.map(({ text, alone }) => [text, alone])).to.deep.equal([
        ["item 3", false],
        ["item 4", false],
        ["item 5", false],
      ]);
    });

    it("comes after items of a higher priority, and keeps no worker for itself before", async () => {
      const worker = await ledger.worker(1, { slots: 2, credit: 1 });
      await ledger.submit(["low"]);
      await ledger.submit(["high 1", "high 2"], { batchNumber: 2, priority: 1 });
      await worker.report([...worker.held], SHARED);
      await worker.ask(1);
      expect(worker.held.map(({ text, alone }) => [text, alone])).to.deep.equal([["high 1", false]]);
      await worker.report([...worker.held]);
      await worker.ask(1);
      expect(worker.texts).to.deep.equal(["high 2"]);
      await worker.report([...worker.held]);
      await worker.ask(1);
      expect(worker.held.map(({ text, alone }) => [text, alone])).to.deep.equal([["low", true]]);
    });

    it("keeps one worker of several for it, and the others go on", async () => {
      const workers: WorldWorker[] = [];
      for (const number of [1, 2, 3]) workers.push(await ledger.worker(number, { slots: 2, credit: 2 }));
      const [one, two, three] = workers;
      if (one === undefined || two === undefined || three === undefined)
        return expect.fail("there are three workers");
      await ledger.submit(texts(30));
      await one.report([...one.held], SHARED);
      for (const worker of workers) await worker.ask(4);
      expect(one.held.map(({ alone }) => alone)).to.deep.equal([true]);
      expect([two.held.length, three.held.length]).to.deep.equal([6, 6]);
      await one.report([...one.held]);
      expect(one.held.map(({ alone }) => alone)).to.deep.equal([true]);
      await one.report([...one.held]);
      expect(one.held.length).to.be.above(1);
    });

    it("is not charged, and is charged when it crashes alone", async () => {
      const worker = await ledger.worker(1, { credit: 1 });
      await ledger.submit(["a"]);
      await worker.report([...worker.held], SHARED);
      for (const [attempt, kind] of [
        [2, "crash"],
        [3, "crash_shared"],
        [4, "crash"],
      ] as const) {
        await worker.ask(1);
        await ledger.watch(61_000, [worker]);
        expect(worker.held.map(({ attempt: of, alone }) => [of, alone])).to.deep.equal([[attempt, true]]);
        await worker.report([...worker.held], { kind, message: "it died" });
      }
      expect(await ledger.view()).to.include({ failed: 1, pending: 0 });
    });

    it("is one that two workers were lost with; it fails as poison when more are", async () => {
      await ledger.submit(["a"]);
      const aloneOf: boolean[] = [];
      const spare = await ledger.worker(1);
      for (let number = 2; number <= 6; number++) {
        const dying = await ledger.worker(number, { credit: 1 });
        await ledger.settle();
        aloneOf.push(...dying.held.map(({ alone }) => alone));
        await ledger.watch(6_250, [spare]);
      }
      expect(aloneOf).to.deep.equal([false, false, true, true, true]);
      expect(await ledger.view()).to.include({ failed: 1, pending: 0 });
      expect((await ledger.view()).failedByClass).to.include({ poison: 1 });
    });

    it("stays alone through a restart of the coordinator", async () => {
      const worker = await ledger.worker(1, { slots: 4, credit: 1 });
      await ledger.submit(texts(3));
      await worker.report([...worker.held], SHARED);
      await worker.ask(1);
      expect(worker.texts).to.deep.equal(["item 0"]);
      await ledger.lead();
      await worker.rejoin();
      await worker.ask(3);
      expect(worker.texts).to.deep.equal(["item 0"]);
      await worker.report([...worker.held]);
      expect(worker.texts).to.deep.equal(["item 1", "item 2"]);
    });

    it("has nothing stolen for the worker that is kept for it", async () => {
      const [kept, victim] = [
        await ledger.worker(1, { slots: 3, credit: 2 }),
        await ledger.worker(2, { slots: 1, credit: 6 }),
      ];
      await ledger.submit(texts(6));
      await kept.report(kept.held.slice(0, 1), SHARED);
      await kept.ask(3);
      await ledger.watch(1_500, ledger.workers);
      expect(kept.held).to.have.length(1);
      expect(victim.framesOf("recall")).to.deep.equal([]);
    });
  });

  it("makes an item wait that is handed back ten times within a minute, and charges nothing", async () => {
    const worker = await ledger.worker(1);
    await ledger.submit(["a"]);
    for (let time = 1; time <= 10; time++) {
      await worker.ask(1);
      expect(worker.held.map(({ attempt }) => attempt)).to.deep.equal([time]);
      ledger.pass(5_900);
      await worker.handBack([...worker.held]);
    }
    await worker.ask(1);
    expect(worker.held).to.have.length(0);
    expect(await ledger.view()).to.include({ pending: 1, delayed: 1 });
    await ledger.watch(1_250, [worker]);
    expect(worker.held.map(({ attempt }) => attempt)).to.deep.equal([11]);
    expect(ledger.contextOf(worker.held[0])).to.include({ charged: 0, lost: 0 });
    ledger.pass(60_000);
    await worker.handBack([...worker.held]);
    await worker.ask(1);
    expect(
      worker.held.map(({ attempt }) => attempt),
      "a minute later it is as any other",
    ).to.deep.equal([12]);
  });

  it("gives no more than a worker reads", async () => {
    const many = await World.start({ isChecked: false });
    await many.submit(Array.from({ length: 80 }, (_, at) => `${at} ${"x".repeat(1_000_000)}`));
    const worker = await many.worker(1);
    await worker.ask(80);
    await many.watch(1_000, [worker]);
    expect(worker.held.length).to.be.within(60, 70);
    await worker.ask(1);
    await many.watch(1_000, [worker]);
    expect(worker.held).to.have.length(80);
  });
});
