import { expect } from "chai";
import { StallWatch } from "../../../../src/coordinator/lead/stall-watch.ts";
import type { Batch, CommitOutcome } from "../../../../src/storage/store.ts";
import { batchOf, putOf } from "../../../support/batch.ts";
import { DelegatingStore } from "../../../support/delegating-store.ts";
import { MemoryStore } from "../../../../src/storage/memory/memory-store.ts";
import { RecordingEmitter } from "../../../support/recording-emitter.ts";
import { VirtualClock } from "../../../support/virtual-clock.ts";

describe("a store that does not answer", () => {
  let clock: VirtualClock;
  let events: RecordingEmitter;
  let store: StallWatch;
  let answers: PromiseWithResolvers<CommitOutcome>[];
  let took: [string, number][];

  beforeEach(() => {
    clock = new VirtualClock();
    events = new RecordingEmitter();
    answers = [];
    took = [];
    const slow = new (class extends DelegatingStore {
      override commit(): Promise<CommitOutcome> {
        const answer = Promise.withResolvers<CommitOutcome>();
        answers.push(answer);
        return answer.promise;
      }
    })(new MemoryStore());
    const onAnswered = (...each: [string, number]): void => void took.push(each);
    store = new StallWatch(slow, { clock, events, onAnswered });
  });

  const commit = (durability: Batch["durability"] = "sync"): Promise<CommitOutcome> =>
    store.commit(batchOf({ puts: [putOf("a", "")], durability }));
  const said = (): string[] =>
    events.events.map(({ topic, payload }) => `${topic} ${JSON.stringify(payload)}`);

  async function answer(): Promise<void> {
    answers.shift()?.resolve({ kind: "committed" });
    await clock.advance(0);
  }

  it("to a synced commit for 2 s is said, again each time that it has taken twice as long, and when it is over", async () => {
    const answered = commit();
    await clock.advance(1_999);
    expect(said()).to.deep.equal([]);
    await clock.advance(1);
    expect(said()).to.deep.equal(['store_stalled {"for_ms":2000}']);
    await clock.advance(6_000);
    expect(said().slice(1)).to.deep.equal(['store_stalled {"for_ms":4000}', 'store_stalled {"for_ms":8000}']);
    await answer();
    expect(await answered).to.deep.equal({ kind: "committed" });
    expect(said().slice(3)).to.deep.equal(['store_answering {"for_ms":8000}']);
  });

  it("is measured: how long the oldest synced commit waits, and what each that was answered took", async () => {
    void commit("flush");
    await clock.advance(5);
    expect(store.unansweredMs).to.equal(0);
    void commit();
    await clock.advance(7);
    void commit();
    await clock.advance(3);
    expect([store.unansweredMs, took]).to.deep.equal([10, []]);
    await answer();
    await answer();
    expect(took).to.deep.equal([
      ["flush", 15],
      ["sync", 10],
    ]);
    expect(store.unansweredMs).to.equal(3);
    answers.shift()?.resolve({ kind: "unknown", cause: new Error("nobody knows") });
    await clock.advance(0);
    expect([store.unansweredMs, took.length]).to.deep.equal([0, 2]);
  });

  it("is said again the next time", async () => {
    for (const time of [1, 2]) {
      void commit();
      await clock.advance(2_500);
      await answer();
      expect(events.of("store_stalled")).to.have.length(time);
      expect(events.of("store_answering")).to.have.length(time);
      await clock.advance(10_000);
    }
  });

  it("does not end when a commit is given up, but when a later one is answered", async () => {
    void commit();
    void commit().catch(() => undefined);
    await clock.advance(2_500);
    answers.shift()?.resolve({ kind: "unknown", cause: new Error("a test") });
    answers.shift()?.reject(new Error("a test"));
    await clock.advance(10_000);
    expect(said()).to.deep.equal(['store_stalled {"for_ms":2000}']);
    void commit();
    await clock.advance(100);
    await answer();
    expect(said().slice(1)).to.deep.equal(['store_answering {"for_ms":100}']);
  });

  it("to a commit that need not be on stable storage is not reported", async () => {
    void commit("flush");
    await clock.advance(60_000);
    expect(said()).to.deep.equal([]);
  });

  it("is none while each commit is answered in time, however many there are", async () => {
    for (let time = 0; time < 20; time++) {
      void commit();
      void commit();
      await clock.advance(900);
      await answer();
      await answer();
    }
    expect(said()).to.deep.equal([]);
  });

  it("is reported from the oldest waiting commit on", async () => {
    void commit();
    await clock.advance(1_000);
    void commit();
    await answer();
    await clock.advance(1_999);
    expect(said()).to.deep.equal([]);
    await clock.advance(1);
    expect(said()).to.deep.equal(['store_stalled {"for_ms":2000}']);
  });
});
