// Versions of one plugin side by side in the executor: an attempt runs on exactly the version that it names, or is handed back.
import { expect } from "chai";
import { Plugins } from "../../../../src/worker/backends/plugins.ts";
import type { Assigned } from "../../../../src/worker/work/backlog.ts";
import type { Finished } from "../../../../src/worker/work/execution.ts";
import { assignedItem } from "../../../support/assigned-item.ts";
import { HeldBackend } from "../../../support/held-backend.ts";
import { RecordingLogger } from "../../../support/recording-logger.ts";
import { VirtualClock } from "../../../support/virtual-clock.ts";
import { executorOf, give } from "./held-executor.ts";

/** Refuses to be beside another of its kind, as a model does on a GPU that holds one. */
class SoleBackend extends HeldBackend {
  static open = 0;
  readonly #closing: Promise<void>;

  constructor(closing: Promise<void>) {
    super();
    if (++SoleBackend.open > 1) throw new Error("there is no room for a second one");
    this.#closing = closing;
  }

  override async close(): Promise<void> {
    await this.#closing;
    SoleBackend.open--;
  }
}

describe("the executor, with versions side by side", () => {
  let clock: VirtualClock;
  let log: RecordingLogger;
  let finished: Finished[];
  let handedBack: Assigned[];
  /** In order of their opening. */
  let backends: { readonly version: string; readonly backend: HeldBackend }[];
  let closing: PromiseWithResolvers<void>;

  beforeEach(() => {
    clock = new VirtualClock();
    log = new RecordingLogger();
    [finished, handedBack, backends] = [[], [], []];
    closing = Promise.withResolvers();
    SoleBackend.open = 0;
  });

  function make(loadedVersions: number, slots = 2): ReturnType<typeof executorOf> {
    const plugins = new Plugins(
      ["1", "2"].map((version) => ({
        ...{ name: "mock", version },
        open: () => {
          const backend = loadedVersions === 1 ? new SoleBackend(closing.promise) : new HeldBackend();
          backends.push({ version, backend });
          return backend;
        },
      })),
      (error) => {
        throw error;
      },
      { loadedVersions },
    );
    return executorOf(new HeldBackend(), clock, {
      ...{ plugins, slots, log, prefetch: 6 },
      onFinished: (one) => void finished.push(one),
      onHandedBack: (unstarted) => void handedBack.push(...unstarted),
    });
  }

  const of = (number: number, version: string): Assigned => assignedItem(number, { version });
  /** For each opening of a version, the items that it has begun. */
  const started = (): [string, number[]][] =>
    backends.map(({ version, backend }) => [version, backend.started]);
  const last = (): HeldBackend => backends.at(-1)?.backend ?? expect.fail();

  it("runs each attempt on its version, and the worker's own where it names none", async () => {
    const executor = make(2);
    give(executor, of(1, ""), of(2, "2"), of(3, "1"), of(4, "2"));
    for (const item of [1, 2]) backends[item - 1]?.backend.succeed(item);
    await clock.advance();
    expect(started()).to.deep.equal([
      ["1", [1, 3]],
      ["2", [2, 4]],
    ]);
    expect(finished.map(({ pluginVersion }) => pluginVersion)).to.deep.equal(["1", "2"]);
  });

  it("hands back what names a version that is not here, and says so once", () => {
    const executor = make(2);
    give(executor, of(1, "3"), of(2, "3"), of(3, "2"));
    expect(handedBack.map(({ itemId }) => itemId[0])).to.deep.equal([1, 2]);
    expect(log.lines.map(({ message }) => message)).to.deep.equal([
      "items of version 3 of plugin mock, which this worker does not have, are handed back",
    ]);
    expect(finished).to.deep.equal([]);
    expect(started()[1]).to.deep.equal(["2", [3]]);
  });

  it("ends what runs, closes one and opens the other where it holds one, and begins nothing before", async () => {
    const executor = make(1);
    give(executor, of(1, ""), of(2, ""), of(3, "2"), of(4, ""));
    const [first] = backends;
    first?.backend.succeed(1);
    await clock.advance(60_000);
    expect(started(), "the free slot waits: nothing goes before the next in line").to.deep.equal([
      ["1", [1, 2]],
    ]);
    first?.backend.succeed(2);
    await clock.advance(60_000);
    expect([started(), SoleBackend.open], "it is not closed yet").to.deep.equal([[["1", [1, 2]]], 1]);
    closing.resolve();
    await clock.advance();
    expect(started()).to.deep.equal([
      ["1", [1, 2]],
      ["2", [3]],
    ]);
    last().succeed(3);
    await clock.advance();
    expect(started()[2]).to.deep.equal(["1", [4]]);
    last().succeed(4);
    await clock.advance();
    expect(finished.map(({ outcome, pluginVersion }) => [outcome.kind, pluginVersion])).to.deep.equal([
      ["success", "1"],
      ["success", "1"],
      ["success", "2"],
      ["success", "1"],
    ]);
    expect(handedBack).to.deep.equal([]);
  });

  it("charges the time of a change to no item: neither what waits nor what begins takes longer by it", async () => {
    const executor = make(1);
    give(executor, of(1, ""), assignedItem(2, { version: "2", timeoutMs: 1_000 }));
    await clock.advance(60_000);
    backends[0]?.backend.succeed(1);
    await clock.advance(60_000);
    closing.resolve();
    await clock.advance();
    await clock.advance(999);
    last().succeed(2);
    await clock.advance();
    expect(finished.map(({ outcome, durationMs }) => [outcome.kind, durationMs])).to.deep.equal([
      ["success", 60_000],
      ["success", 999],
    ]);
  });

  it("hands back what cannot be loaded because an attempt of the other version never ends", async () => {
    const executor = make(1);
    give(executor, assignedItem(1, { timeoutMs: 1_000 }), of(2, "2"));
    expect(handedBack).to.deep.equal([]);
    await clock.advance(60_000);
    expect(finished.map(({ outcome }) => outcome.kind)).to.deep.equal(["timeout"]);
    expect(handedBack.map(({ itemId }) => itemId[0])).to.deep.equal([2]);
  });

  it("gives back what is recalled while it waits for its version, and goes on with what stands behind it", async () => {
    const executor = make(1);
    const [second, third] = [of(2, "2"), of(3, "")];
    give(executor, of(1, ""), second, third);
    expect([...executor.unstarted].map(({ version }) => version)).to.deep.equal(["2", ""]);
    expect(executor.recall(second.key)).to.equal(second);
    executor.pump();
    expect(started(), "it needs no other version").to.deep.equal([["1", [1, 3]]]);
    expect([...executor.running].map(({ version }) => version)).to.deep.equal(["", ""]);
  });

  it("fetches as many beforehand, whatever versions they name", () => {
    const executor = make(1);
    const before = executor.room;
    give(executor, of(1, ""), of(2, "2"), of(3, ""), of(4, "2"));
    expect(before - executor.room).to.equal(4);
  });

  it("can be drained between two versions", async () => {
    const executor = make(1);
    give(executor, of(1, ""), of(2, "2"));
    backends[0]?.backend.succeed(1);
    await clock.advance();
    expect(executor.drain().map(({ itemId }) => itemId[0])).to.deep.equal([2]);
    closing.resolve();
    await clock.advance();
    await executor.whenIdle();
    expect(started()).to.deep.equal([["1", [1]]]);
  });

  it("reads the numbers that are asked for in the output of a success, and in nothing else", async () => {
    const executor = make(2);
    const pointers = [{ name: "score", pointer: "" }];
    give(executor, assignedItem(1, { pointers }), assignedItem(2, { pointers }));
    last()
      .of(1)
      .end({ kind: "success", output: Buffer.from("0.5") });
    last().of(2).end({ kind: "error", message: "no" });
    await clock.advance();
    give(executor, assignedItem(3), assignedItem(4, { pointers }));
    last()
      .of(3)
      .end({ kind: "success", output: Buffer.from("0.5") });
    // Too large, and so no success.
    last()
      .of(4)
      .end({ kind: "success", output: Buffer.from("0.5000000") });
    await clock.advance();
    const none = [undefined, undefined, undefined];
    expect(finished.map(({ measures }) => measures)).to.deep.equal([[{ value: 0.5 }], ...none]);
  });
});
