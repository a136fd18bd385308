import { expect } from "chai";
import { failure } from "../../../../src/base/errors.ts";
import { GroupCommit } from "../../../../src/storage/group-commit.ts";
import { LevelWriter } from "../../../../src/storage/level/level-writer.ts";
import type { Engine, Operation } from "../../../../src/storage/level/level-writer.ts";
import type { Durability } from "../../../../src/storage/store.ts";
import { batchOf, bytesOf, putOf } from "../../../support/batch.ts";

interface Write {
  readonly keys: readonly string[];
  readonly sync: boolean;
}

/** A database whose writes wait until they are let go, and that keeps what it was asked. */
class ManualEngine implements Engine {
  readonly values = new Map<string, Uint8Array>();
  readonly writes: Write[] = [];
  readonly reads: string[] = [];
  readonly #waiting: { settle: (error?: Error) => void }[] = [];
  #arrived: () => void = () => undefined;
  holding = false;

  async read(keys: readonly string[]): Promise<(Uint8Array | undefined)[]> {
    this.reads.push(...keys);
    return keys.map((key) => this.values.get(key));
  }

  async write(operations: Operation[], sync: boolean): Promise<void> {
    this.writes.push({ keys: operations.map(({ key }) => key), sync });
    if (this.holding) {
      await new Promise<void>((resolve, reject) => {
        this.#waiting.push({ settle: (error) => (error === undefined ? resolve() : reject(error)) });
        this.#arrived();
      });
    }
    for (const operation of operations) {
      if (operation.type === "put") this.values.set(operation.key, operation.value);
      else this.values.delete(operation.key);
    }
  }

  /** Resolves when a write waits. */
  async arrival(): Promise<void> {
    if (this.#waiting.length === 0) await new Promise<void>((resolve) => (this.#arrived = resolve));
  }

  release(error?: Error): void {
    this.#waiting.shift()?.settle(error);
  }
}

const put = (key: string, durability: Durability = "flush") =>
  batchOf({ puts: [putOf(key, key)], durability });
const broken = failure("store_write_failed", { path: "db", reason: "no space left on device (ENOSPC)" });

describe("group commit", () => {
  let engine: ManualEngine;
  let writer: GroupCommit;
  beforeEach(() => {
    engine = new ManualEngine();
    writer = new GroupCommit(new LevelWriter(engine));
  });

  it("batches that are asked for in one turn share one write, in the order of the calls", async () => {
    await Promise.all(["a", "b", "c"].map((key) => writer.commit(put(key))));
    expect(engine.writes).to.deep.equal([{ keys: ["a", "b", "c"], sync: false }]);
  });

  it("batches that come while one is on its way share the next write", async () => {
    engine.holding = true;
    const commits = [writer.commit(put("a"))];
    await engine.arrival();
    commits.push(writer.commit(put("b")), writer.commit(put("c")));
    engine.holding = false;
    engine.release();
    await Promise.all(commits);
    expect(engine.writes.map(({ keys }) => keys)).to.deep.equal([["a"], ["b", "c"]]);
  });

  it("flushed batches pay no sync but that of a synced batch before them", async () => {
    const durabilities: readonly Durability[] = ["flush", "flush", "sync", "flush", "sync", "flush"];
    await Promise.all(durabilities.map((durability, at) => writer.commit(put(String(at), durability))));
    expect(engine.writes).to.deep.equal([
      { keys: ["0", "1"], sync: false },
      { keys: ["2", "3", "4", "5"], sync: true },
    ]);
  });

  it("a synced batch in conflict makes nobody pay a sync", async () => {
    const conflicting = { ...put("a", "sync"), expect: [{ key: "x", value: bytesOf("1") }] };
    const outcomes = await Promise.all([writer.commit(conflicting), writer.commit(put("b"))]);
    expect(outcomes.map(({ kind }) => kind)).to.deep.equal(["conflict", "committed"]);
    expect(engine.writes).to.deep.equal([{ keys: ["b"], sync: false }]);
  });

  it("a group of conflicts writes nothing", async () => {
    expect(await writer.commit({ ...put("a"), expect: [{ key: "x", value: bytesOf("1") }] })).to.deep.equal({
      kind: "conflict",
      key: "x",
    });
    expect(engine.writes).to.deep.equal([]);
  });

  it("groups are bounded in operations and in bytes, and a larger batch goes alone", async () => {
    const many = batchOf({ puts: Array.from({ length: 1_500 }, (_, at) => putOf(`k/${at}`, "")) });
    await Promise.all([many, many, put("a")].map((batch) => writer.commit(batch)));
    expect(engine.writes.map(({ keys }) => keys.length)).to.deep.equal([1_500, 1_501]);
    engine.writes.length = 0;
    const large = batchOf({ puts: [{ key: "l", value: new Uint8Array(5 * 1024 * 1024) }] });
    await Promise.all([put("a"), large, put("b")].map((batch) => writer.commit(batch)));
    expect(engine.writes.map(({ keys }) => keys)).to.deep.equal([["a"], ["l"], ["b"]]);
  });

  it("an expected key is read from disk once, however often it is expected", async () => {
    const epoch = { key: "epoch", value: null };
    for (let round = 0; round < 5; round++) await writer.commit({ ...put(`k/${round}`), expect: [epoch] });
    expect(engine.reads).to.deep.equal(["epoch"]);
    await writer.commit({ ...put("epoch"), expect: [epoch] });
    expect((await writer.commit({ ...put("late"), expect: [epoch] })).kind).to.equal("conflict");
    expect(engine.reads).to.deep.equal(["epoch"]);
  });

  it("what is remembered of expected keys is bounded, and what was forgotten is read again", async () => {
    const expectAll = Array.from({ length: 5_000 }, (_, at) => ({ key: `k/${at}`, value: null }));
    await writer.commit(batchOf({ expect: expectAll }));
    await writer.commit(batchOf({ expect: expectAll.slice(-1) }));
    expect(engine.reads.length).to.equal(5_000);
    await writer.commit(batchOf({ expect: expectAll.slice(0, 1) }));
    expect(engine.reads.length).to.equal(5_001);
    const mebibyte = new Uint8Array(1024 * 1024);
    for (let at = 0; at < 10; at++) {
      await writer.commit(
        batchOf({ puts: [{ key: `l/${at}`, value: mebibyte }], expect: [{ key: `l/${at}`, value: null }] }),
      );
    }
    engine.reads.length = 0;
    expect((await writer.commit(batchOf({ expect: [{ key: "l/0", value: mebibyte }] }))).kind).to.equal(
      "committed",
    );
    expect(engine.reads).to.deep.equal(["l/0"]);
  });

  it("a failed write is unknown for its group, for all that waits and for all that comes", async () => {
    engine.holding = true;
    const commits = [writer.commit(put("a"))];
    await engine.arrival();
    commits.push(writer.commit(put("b")), writer.commit(put("c", "sync")));
    engine.release(broken);
    const outcomes = [...(await Promise.all(commits)), await writer.commit(put("d"))];
    expect(outcomes).to.deep.equal(Array(4).fill({ kind: "unknown", cause: broken }));
    expect(writer.broken).to.equal(broken);
    expect(engine.writes.length).to.equal(1);
  });

  it("a failed read of an expected key is unknown too, and nothing is written", async () => {
    const damaged = failure("store_corrupt", { path: "db", key: "epoch", reason: "block checksum mismatch" });
    engine.read = () => Promise.reject(damaged);
    const outcome = await writer.commit({ ...put("a"), expect: [{ key: "epoch", value: null }] });
    expect(outcome).to.deep.equal({ kind: "unknown", cause: damaged });
    expect(engine.writes).to.deep.equal([]);
  });

  it("is drained when everything has its answer", async () => {
    await writer.drained();
    engine.holding = true;
    let answered = false;
    void writer.commit(put("a")).then(() => (answered = true));
    await engine.arrival();
    engine.release();
    await writer.drained();
    expect(answered).to.equal(true);
  });

  it("more batches on their way than memory may hold are the caller's bug", () => {
    engine.holding = true;
    const batch = batchOf({});
    expect(() => {
      for (let at = 0; at <= 65_536; at++) void writer.commit(batch);
    }).to.throw(/C8/);
  });
});
