// Attempts that name a version, and those that try a release's candidate: whatever ends a trial costs its item nothing.
import { expect } from "chai";
import type { ReportedOutcome } from "../../../../src/coordinator/turn/session-frame.ts";
import { assignItem } from "../../../../src/coordinator/items/transitions.ts";
import type { Stamp } from "../../../../src/coordinator/items/trials.ts";
import { nextPending } from "../../../../src/coordinator/ledger/queue.ts";
import { Turn } from "../../../../src/coordinator/turn/turn.ts";
import { CHECKPOINTS_PREFIX } from "../../../../src/storage/keys.ts";
import { batchOf } from "../../../support/batch.ts";
import { World } from "../../../support/world.ts";
import { ERROR, claimOf, reportOf } from "../../../support/world-worker.ts";
import type { HeldItem, WorldWorker } from "../../../support/world-worker.ts";
import { PowerLossStore } from "../../../support/power-loss-store.ts";

/** From the beat that was due to the failure, and a scan more. */
const FAILURE_MS = 6_250;
const RELEASE = "01RE1EASE00000000000000000";
const CANDIDATE: Stamp = { version: "2", trial: RELEASE };

describe("an attempt on trial", () => {
  let world: World;
  let worker: WorldWorker;
  let other: WorldWorker;

  beforeEach(async () => {
    world = await World.start({ store: new PowerLossStore(), budgets: { maxAttempts: 1, maxLost: 1 } });
    worker = await world.worker(1, { slots: 1 });
    other = await world.worker(2, { slots: 2 });
  });

  /** The next item is given to the worker, in a turn of its own. */
  async function give(stamp: Stamp): Promise<HeldItem> {
    const { state } = world;
    const { ledger } = state;
    const turn = new Turn(world.nowMs, world.wallMs, world.wallMs);
    const row = state.workers.get(worker.id);
    const item = nextPending(ledger, { worker: worker.id, isOnlyOne: true, nowMs: world.nowMs });
    if (item === undefined || row?.session === undefined)
      throw new Error("there is an item, and who takes it");
    const number = row.session.nextNumber++;
    const { incarnation } = worker;
    const to = { worker: worker.id, incarnation, epoch: state.epoch, number, ...stamp };
    const running = assignItem(ledger, turn, item, to);
    row.held.set(running.itemKey, running);
    turn.put(ledger.tally.entry());
    const { puts, deletes } = turn.writes;
    await world.store.commit(batchOf({ puts, deletes }));
    worker.received++;
    const { id, payload } = item;
    const { attempt } = running.row.context;
    const held = { id, attempt, payload, priority: 0, alone: false, checkpoint: null, incarnation };
    worker.held.push({ ...held, epoch: state.epoch, text: Buffer.from(payload).toString() });
    await world.scan();
    return worker.held.at(-1) ?? expect.fail();
  }

  /** The only item, as whoever asks for it next is given it. */
  async function next(): Promise<object> {
    await other.ask(1);
    const [item] = other.held;
    const { charged, lost, failedBy, isApart, tried } = world.contextOf(item) ?? expect.fail();
    const { alone, checkpoint } = item ?? expect.fail();
    return { charged, lost, failedBy, isApart, tried, alone, checkpoint };
  }

  const asItWas = {
    ...{ charged: 0, lost: 0, failedBy: "", isApart: false, alone: false, checkpoint: null },
    tried: RELEASE,
  };

  const ends: Readonly<Record<string, ReportedOutcome>> = {
    "an error": ERROR,
    "an error for good": { ...ERROR, isPermanent: true },
    "a timeout": { kind: "timeout", message: "too long" },
    "a crash": { kind: "crash", message: "it died" },
    "a shared crash": { kind: "crash_shared", message: "they died" },
    "too large an output": { kind: "too_large", message: "too large" },
  };
  for (const [what, outcome] of Object.entries(ends))
    it(`that ends with ${what} leaves its item as it was, and no worker is blamed`, async () => {
      await world.submit(["a"]);
      const item = await give(CANDIDATE);
      await worker.report([item], outcome);
      expect(await world.view()).to.include({ pending: 1, delayed: 0, failed: 0 });
      expect(world.state.workers.get(worker.id)?.trust.context.failuresInRow).to.equal(0);
      await world.lead();
      await other.rejoin();
      expect(await next()).to.deep.equal(asItWas);
    });

  it("that is lost with its worker leaves its item as it was", async () => {
    await world.submit(["a"]);
    await give(CANDIDATE);
    await world.watch(FAILURE_MS, [other]);
    expect(await next()).to.deep.equal(asItWas);
  });

  it("stays the candidate's under a later leader", async () => {
    await world.submit(["a"]);
    const item = await give(CANDIDATE);
    await world.lead();
    await worker.rejoin();
    expect(world.contextOf(item)).to.include({ trial: RELEASE, tried: "", attempt: 1 });
    await worker.report([item], ERROR);
    await other.rejoin();
    expect(await next()).to.deep.equal(asItWas);
  });

  it("that is handed back may be tried again", async () => {
    await world.submit(["a"]);
    await worker.handBack([await give(CANDIDATE)]);
    expect(await next()).to.deep.equal({ ...asItWas, tried: "" });
  });

  it("takes the checkpoint with it that it has left, and no other attempt is given it", async () => {
    await world.submit(["a"]);
    const item = await give(CANDIDATE);
    const { id, attempt, epoch, incarnation } = item;
    const checkpoint = Buffer.from("of the candidate");
    const sent = [{ id, attempt, epoch, checkpoint }];
    await world.step({ kind: "checkpoints", workerId: worker.id, port: worker.port, checkpoints: sent });
    expect(await world.countUnder(CHECKPOINTS_PREFIX)).to.equal(1);
    await worker.send([{ id, attempt, epoch, incarnation, outcome: ERROR, checkpoint }]);
    worker.forget([item]);
    expect(await world.countUnder(CHECKPOINTS_PREFIX)).to.equal(0);
    expect(await next()).to.deep.equal(asItWas);
  });

  it("that is preempted leaves a checkpoint for its own version alone", async () => {
    await world.submit(["a"]);
    const item = await give(CANDIDATE);
    const checkpoint = Buffer.from("of the candidate");
    const ended = { ...reportOf(item, { kind: "preempted" }), checkpoint };
    await worker.send([ended]);
    worker.forget([item]);
    expect(await world.countUnder(CHECKPOINTS_PREFIX)).to.equal(1);
    expect(await next(), "the worker's own version").to.deep.equal({ ...asItWas, tried: "" });
  });

  it("is charged as any other where it is no trial any more, but names a version", async () => {
    await world.submit(["a"]);
    await worker.report([await give({ version: "2", trial: "" })], ERROR);
    expect(await world.view()).to.include({ pending: 0, failed: 1 });
  });

  it("that the ledger has forgotten is taken up with the version that the worker names", async () => {
    await world.submit(["a"]);
    await worker.ask(1);
    await world.losePower();
    await worker.beat();
    const [item] = worker.held;
    if (item === undefined) throw new Error("it is held");
    expect(await worker.hello([{ ...claimOf(item), pluginVersion: "2" }])).to.deep.equal([true]);
    expect([...world.state.ledger.running.values()].map(({ version }) => version)).to.deep.equal(["2"]);
    await world.lead();
    expect([...world.state.ledger.running.values()].map(({ version }) => version)).to.deep.equal(["2"]);
  });
});
