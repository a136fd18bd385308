// Each promise of a Pull on its own: the desk and the reactor with its ledger, without the network between.
import { expect } from "chai";
import type { PullAnswer } from "../../../../src/coordinator/rpc/pull.ts";
import type { AssignedItem } from "../../../../src/coordinator/turn/session-frame.ts";
import type { WorldWorker } from "../../../support/world-worker.ts";
import { PullRig, textsOf } from "./pull-rig.ts";
import { failureOf } from "../../../support/rejection.ts";
import { settle } from "../../../support/settle.ts";

const itemsOf = ({ assignments }: PullAnswer): readonly AssignedItem[] => assignments?.items ?? [];
const attemptsOf = (answer: PullAnswer): number[] => itemsOf(answer).map(({ attempt }) => attempt);

describe("pull desk", () => {
  let rig: PullRig;
  let worker: WorldWorker;

  beforeEach(async () => {
    rig = await PullRig.start();
    worker = await beating(rig, 1);
  });

  /** A caller opens no stream. */
  async function beating({ world }: PullRig, number: number, slots = 4): Promise<WorldWorker> {
    const joined = await world.worker(number, { slots });
    await world.step({ kind: "sessionEnded", workerId: joined.id, port: joined.port });
    return joined;
  }

  const pendingOf = async ({ world }: PullRig): Promise<unknown> => {
    const { pending, running } = await world.view();
    return { pending, running };
  };

  describe("takes back what was given in an answer that was lost", () => {
    /** A failure timeout, and a scan more. */
    const PATIENCE_MS = 5_500;

    it("when the worker goes on beating and does not ask again", async () => {
      await rig.world.submit(["a", "b"]);
      await rig.pull(worker, { requestId: "lost", credit: 2 });
      worker.acknowledges = 0;
      await rig.world.watch(PATIENCE_MS, [worker]);
      expect(await pendingOf(rig)).to.deep.equal({ pending: 2, running: 0 });
      const other = await beating(rig, 2);
      expect(textsOf(await rig.pull(other, { credit: 1 }))).to.deep.equal(["a"]);
      const again = await rig.pull(worker, { requestId: "lost", credit: 2 });
      expect(
        itemsOf(again).map(({ attempt }) => attempt),
        "not what others have by now",
      ).to.deep.equal([2]);
      expect(textsOf(again)).to.deep.equal(["b"]);
    });

    it("and nothing that its beats acknowledge, or of which they say nothing", async () => {
      const other = await beating(rig, 2);
      await rig.world.submit(["a", "b"]);
      for (const one of [worker, other]) await rig.pull(one, { credit: 1 });
      worker.acknowledges = 1;
      await rig.world.watch(3 * PATIENCE_MS, [worker, other]);
      expect(await pendingOf(rig)).to.deep.equal({ pending: 0, running: 2 });
    });

    it("but not for the time in which the coordinator did not run: the answer may be on its way", async () => {
      await rig.world.submit(["a"]);
      await rig.pull(worker, { credit: 1 });
      worker.acknowledges = 0;
      rig.world.pass(10 * PATIENCE_MS);
      await worker.beat();
      await rig.world.step({ kind: "scan" });
      expect(await pendingOf(rig)).to.deep.equal({ pending: 0, running: 1 });
      await rig.world.watch(PATIENCE_MS, [worker]);
      expect(await pendingOf(rig)).to.deep.equal({ pending: 1, running: 0 });
    });

    it("when the next process of the worker beats and has not asked yet", async () => {
      const other = await beating(rig, 2);
      await rig.world.submit(["a"]);
      await rig.pull(worker, { credit: 1 });
      worker.restart(2);
      await rig.world.watch(2 * PATIENCE_MS, [worker, other]);
      expect(await pendingOf(rig)).to.deep.equal({ pending: 1, running: 0 });
      expect(textsOf(await rig.pull(other, { credit: 1 }))).to.deep.equal(["a"]);
    });

    it("but does not expect it to have asked while the coordinator did not run", async () => {
      const other = await beating(rig, 2);
      await rig.world.submit(["a"]);
      await rig.pull(worker, { credit: 1 });
      worker.restart(2);
      await worker.beat();
      rig.world.pass(10 * PATIENCE_MS);
      for (const one of [worker, other]) await one.beat();
      await rig.world.step({ kind: "scan" });
      expect(await pendingOf(rig)).to.deep.equal({ pending: 0, running: 1 });
    });

    it("also when another coordinator leads by then", async () => {
      await rig.world.submit(["a"]);
      await rig.pull(worker, { credit: 1 });
      worker.acknowledges = 0;
      await rig.restart();
      await rig.world.watch(PATIENCE_MS, [worker]);
      expect(await pendingOf(rig)).to.deep.equal({ pending: 1, running: 0 });
    });
  });

  describe("takes back what a worker has had, and a store that went back has it have still,", () => {
    /** Two failure timeouts, and a scan more. */
    const PATIENCE_MS = 10_500;

    beforeEach(async () => {
      await rig.world.submit(["a"]);
      await rig.pull(worker, { credit: 1 });
      worker.acknowledges = 1;
      await rig.restart();
    });

    it("when the worker beats, asks for nothing, and says that it has nothing", async () => {
      worker.holdsNothing = true;
      await rig.world.watch(PATIENCE_MS, [worker]);
      expect(await pendingOf(rig)).to.deep.equal({ pending: 1, running: 0 });
      const other = await beating(rig, 2);
      expect(attemptsOf(await rig.pull(other, { credit: 1 }))).to.deep.equal([2]);
    });

    it("and not from one that does not say so, nor before it has had time to ask", async () => {
      await rig.world.watch(PATIENCE_MS, [worker]);
      expect(await pendingOf(rig)).to.deep.equal({ pending: 0, running: 1 });
      await rig.restart();
      worker.holdsNothing = true;
      await rig.world.watch(PATIENCE_MS / 2, [worker]);
      expect(await pendingOf(rig)).to.deep.equal({ pending: 0, running: 1 });
    });
  });

  describe("takes nothing back for a call that a later one has overtaken on its way", () => {
    beforeEach(async () => {
      await rig.world.submit(["a"]);
      await rig.pull(worker, { requestId: "first", callNumber: 1 });
      const later = await rig.pull(worker, { requestId: "later", callNumber: 2, credit: 1 });
      expect(textsOf(later)).to.deep.equal(["a"]);
    });

    const overtaken = { requestId: "first", callNumber: 1, credit: 1 };

    it("whose answer is empty, and the later one can still be repeated", async () => {
      expect(itemsOf(await rig.pull(worker, overtaken))).to.deep.equal([]);
      const again = await rig.pull(worker, { requestId: "later", callNumber: 2, credit: 1 });
      expect(attemptsOf(again)).to.deep.equal([1]);
      expect(await pendingOf(rig)).to.deep.equal({ pending: 0, running: 1 });
    });

    it("also when the later one is not remembered any more", async () => {
      rig.world.state.workers.get(worker.id)?.session?.port.end();
      const started = rig.start(worker, overtaken);
      await rig.run();
      expect(started.error).to.include({ code: "request_invalid" });
      expect(await pendingOf(rig)).to.deep.equal({ pending: 0, running: 1 });
    });

    it("unless its worker does not count its calls", async () => {
      expect(attemptsOf(await rig.pull(worker, { ...overtaken, callNumber: 0 }))).to.deep.equal([2]);
    });
  });

  describe("gives", () => {
    it("as much as was asked for, numbered from what was acknowledged", async () => {
      await rig.world.submit(["a", "b", "c"]);
      const first = await rig.pull(worker, { credit: 2 });
      expect(textsOf(first)).to.deep.equal(["a", "b"]);
      expect(first.assignments?.firstNumber).to.equal(1);
      const held = rig.claims(itemsOf(first));
      const second = await rig.pull(worker, { credit: 2, held, ackedAssignment: 2 });
      expect(textsOf(second)).to.deep.equal(["c"]);
      expect(second.assignments?.firstNumber).to.equal(3);
      expect(await pendingOf(rig)).to.deep.equal({ pending: 0, running: 3 });
    });

    it("one frame of bytes, and leaves the rest to others", async () => {
      await rig.world.submit(["a", "b", "c"].map((text) => text.repeat(700 * 1024)));
      expect(itemsOf(await rig.pull(worker, { credit: 100 }))).to.have.length(2);
      expect(await pendingOf(rig)).to.deep.equal({ pending: 1, running: 2 });
    });

    it("nothing to a process that nobody has heard of", async () => {
      const { incarnation } = await beating(rig, 2);
      worker.restart(7);
      expect(incarnation).not.to.equal(worker.incarnation);
      const error = await failureOf(rig.pull(worker, { credit: 1 }));
      expect([error.code, error.params["method"]]).to.deep.equal(["request_invalid", "Pull"]);
    });

    it("nothing when the inbox is full, and takes the same request when there is room", async () => {
      await rig.world.submit(["a"]);
      rig.inboxMax = 1;
      const refused = rig.start(worker, { credit: 1, requestId: "again" });
      await rig.run();
      expect(refused.error).to.include({ code: "overloaded" });
      rig.inboxMax = 1_000;
      expect(textsOf(await rig.pull(worker, { credit: 1, requestId: "again" }))).to.deep.equal(["a"]);
    });
  });

  describe("a request that is repeated", () => {
    it("has the same batch when the answer to the first was lost", async () => {
      await rig.world.submit(["a", "b"]);
      const asked = { credit: 1, requestId: "one" };
      const first = await rig.pull(worker, asked);
      const again = await rig.pull(worker, asked);
      expect(again).to.deep.equal(first);
      expect(await pendingOf(rig)).to.deep.equal({ pending: 1, running: 1 });
    });

    it("has the same batch while the first still waits", async () => {
      const asked = { credit: 1, requestId: "one", waitMs: 1_000 };
      const calls = [rig.start(worker, asked), rig.start(worker, asked)];
      await rig.run();
      await rig.world.submit(["a"]);
      await rig.run();
      expect(calls.map(({ answer }) => answer && textsOf(answer))).to.deep.equal([["a"], ["a"]]);
    });

    it("is answered by a leader that leads, not from memory", async () => {
      await rig.world.submit(["a"]);
      const asked = { credit: 1, requestId: "one" };
      await rig.pull(worker, asked);
      const again = rig.start(worker, asked);
      await settle();
      expect(again.answer).to.equal(undefined);
      await rig.run();
      expect(again.answer && textsOf(again.answer)).to.deep.equal(["a"]);
    });

    it("is asked anew when what it brought was given away meanwhile", async () => {
      await rig.world.submit(["a"]);
      const asked = { credit: 1, requestId: "one" };
      expect(attemptsOf(await rig.pull(worker, asked))).to.deep.equal([1]);
      await rig.world.watch(6_000);
      expect(await pendingOf(rig)).to.deep.equal({ pending: 1, running: 0 });
      await worker.beat();
      expect(attemptsOf(await rig.pull(worker, asked))).to.deep.equal([2]);
    });

    it("is asked anew when it was forgotten, and nothing is charged for that", async () => {
      rig = await PullRig.start({ rememberedBytesMax: 1, budgets: { maxAttempts: 1, maxLost: 1 } });
      const [one, other] = [await beating(rig, 1), await beating(rig, 2)];
      await rig.world.submit(["aa", "bb"]);
      const asked = { credit: 1, requestId: "one" };
      expect(attemptsOf(await rig.pull(one, asked))).to.deep.equal([1]);
      await rig.pull(other, { credit: 1 });
      const again = await rig.pull(one, asked);
      expect([textsOf(again), attemptsOf(again)]).to.deep.equal([["aa"], [2]]);
      expect(await rig.world.view()).to.include({ running: 2, failed: 0 });
    });
  });

  describe("reconciles", () => {
    it("what is not named never arrived: it is given again, and not charged", async () => {
      rig = await PullRig.start({ budgets: { maxAttempts: 1, maxLost: 1 } });
      worker = await beating(rig, 1);
      await rig.world.submit(["a"]);
      for (const attempt of [1, 2, 3, 4])
        expect(attemptsOf(await rig.pull(worker, { credit: 1 }))).to.deep.equal([attempt]);
    });

    it("what is named stays", async () => {
      await rig.world.submit(["a", "b"]);
      const first = await rig.pull(worker, { credit: 1 });
      const held = rig.claims(itemsOf(first));
      expect(textsOf(await rig.pull(worker, { credit: 1, held, ackedAssignment: 1 }))).to.deep.equal(["b"]);
      expect(await pendingOf(rig)).to.deep.equal({ pending: 0, running: 2 });
    });

    it("what is named and is not the worker's is to be dropped, and that is said at once", async () => {
      const stranger = { id: new Uint8Array(32).fill(9), attempt: 3, epoch: 0, isFinished: false };
      const answer = await rig.pull(worker, { held: [stranger], credit: 1, waitMs: 30_000 });
      expect(answer.drop.map(({ id, attempt }) => [id[0], attempt])).to.deep.equal([[9, 3]]);
    });

    it("after a restart as before: what is named stays with its attempt, the rest is given again", async () => {
      await rig.world.submit(["a", "b"]);
      const first = await rig.pull(worker, { credit: 2 });
      const [kept] = rig.claims(itemsOf(first));
      await rig.restart();
      const held = kept === undefined ? [] : [kept];
      const answer = await rig.pull(worker, { held, ackedAssignment: 2, credit: 1 });
      expect(answer.drop).to.deep.equal([]);
      expect([textsOf(answer), attemptsOf(answer)]).to.deep.equal([["b"], [2]]);
      expect(answer.assignments?.firstNumber).to.equal(3);
    });
  });

  describe("waits", () => {
    it("until there is work", async () => {
      const waiting = rig.start(worker, { credit: 1, waitMs: 30_000 });
      await rig.run();
      await rig.clock.advance(29_999);
      await rig.run();
      expect(waiting.answer).to.equal(undefined);
      await rig.world.submit(["a"]);
      await rig.run();
      expect(waiting.answer && textsOf(waiting.answer)).to.deep.equal(["a"]);
      expect(rig.clock.armed).to.equal(0);
    });

    it("as long as it was told to, and is given nothing after that", async () => {
      const waiting = rig.start(worker, { credit: 1, waitMs: 500 });
      await rig.run();
      await rig.clock.advance(500);
      await rig.run();
      expect(waiting.answer).to.deep.equal({ assignments: undefined, recall: [], drop: [] });
      await rig.world.submit(["a"]);
      expect(await pendingOf(rig)).to.deep.equal({ pending: 1, running: 0 });
    });

    it("with what came while the wait ended", async () => {
      const waiting = rig.start(worker, { credit: 1, waitMs: 500 });
      await rig.run();
      await rig.clock.advance(500);
      await rig.world.submit(["a"]);
      await rig.run();
      expect(waiting.answer && textsOf(waiting.answer)).to.deep.equal(["a"]);
    });

    it("no longer when the client hangs up: what comes then is somebody else's", async () => {
      const waiting = rig.start(worker, { credit: 1, waitMs: 30_000 });
      await rig.run();
      waiting.cancel();
      await rig.run();
      expect(waiting.answer && textsOf(waiting.answer)).to.deep.equal([]);
      await rig.world.submit(["a"]);
      expect(await pendingOf(rig)).to.deep.equal({ pending: 1, running: 0 });
    });

    it("no longer when the same worker pulls anew: the newer one has the work", async () => {
      const older = rig.start(worker, { credit: 1, waitMs: 30_000 });
      await rig.run();
      const newer = rig.start(worker, { credit: 1, waitMs: 30_000 });
      await rig.run();
      expect(older.answer && textsOf(older.answer)).to.deep.equal([]);
      expect(newer.answer).to.equal(undefined);
      await rig.world.submit(["a"]);
      await rig.run();
      expect(newer.answer && textsOf(newer.answer)).to.deep.equal(["a"]);
      expect(await pendingOf(rig)).to.deep.equal({ pending: 0, running: 1 });
    });

    it("no longer when the worker opens a stream, or is lost", async () => {
      const first = rig.start(worker, { credit: 1, waitMs: 30_000 });
      await rig.run();
      await worker.hello([]);
      await rig.run();
      expect(first.answer && textsOf(first.answer)).to.deep.equal([]);
      await rig.world.step({ kind: "sessionEnded", workerId: worker.id, port: worker.port });
      const other = await beating(rig, 2);
      const second = rig.start(other, { credit: 1, waitMs: 30_000 });
      await rig.run();
      await rig.world.watch(6_000);
      await rig.run();
      expect(second.answer && textsOf(second.answer)).to.deep.equal([]);
    });
  });

  it("a backlog is stolen: asked for in an answer, handed back with the next pull, given to the thief", async () => {
    const victim = await beating(rig, 3, 1);
    await rig.world.submit(["a", "b", "c"]);
    const had = itemsOf(await rig.pull(victim, { credit: 3 }));
    expect(had).to.have.length(3);
    rig.world.nowMs += 1_000;
    const held = rig.claims(had);
    const polling = rig.start(victim, { held, ackedAssignment: 3, waitMs: 30_000 });
    await rig.run();
    const thief = rig.start(worker, { credit: 1, waitMs: 30_000 });
    await rig.run();
    const recalled = polling.answer?.recall ?? [];
    expect(recalled.map(({ id }) => Buffer.from(id).toString("hex"))).to.deep.equal([
      Buffer.from(had[2]?.id ?? []).toString("hex"),
    ]);
    await rig.pull(victim, { held: held.slice(0, 2), handedBack: recalled, ackedAssignment: 3 });
    expect(thief.answer && [textsOf(thief.answer), attemptsOf(thief.answer)]).to.deep.equal([["c"], [2]]);
    const stolen = rig.world.events.events.filter(({ topic }) => topic === "work_stolen");
    expect(stolen).to.have.length(1);
    expect(await pendingOf(rig)).to.deep.equal({ pending: 0, running: 3 });
  });
});
