// A worker that takes all it can get and gives nothing back: what it may have at all, and how long others wait for it.
import { expect } from "chai";
import { LIMITS } from "../../../../src/config/limits.ts";
import type { Input } from "../../../../src/coordinator/turn/input.ts";
import { texts, World } from "../../../support/world.ts";
import { claimOf, reportOf } from "../../../support/world-worker.ts";
import type { HeldItem, WorldWorker } from "../../../support/world-worker.ts";

/** Twice the failure timeout. */
const DEADLINE_MS = 10_000;

describe("a worker that hoards", () => {
  let ledger: World;
  let hoarder: WorldWorker;
  let thief: WorldWorker;

  beforeEach(async () => {
    ledger = await World.start();
    hoarder = await ledger.worker(1, { slots: 1 });
    thief = await ledger.worker(2, { slots: 4 });
  });

  const dropped = (): number =>
    hoarder.framesOf("drop").reduce((sum, { attempts }) => sum + attempts.length, 0);

  /** It has these, the thief has nothing, and what it has not started is asked back. */
  async function hoard(...texts: string[]): Promise<HeldItem[]> {
    await ledger.submit(texts);
    await hoarder.ask(10);
    await ledger.watch(500, ledger.workers);
    await thief.ask(10);
    expect(hoarder.framesOf("recall")).not.to.deep.equal([]);
    return [...hoarder.held];
  }

  it("has no more than the coordinator's limits, whatever it asks for", async () => {
    const many = await World.start({ isChecked: false });
    const worker = await many.worker(1, { slots: 4 });
    await many.submit(texts(LIMITS.backlogPerWorker + 1_000));
    for (let times = 0; times < 3; times++) await worker.ask(16_384);
    expect(worker.held).to.have.length(4 + LIMITS.backlogPerWorker);
    await worker.report(worker.held.slice(0, 100));
    expect(worker.held, "what it finishes makes room").to.have.length(4 + LIMITS.backlogPerWorker);
  });

  it("keeps what it has not started for no longer than the deadline when it ignores that it is asked", async () => {
    const held = await hoard("a", "b", "c");
    await ledger.watch(DEADLINE_MS - 1_000, ledger.workers);
    expect(thief.texts).to.deep.equal([]);
    await ledger.watch(2_000, ledger.workers);
    expect(thief.texts, "half of a backlog at a time").to.deep.equal(["c"]);
    expect(dropped()).to.equal(1);
    await ledger.watch(3 * DEADLINE_MS, ledger.workers);
    expect(thief.texts, "the first of as many as it has slots has begun").to.deep.equal(["c", "b"]);
    await hoarder.send(held.map((item) => reportOf(item)));
    await ledger.settle();
    expect(await ledger.view(), "what it reports then is too late").to.include({ done: 1, staleReports: 2 });
    await thief.report(thief.held);
    expect(await ledger.view()).to.include({ done: 3, running: 0, conflicts: 0 });
  });

  it("answers no recall with what it hands back unasked", async () => {
    const held = await hoard("a", "b", "c");
    const stolen = (): number[] => ledger.events.of("work_stolen").map(({ items }) => items);
    await hoarder.handBack(held.slice(1, 2));
    expect([thief.texts, stolen()], "it goes on like anything that is handed back").to.deep.equal([
      ["b"],
      [],
    ]);
    await hoarder.handBack(held.slice(2));
    expect(stolen()).to.deep.equal([1]);
  });

  it("has its late result recorded while no other worker has the item", async () => {
    const held = await hoard("a", "b", "c");
    await ledger.step({ kind: "withdrawCredit", workerId: hoarder.id, port: hoarder.port });
    thief.state = "Draining";
    await ledger.watch(DEADLINE_MS + 1_000, ledger.workers);
    expect(await ledger.view()).to.include({ pending: 1, running: 2 });
    await hoarder.send([reportOf(held[2] as HeldItem)]);
    await ledger.settle();
    expect(await ledger.view()).to.include({ done: 1, pending: 0, staleReports: 0 });
  });

  it("does not win time by opening one session after the other", async () => {
    await hoard("a", "b", "c");
    const verdict = await hoarder.hello(
      hoarder.held.map((item) => ({ ...claimOf(item), phase: "unstarted" as const })),
    );
    expect(verdict, "its statement is the answer").to.deep.equal([true, true, false]);
    expect(thief.texts).to.deep.equal(["c"]);
  });

  it("does not win time by saying on one session after the other that it has begun all of it", async () => {
    await hoard("a", "b", "c");
    await ledger.step({ kind: "pause", reason: "wait", answer: () => undefined });
    for (let passedMs = 0; passedMs <= DEADLINE_MS; passedMs += 2_500) {
      await hoarder.hello(hoarder.held.map((item) => ({ ...claimOf(item), phase: "running" as const })));
      await ledger.watch(2_500, ledger.workers);
    }
    expect(await ledger.view()).to.include({ pending: 2, running: 1 });
  });

  it("hands back by what it states when it makes calls, and not before the deadline", async () => {
    await hoard("a", "b", "c");
    const call = async (): Promise<readonly boolean[] | undefined> => {
      const claims = hoarder.held.map((item) => ({ ...claimOf(item), phase: "unstarted" as const }));
      await ledger.step({ ...hoarder.helloInput(claims), takesOneFrame: true } as Input);
      await ledger.settle();
      return hoarder.framesOf("verdict")[0]?.keep;
    };
    expect(await call(), "it may not have heard of it").to.deep.equal([true, true, true]);
    await ledger.watch(DEADLINE_MS + 1_000, ledger.workers);
    expect([dropped(), thief.texts]).to.deep.equal([0, []]);
    expect(await call()).to.deep.equal([true, true, false]);
    expect(thief.texts).to.deep.equal(["c"]);
  });

  it("is believed what it says to have begun, as far as it has slots", async () => {
    await hoard("a", "b", "c");
    // The answer to what it was asked for: nothing of it is handed back.
    await hoarder.handBack([]);
    await ledger.watch(DEADLINE_MS + 1_000, ledger.workers);
    expect(thief.texts, "it can have begun one").to.not.include("c");
    for (let times = 0; times < 4; times++) {
      await ledger.watch(DEADLINE_MS, ledger.workers);
      await hoarder.handBack([]);
    }
    expect(thief.texts).to.have.length(2);
  });

  it("hands back in its own time what a paused run asks for, if it answers", async () => {
    await ledger.submit(["a", "b"]);
    await hoarder.ask(10);
    await ledger.step({ kind: "pause", reason: "wait", answer: () => undefined });
    await hoarder.handBack(hoarder.held.slice(1));
    await ledger.watch(3 * DEADLINE_MS, ledger.workers);
    expect(await ledger.view()).to.include({ pending: 1, running: 1 });
    expect(dropped()).to.equal(0);
  });

  it("is forgiven the time in which the coordinator did not run", async () => {
    await hoard("a", "b", "c");
    ledger.nowMs += 60_000;
    ledger.wallMs += 60_000;
    await ledger.step({ kind: "scan" });
    expect(dropped()).to.equal(0);
    await hoarder.handBack(hoarder.held.slice(2));
    expect(thief.texts).to.deep.equal(["c"]);
  });
});
