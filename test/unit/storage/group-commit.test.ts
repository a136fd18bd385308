import { expect } from "chai";
import { GroupCommit } from "../../../src/storage/group-commit.ts";
import type { GroupWriter } from "../../../src/storage/group-commit.ts";
import type { Batch, CommitOutcome } from "../../../src/storage/store.ts";
import { batchOf, putOf } from "../../support/batch.ts";
import { VirtualClock } from "../../support/virtual-clock.ts";

const COMMITTED: CommitOutcome = { kind: "committed" };
const cause = new Error("nobody knows");
const keyOf = ({ puts }: Batch): string => String(puts[0]?.key);
const put = (key: string): Batch => batchOf({ puts: [putOf(key, key)] });

/** A database that answers as it is told, and shares a group by the first letter. */
class ToldWriter implements GroupWriter {
  readonly groups: string[] = [];
  readonly unknown: string[] = [];
  answer: (group: readonly Batch[]) => Promise<readonly CommitOutcome[]> = async (group) =>
    group.map(() => COMMITTED);

  async write(group: readonly Batch[]): Promise<readonly CommitOutcome[]> {
    this.groups.push(group.map(keyOf).join(" "));
    return this.answer(group);
  }

  mayShare(first: Batch, next: Batch): boolean {
    return keyOf(first)[0] === keyOf(next)[0];
  }

  onUnknown(batches: readonly Batch[]): void {
    this.unknown.push(...batches.map(keyOf));
  }
}

describe("the queue of commits", () => {
  it("groups what the writer lets share, and never past a batch that it does not", async () => {
    const writer = new ToldWriter();
    const queue = new GroupCommit(writer);
    await Promise.all(["a1", "a2", "b1", "a3", "a4"].map((key) => queue.commit(put(key))));
    expect(writer.groups).to.deep.equal(["a1 a2", "b1", "a3 a4"]);
  });

  it("writes nothing that was asked for before an unknown answer, tells the writer, and goes on after it", async () => {
    const writer = new ToldWriter();
    writer.answer = async (group) => group.map(() => ({ kind: "unknown", cause }));
    const queue = new GroupCommit(writer);
    const outcomes = await Promise.all(["a1", "b1", "a2"].map((key) => queue.commit(put(key))));
    expect(outcomes).to.deep.equal(Array(3).fill({ kind: "unknown", cause }));
    expect(writer.groups).to.deep.equal(["a1"]);
    expect(writer.unknown).to.deep.equal(["a1", "b1", "a2"]);
    writer.answer = async () => [COMMITTED];
    expect(await queue.commit(put("c1"))).to.deep.equal(COMMITTED);
  });

  it("says how long each group took that has a sync in it, and of no other", async () => {
    const writer = new ToldWriter();
    const clock = new VirtualClock();
    const took: number[] = [];
    const queue = new GroupCommit(writer, { clock, onSynced: (ms) => took.push(ms) });
    writer.answer = async (group) => {
      await clock.advance(7);
      return group.map(() => COMMITTED);
    };
    await queue.commit({ ...put("a1"), durability: "flush" });
    await Promise.all(["b1", "b2"].map((key) => queue.commit({ ...put(key), durability: "sync" })));
    expect([writer.groups, took]).to.deep.equal([["a1", "b1 b2"], [7]]);
  });

  it("ends for good when the writer rejects", async () => {
    const writer = new ToldWriter();
    writer.answer = () => Promise.reject(cause);
    const queue = new GroupCommit(writer);
    await queue.commit(put("a1"));
    expect(queue.broken).to.equal(cause);
    expect(await queue.commit(put("a2"))).to.deep.equal({ kind: "unknown", cause });
    expect(writer.groups).to.deep.equal(["a1"]);
  });
});
