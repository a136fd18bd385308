// Rows that cannot be read: a leader refuses them by name, setting one aside lets it lead, and what is left of the run is right.
import { expect } from "chai";
import type { WorkerId } from "../../../../src/base/ids.ts";
import { enrolledEntry, revocationsEntry } from "../../../../src/coordinator/workers/enrolment.ts";
import { findDamages } from "../../../../src/coordinator/quarantine/known-rows.ts";
import { setAside } from "../../../../src/coordinator/quarantine/set-aside.ts";
import { readCompletions } from "../../../../src/coordinator/ledger/completions.ts";
import { runningRecord } from "../../../../src/coordinator/ledger/records.ts";
import { verifyLedger } from "../../../../src/coordinator/read/verify-ledger.ts";
import { encodeRecord } from "../../../../src/storage/codec.ts";
import { MemoryStore } from "../../../../src/storage/memory/memory-store.ts";
import { batchOf } from "../../../support/batch.ts";
import { failureOf } from "../../../support/rejection.ts";
import { World } from "../../../support/world.ts";
import { ERROR } from "../../../support/world-worker.ts";
import type { WorldWorker } from "../../../support/world-worker.ts";

const AT_MS = 1_000;
const BUNDLE = "01JZ0000000000000000000001";
const ENROLLED = "01JZ0000000000000000000002" as WorkerId;

describe("a row that cannot be read", () => {
  let store: MemoryStore;
  let ledger: World;
  let worker: WorldWorker;

  /** One item done, one failed, one that waits, one that was handed back, one running and one that was never given out. */
  beforeEach(async () => {
    store = new MemoryStore();
    ledger = await World.start({ store, budgets: { maxAttempts: 2 } });
    worker = await ledger.worker(1, { slots: 4 });
    await ledger.submit(["done", "failed", "delayed", "returned", "running", "fresh"]);
    await worker.ask(2);
    const [done, failed] = [...worker.held];
    await worker.report(done === undefined ? [] : [done]);
    await worker.report(failed === undefined ? [] : [failed], { kind: "too_large", message: "no" });
    await worker.ask(1);
    await worker.report(worker.held, ERROR);
    await worker.ask(2);
    expect(worker.texts).to.deep.equal(["returned", "running"]);
    await worker.handBack(worker.held.slice(0, 1));
    const times = { enrolledAtWallMs: 1, endsAtWallMs: 2, warnFromWallMs: 2 };
    const identities = [enrolledEntry(BUNDLE, ENROLLED, times), revocationsEntry(new Map([[BUNDLE, 1]]))];
    await store.commit(batchOf({ puts: identities }));
  });

  /** In order; every number of the order is there. */
  async function completed(): Promise<string[]> {
    const places: string[] = [];
    const { nextCompletion } = ledger.state.ledger.tally.numbers;
    for (let number = 0; number < nextCompletion; number++)
      places.push(...(await readCompletions(store, { from: number, to: number + 1 })).flat());
    return places;
  }

  const firstKeyOf = async (): Promise<string | undefined> => (await findDamages(store))[0]?.key;

  const without: Readonly<Record<string, object>> = {
    "done/": { done: 0, setAside: 1, pending: 3 },
    "failed/": { failed: 0, setAside: 1, pending: 3 },
    "delayed/": { done: 1, delayed: 0, setAside: 1, pending: 2 },
    "returned/": { done: 1, setAside: 1, pending: 2 },
    "running/": { done: 1, running: 0, setAside: 1, pending: 3 },
    "workers/": { done: 1, running: 1, setAside: 0, pending: 3 },
    "ids/": { done: 1, running: 1, setAside: 0, pending: 3 },
    "completions/": { done: 1, running: 1, setAside: 0, pending: 3 },
    "heartbeats/": { done: 1, running: 1, setAside: 0, pending: 3 },
    "attempts/": { done: 1, running: 1, setAside: 0, pending: 3 },
    "enrolled/": { done: 1, running: 1, setAside: 0, pending: 3 },
  };
  for (const [prefix, counts] of Object.entries(without))
    it(`under ${prefix} is set aside, and the next leader goes on with the others`, async () => {
      const inOrder = await completed();
      const key = await ledger.damage(prefix);
      expect(await firstKeyOf()).to.equal(key);
      expect((await setAside(store, key, AT_MS)).kind).to.equal("aside");
      expect(await findDamages(store), "the numbers agree with what is left").to.deep.equal([]);
      expect((await setAside(store, key, AT_MS)).kind, "a second time").to.be.oneOf(["known", "whole"]);
      await ledger.lead();
      const { failed, failedByClass, ...others } = await ledger.view();
      expect({ failed, ...others }).to.include(counts);
      expect(failedByClass["too_large"] ?? 0, "the one that has failed").to.equal(failed);
      expect(await completed(), "the order of completion").to.deep.equal(inOrder);
      expect(await ledger.rowsUnder("ids/"), "each is found by its id").to.have.length(6);
      expect((await ledger.rowsUnder("quarantine/")).map((row) => row.key)).to.deep.equal([
        `quarantine/${key}`,
      ]);
      await worker.rejoin();
      expect(ledger.events.of("worker_superseded"), "it is known to be the same process").to.deep.equal([]);
      await ledger.settle();
      await ledger.seal();
      await worker.ask(10);
      await ledger.watch(3_000, [worker]);
      await worker.report([...worker.held]);
      const view = await ledger.view();
      expect(view, "everything else becomes final").to.include({ state: "Complete", pending: 0 });
      const { numbers } = ledger.state.ledger.tally;
      expect(await verifyLedger(store, numbers)).to.equal(undefined);
    });

  it("is reported by the numbers that counted it when it is missing", async () => {
    for (const prefix of ["done/", "workers/"]) {
      const [row] = await ledger.rowsUnder(prefix);
      if (row === undefined) throw new Error(`no row under ${prefix}`);
      await store.commit(batchOf({ deletes: [row.key] }));
      expect((await findDamages(store)).map(({ kind }) => kind)).to.deep.equal(["corrupt"]);
      await store.commit(batchOf({ puts: [row] }));
      expect(await findDamages(store)).to.deep.equal([]);
    }
  });

  it("of an item takes the item with it, unless its result is there", async () => {
    for (const [nth, counts] of [
      [0, { done: 1, setAside: 0 }],
      [5, { done: 1, setAside: 1, pending: 2 }],
      [4, { done: 1, setAside: 2, running: 0, pending: 2 }],
    ] as const) {
      const key = await ledger.damage("items/", nth);
      expect(await setAside(store, key, AT_MS)).to.include({ kind: "aside" });
      expect(await findDamages(store)).to.deep.equal([]);
      await ledger.lead();
      expect(await ledger.view()).to.include(counts);
    }
    await worker.rejoin([]);
    await worker.ask(10);
    worker.held.splice(0, 2);
    await ledger.watch(3_000, [worker]);
    expect(worker.texts, "nothing without its payload is given out")
      .to.not.include("")
      .and.not.include("fresh");
  });

  it("has a right checksum and a number that is none: it is named, and the start refuses it", async () => {
    const [row] = await ledger.rowsUnder("running/");
    if (row === undefined) throw new Error("one is running");
    const type = {
      ...runningRecord,
      encode: () => [new Uint8Array(32), new Uint8Array(16), new Uint8Array(16), 0.5],
    };
    const value = encodeRecord(type, row.key, undefined as never);
    await store.commit(batchOf({ puts: [{ key: row.key, value }] }));
    expect(await failureOf(ledger.lead()))
      .to.include({ code: "store_corrupt" })
      .with.nested.property("params.key", row.key);
    expect(await findDamages(store)).to.deep.include({
      ...{ kind: "corrupt", key: row.key },
      reason: "not a running item record: field 3 is no whole number",
    });
    expect(await setAside(store, row.key, AT_MS)).to.include({ kind: "aside" });
    await ledger.lead();
    expect(await ledger.view()).to.include({ setAside: 1, running: 0 });
  });

  it("is not set aside when it is whole, is not there, or holds all the others together", async () => {
    const [row] = await ledger.rowsUnder("done/");
    expect((await setAside(store, row?.key ?? "", AT_MS)).kind).to.equal("whole");
    expect((await setAside(store, "done/nothing", AT_MS)).kind).to.equal("absent");
    const key = await ledger.damage("meta/", 1);
    expect((await setAside(store, key, AT_MS)).kind).to.equal("vital");
    expect(await ledger.rowsUnder("quarantine/")).to.deep.equal([]);
  });

  const forGood = { "who was revoked": ["meta/", 2], "what was set aside": ["quarantine/", 0] } as const;
  for (const [what, [prefix, nth]] of Object.entries(forGood))
    it(`of ${what} is named, but not set aside: it holds for good`, async () => {
      await setAside(store, await ledger.damage("done/"), AT_MS);
      const key = await ledger.damage(prefix, nth);
      expect(await firstKeyOf()).to.equal(key);
      expect((await setAside(store, key, AT_MS)).kind).to.equal("vital");
      expect(await failureOf(ledger.lead()))
        .to.include({ code: "store_corrupt" })
        .with.nested.property("params.key", key);
    });
});
