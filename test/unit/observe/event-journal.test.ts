import { expect } from "chai";
import type { RunId } from "../../../src/base/ids.ts";
import { EventJournal } from "../../../src/observe/event-journal.ts";
import { RecordingEmitter } from "../../support/recording-emitter.ts";
import { VirtualClock } from "../../support/virtual-clock.ts";

describe("the journal of events", () => {
  let inner: RecordingEmitter;
  let journal: EventJournal;

  beforeEach(() => {
    inner = new RecordingEmitter();
    const clock = new VirtualClock();
    journal = new EventJournal({ events: inner, runId: "01JRVN0000000000000000000A" as RunId, clock });
  });

  const stopped = (epoch: number): void => journal.emit("coordinator_stopped", { epoch });
  const epochs = (lines: readonly string[]): unknown[] =>
    lines.map((line) => (JSON.parse(line) as { epoch: unknown }).epoch);

  it("passes every event on, and remembers it as a line without its ending", () => {
    stopped(3);
    journal.emitNow("coordinator_stopped", { epoch: 4 });
    expect(inner.of("coordinator_stopped")).to.deep.equal([{ epoch: 3 }, { epoch: 4 }]);
    const { entries: lines, dropped } = journal.remembered();
    expect([epochs(lines), dropped]).to.deep.equal([[3, 4], 0]);
    expect(lines.join("")).to.not.include("\n");
    expect(JSON.parse(lines[0] ?? "")).to.include({ kind: "domain", topic: "coordinator_stopped" });
  });

  it("leaves heartbeats out, and passes them on", () => {
    const beat = { worker_id: "w", incarnation: "i", sequence: 1, state: "Ready", load: 0 };
    journal.emit("worker_heartbeat", beat);
    expect(journal.remembered().entries).to.deep.equal([]);
    expect(inner.of("worker_heartbeat")).to.have.length(1);
  });

  it("remembers the last thousand, and how many there were before", () => {
    for (let epoch = 0; epoch < 5_300; epoch++) stopped(epoch);
    const { entries: lines, dropped } = journal.remembered();
    expect([lines.length, dropped]).to.deep.equal([1_000, 4_300]);
    expect([epochs(lines)[0], epochs(lines).at(-1)]).to.deep.equal([4_300, 5_299]);
  });

  it("tells those who follow what happens from then on, in order", async () => {
    stopped(1);
    const reader = journal.follow();
    stopped(2);
    stopped(3);
    expect(epochs((await reader?.next())?.entries ?? [])).to.deep.equal([2, 3]);
    const waiting = reader?.next();
    stopped(4);
    expect(epochs((await waiting)?.entries ?? [])).to.deep.equal([4]);
  });

  it("loses lines of a reader who is too slow, counts them, and does not wait", async () => {
    const reader = journal.follow();
    for (let epoch = 0; epoch < 1_200; epoch++) stopped(epoch);
    const page = await reader?.next();
    expect([page?.entries.length, page?.dropped]).to.deep.equal([1_000, 200]);
    stopped(7);
    expect(await reader?.next()).to.deep.include({ dropped: 0 });
  });

  it("ends who has left, waiting or not, and has room for another", async () => {
    const readers = Array.from({ length: journal.readersMax }, () => journal.follow());
    expect(journal.follow()).to.equal(undefined);
    const waiting = readers[0]?.next();
    readers[0]?.end();
    expect(await waiting).to.equal(undefined);
    expect(await readers[0]?.next()).to.equal(undefined);
    expect(journal.follow()).to.not.equal(undefined);
  });
});
