import assert from "node:assert/strict";
import { expect } from "chai";
import type { Beat, BeatAnswer, Input } from "../../../src/coordinator/turn/input.ts";
import { replay } from "../../../src/coordinator/replay.ts";
import { planSubmission } from "../../../src/coordinator/rpc/submissions.ts";
import { sanityCheck } from "../../support/sanity-check.ts";
import type { CoordinatorState } from "../../../src/coordinator/turn/state.ts";
import type { Effect } from "../../../src/coordinator/turn/turn.ts";
import { TurnLoop } from "../../../src/coordinator/turn-loop.ts";
import type { Setback } from "../../../src/coordinator/turn-loop.ts";
import { failure } from "../../../src/base/errors.ts";
import { EPOCH_KEY } from "../../../src/storage/keys.ts";
import { bytesOf, putOf } from "../../support/batch.ts";
import { HeldStore } from "../../support/held-store.ts";
import { LEADERSHIP, linesOf, LIVENESS } from "../../support/world.ts";
import { beatOf, incarnationId, workerId } from "../../support/world-worker.ts";
import { VirtualClock } from "../../support/virtual-clock.ts";

const EPOCH_ROW = { key: EPOCH_KEY, value: bytesOf("7") };
const INBOX_MAX = 2_000;

/** Before the loop's next turn, what waits in the sockets is read. */
class SocketClock extends VirtualClock {
  readonly sockets: (() => void)[] = [];

  override nextTurn(callback: () => void): void {
    super.nextTurn(() => {
      this.sockets.shift()?.();
      callback();
    });
  }
}

describe("the loop of turns", () => {
  let clock: SocketClock;
  let store: HeldStore;
  let state: CoordinatorState;
  let loop: TurnLoop;
  /** The effects that left, in order: answered sequences as `1`, topics of events, and transitions. */
  let left: string[];
  let broken: Setback["kind"][];
  let mayAct: boolean;
  let leads: boolean;

  beforeEach(async () => {
    clock = new SocketClock();
    store = new HeldStore([putOf(EPOCH_KEY, "7")]);
    state = await replay(store, {
      liveness: LIVENESS,
      workersMax: 10_000,
      nowMs: clock.monotonicMs(),
      ...LEADERSHIP,
    });
    left = [];
    broken = [];
    mayAct = true;
    leads = false;
    loop = new TurnLoop({
      state,
      store,
      clock,
      epochRow: EPOCH_ROW,
      inboxMax: INBOX_MAX,
      perform,
      mayAct: () => mayAct,
      leads: () => Promise.resolve(leads),
      onBroken: ({ kind }) => void broken.push(kind),
    });
  });

  afterEach(() => sanityCheck(state));

  function perform(effect: Effect): void {
    if (effect.kind === "answer") effect.deliver();
    if (effect.kind === "event") left.push(effect.emit.topic);
    if (effect.kind === "transition") left.push(effect.kind);
  }

  function push(sequence: number, number = 1): boolean {
    const beat = beatOf({ workerId: workerId(number), sequence });
    const answer = (given: BeatAnswer): void => void left.push(String(given.sequence));
    return loop.push({ kind: "beat", beat, answer });
  }

  async function release(): Promise<void> {
    await store.release();
    await clock.advance();
  }

  const answered = (): string[] => left.filter((effect) => /^\d+$/.test(effect));

  describe("lets an effect leave", () => {
    it("only when its batch is committed", async () => {
      push(1);
      await clock.advance();
      expect(store.held).to.equal(1);
      expect(left).to.deep.equal([]);
      await release();
      expect(left).to.deep.equal(["worker_registered", "transition", "worker_heartbeat", "1"]);
    });

    it("in the order of turns, also of a turn that writes nothing", async () => {
      push(1);
      await clock.advance();
      push(1);
      await clock.advance();
      expect([store.held, left]).to.deep.equal([1, []]);
      await release();
      expect(answered()).to.deep.equal(["1", "1"]);
    });

    it("in the order of inputs within a turn", async () => {
      for (let sequence = 1; sequence <= 5; sequence++) push(sequence);
      await clock.advance();
      await release();
      expect(answered()).to.deep.equal(["1", "2", "3", "4", "5"]);
    });
  });

  describe("while the disk stalls, answers a beat", () => {
    /** Four commits are on their way, so nothing more is decided; then one beat of a worker that is known. */
    async function stall(parts: Partial<Beat> = {}, asItComes = (): void => undefined): Promise<string[]> {
      for (let number = 1; number <= 5; number++) {
        push(1, number);
        await clock.advance();
      }
      const said: string[] = [];
      const beat = beatOf({ workerId: workerId(1), sequence: 2, ...parts });
      loop.push({ kind: "beat", beat, answer: ({ verdict }) => void said.push(verdict) });
      asItComes();
      await clock.advance();
      return said;
    }

    beforeEach(() => (leads = true));

    it("of a process that it knows, and once; what it has decided of it waits all the same", async () => {
      const said = await stall();
      expect([said, store.held, left]).to.deep.equal([["accepted"], 4, []]);
      while (store.held > 0) await release();
      expect(said).to.deep.equal(["accepted"]);
      expect(state.workers.get(workerId(1))?.sequence).to.equal(2);
      expect(left.filter((effect) => effect === "worker_heartbeat")).to.have.length(6);
    });

    it("not when the store names another leader, or cannot be read", async () => {
      leads = false;
      const said = await stall();
      expect(said).to.deep.equal([]);
      while (store.held > 0) await release();
      expect(said).to.deep.equal(["accepted"]);
    });

    it("not when its time to lead is over, or the loop ends, while the store is asked who leads", async () => {
      expect(await stall({}, () => (mayAct = false))).to.deep.equal([]);
      mayAct = true;
      expect(await stall({}, () => void loop.halt())).to.deep.equal([]);
    });

    it("not before anybody knows the process: that is on disk first", async () => {
      expect(await stall({ workerId: workerId(9), sequence: 1 })).to.deep.equal([]);
      expect(await stall({ incarnation: incarnationId(2), sequence: 1 })).to.deep.equal([]);
    });

    it("not when that is a goodbye", async () => {
      expect(await stall({ state: "Gone" })).to.deep.equal([]);
    });

    it("not when there is something that the worker has to be told, and that is on no disk yet", async () => {
      push(1);
      await clock.advance();
      loop.push({ kind: "drainWorker", workerId: workerId(1), answer: () => undefined });
      await clock.advance();
      push(1, 1);
      push(2, 1);
      await clock.advance();
      expect(answered()).to.deep.equal([]);
    });
  });

  describe("commits", () => {
    it("every batch expecting the leader's epoch", async () => {
      push(1);
      await clock.advance();
      push(2);
      await clock.advance();
      expect(store.batches.map(({ expect: expected }) => expected)).to.deep.equal([[EPOCH_ROW], [EPOCH_ROW]]);
    });

    it("registrations to stable storage, beats without waiting for it", async () => {
      push(1);
      await clock.advance();
      push(2);
      await clock.advance();
      expect(store.batches.map(({ durability }) => durability)).to.deep.equal(["sync", "flush"]);
    });

    it("the next turn while the last one is on its way, four at a time and no more", async () => {
      for (let sequence = 1; sequence <= 6; sequence++) {
        push(sequence);
        await clock.advance();
      }
      expect(store.held).to.equal(4);
      await release();
      expect([store.held, answered()]).to.deep.equal([4, ["1"]]);
      expect(store.batches).to.have.length(5);
    });

    it("in one turn what arrived while all four were on their way", async () => {
      for (let sequence = 1; sequence <= 4; sequence++) {
        push(sequence);
        await clock.advance();
      }
      for (let sequence = 5; sequence <= 100; sequence++) push(sequence);
      for (let turn = 1; turn <= 5; turn++) await release();
      expect(store.batches).to.have.length(5);
      expect(answered()).to.have.length(100);
    });

    it("no more than a thousand inputs or so in a turn", async () => {
      for (let sequence = 1; sequence <= 1_500; sequence++) push(sequence);
      await clock.advance();
      await release();
      expect(answered().length).to.be.within(1_000, 1_100);
      await release();
      expect(answered()).to.have.length(1_500);
    });
  });

  describe("answers an operator by what was decided before, and writes nothing for it,", () => {
    /** They are asked of a run that is sealed and paused. */
    const QUESTIONS: Record<string, (say: (said: unknown) => void) => Promise<Input>> = {
      "that a sealed run takes no items": async (say) => {
        const planned = await planSubmission(store.inner, linesOf(["a"]));
        assert(planned.kind === "planned");
        return {
          kind: "submit",
          batch: planned.batch,
          answer: ({ kind }) => say(kind),
        };
      },
      "that it is sealed": async (answer) => ({ kind: "seal", answer }),
      "that it is paused": async (answer) => ({ kind: "pause", reason: "", answer }),
      "that nothing was to be retried": async (say) => ({
        kind: "retry",
        failed: [],
        answer: ({ kind }) => say(kind),
      }),
    };

    beforeEach(async () => {
      for (const input of [{ kind: "seal" }, { kind: "pause", reason: "" }] as const) {
        loop.push({ ...input, answer: () => undefined });
        await clock.advance();
        await release();
      }
    });

    for (const [what, questionOf] of Object.entries(QUESTIONS)) {
      const asked = async (): Promise<unknown[]> => {
        const said: unknown[] = [];
        loop.push(await questionOf((given) => void said.push(given)));
        await clock.advance();
        const { puts = [], deletes = [], expect: expected, durability } = store.batches.at(-1) ?? {};
        expect([puts, deletes, expected, durability]).to.deep.equal([[], [], [EPOCH_ROW], "sync"]);
        expect(said).to.deep.equal([]);
        return said;
      };

      it(`${what}, when the store has confirmed that it is so`, async () => {
        const said = await asked();
        await release();
        expect(said).to.have.length(1);
      });

      it(`nothing where the store went back to before that, and not ${what}`, async () => {
        const said = await asked();
        const cause = failure("store_write_failed", { path: "memory", reason: "it was set back" });
        store.answer({ kind: "unknown", cause });
        await clock.advance();
        expect([said, broken]).to.deep.equal([[], ["unknown"]]);
      });
    }
  });

  for (const outcome of [
    { kind: "conflict", key: EPOCH_KEY },
    { kind: "unknown", cause: failure("store_write_failed", { path: "memory", reason: "a test" }) },
  ] as const)
    describe(`on a batch that ends as ${outcome.kind}`, () => {
      beforeEach(async () => {
        push(1);
        await clock.advance();
        push(2);
        await clock.advance();
        await release();
        left = [];
        push(3);
        await clock.advance();
        store.answer(outcome);
        await clock.advance();
      });

      it("says so once, and nothing leaves any more: not even of batches that are committed after it", async () => {
        await release();
        expect(broken).to.deep.equal([outcome.kind]);
        expect(left).to.deep.equal([]);
      });

      it("takes nothing more and does nothing more", async () => {
        expect(push(4)).to.equal(false);
        const { length } = store.batches;
        await clock.advance(10_000);
        expect(store.batches).to.have.length(length);
        expect(clock.armed).to.equal(0);
      });

      it("can be stopped at once", async () => {
        await loop.stop();
        expect(left).to.deep.equal([]);
      });
    });

  describe("when its leader may not act any more", () => {
    it("hands nothing to the store, lets nothing leave, says so once, and counts what was tried", async () => {
      mayAct = false;
      push(1);
      await clock.advance();
      push(2);
      await clock.advance();
      expect([store.batches, left, broken]).to.deep.equal([[], [], ["expired"]]);
      expect(loop.refused).to.deep.equal({ writes: 2, replies: 7 });
    });

    it("holds back the effects of a batch that the store has taken", async () => {
      push(1);
      await clock.advance();
      mayAct = false;
      await release();
      expect([left, broken]).to.deep.equal([[], ["expired"]]);
      expect(loop.refused).to.deep.equal({ writes: 0, replies: 5 });
    });

    it("refuses what waited for a batch under way", async () => {
      for (let sequence = 1; sequence <= 6; sequence++) {
        push(sequence);
        await clock.advance();
      }
      const { held } = store;
      mayAct = false;
      while (store.held > 0) await release();
      expect(loop.refused.writes).to.equal(1);
      expect([store.batches.length, left]).to.deep.equal([held, []]);
    });

    it("counts a batch that the store refused as a write", async () => {
      push(1);
      await clock.advance();
      store.answer({ kind: "conflict", key: EPOCH_KEY });
      await clock.advance();
      expect(loop.refused).to.deep.equal({ writes: 1, replies: 5 });
    });

    it("does not count what it would have asked its own store", async () => {
      push(1);
      await clock.advance();
      await release();
      mayAct = false;
      const success = { kind: "success", output: new Uint8Array(), digest: new Uint8Array(32) } as const;
      const what = { id: new Uint8Array(32), attempt: 1, epoch: 0, incarnation: incarnationId(1) };
      const reports = [{ ...what, outcome: success }];
      const port = { send: () => undefined, end: () => undefined };
      loop.push({ kind: "report", workerId: workerId(1), port, reports });
      await clock.advance();
      expect(broken).to.deep.equal(["expired"]);
      expect(loop.refused).to.deep.equal({ writes: 0, replies: 0 });
    });

    it("notices by its scan alone", async () => {
      mayAct = false;
      await clock.advance(1_000);
      expect(broken).to.deep.equal(["expired"]);
      expect(clock.armed).to.equal(0);
    });

    it("can be stopped", async () => {
      push(1);
      mayAct = false;
      await loop.stop();
      expect([store.batches, left]).to.deep.equal([[], []]);
    });
  });

  it("refuses what the inbox has no room for, and goes on", async () => {
    const taken = Array.from({ length: INBOX_MAX + 3 }, (_, at) => push(at + 1));
    expect(taken.lastIndexOf(true)).to.equal(INBOX_MAX - 1);
    await clock.advance();
    expect(push(INBOX_MAX + 1)).to.equal(true);
  });

  describe("when it is stopped", () => {
    it("handles and answers what had arrived before, and then ends", async () => {
      push(1);
      await clock.advance();
      push(2);
      let stopped = false;
      const stopping = loop.stop().then(() => (stopped = true));
      await clock.advance();
      expect([stopped, left]).to.deep.equal([false, []]);
      await release();
      expect([stopped, answered()]).to.deep.equal([false, ["1"]]);
      await release();
      await stopping;
      expect(answered()).to.deep.equal(["1", "2"]);
    });

    it("takes nothing more from that moment on", async () => {
      push(1);
      const stopping = loop.stop();
      expect(push(2)).to.equal(false);
      await release();
      await stopping;
      expect(push(3)).to.equal(false);
      expect(answered()).to.deep.equal(["1"]);
    });

    it("works off an inbox of many turns", async () => {
      for (let sequence = 1; sequence <= INBOX_MAX; sequence++) push(sequence);
      const stopping = loop.stop();
      await release();
      await release();
      await stopping;
      expect(answered()).to.have.length(INBOX_MAX);
    });

    it("leaves no timer behind", async () => {
      expect(clock.armed).to.equal(1);
      await loop.stop();
      expect(clock.armed).to.equal(0);
    });

    it("says that it broke when its last batch does not commit", async () => {
      push(1);
      const stopping = loop.stop();
      store.answer({ kind: "conflict", key: EPOCH_KEY });
      await stopping;
      expect([broken, left]).to.deep.equal([["conflict"], []]);
    });
  });

  describe("scans twice in an interval", () => {
    beforeEach(async () => {
      push(1);
      await clock.advance();
      await release();
      left = [];
    });

    it("neither sooner nor later", async () => {
      const scans = new Set<number>();
      for (let ms = 0; ms < 4 * LIVENESS.heartbeatIntervalMs; ms++) {
        await clock.advance(1);
        while (store.held > 0) await release();
        scans.add(state.lastScanMs);
      }
      const [first = 0, ...others] = scans;
      expect(others.slice(0, 7)).to.deep.equal(
        Array.from({ length: 7 }, (_, at) => first + ((at + 1) * LIVENESS.heartbeatIntervalMs) / 2),
      );
    });

    it("and finds a silent worker", async () => {
      await clock.advance(999);
      expect(store.held).to.equal(0);
      await clock.advance(1);
      await release();
      expect(left).to.deep.equal(["transition", "worker_suspected"]);
    });

    it("but judges nobody once nobody can be heard", async () => {
      await clock.advance(999);
      loop.stopJudging();
      await clock.advance(60_000);
      expect([store.held, left]).to.deep.equal([0, []]);
    });

    it("and holds its judgement while it is told to, which is nobody's lateness", async () => {
      await clock.advance(999);
      loop.holdJudgement(true);
      await clock.advance(60_000);
      expect([store.held, left]).to.deep.equal([0, []]);
      loop.holdJudgement(false);
      await clock.advance(250);
      while (store.held > 0) await release();
      expect(left).to.include("worker_suspected").and.not.include("worker_failed");
      await clock.advance(LIVENESS.coordinatorFailureTimeoutMs);
      while (store.held > 0) await release();
      expect(left).to.include("worker_failed");
    });

    it("and reads what waits in the sockets before it judges", async () => {
      await clock.advance(999);
      clock.sockets.push(() => void push(2));
      await clock.advance(1);
      await release();
      expect(left).to.deep.equal(["worker_heartbeat", "2"]);
    });

    it("and goes on reading for as long as each turn brings something", async () => {
      await clock.advance(999);
      for (let other = 2; other <= 10; other++) clock.sockets.push(() => void push(1, other));
      clock.sockets.push(() => void push(2));
      await clock.advance(1);
      while (store.held > 0) await release();
      expect(left).to.include("2");
      expect(left).to.not.include("worker_suspected");
    });

    it("but not for ever", async () => {
      await clock.advance(999);
      for (let other = 2; other <= 200; other++) clock.sockets.push(() => void push(1, other));
      await clock.advance(1);
      while (store.held > 0) await release();
      expect(left).to.include("worker_suspected");
    });

    it("and not again once it was stopped while it read", async () => {
      await clock.advance(999);
      clock.sockets.push(() => void loop.stop());
      await clock.advance(1);
      expect(store.held).to.equal(0);
    });
  });
});
