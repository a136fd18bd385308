import { expect } from "chai";
import { readFileSync } from "node:fs";
import { charts } from "../../../machines/index.ts";
import type { Predecessor } from "../../../machines/migration.ts";
import { LOCK_FILE } from "../../../scripts/structure-lock.ts";
import type { StructureLock } from "../../../scripts/structure-lock.ts";
import { newUlid } from "../../../src/base/ids.ts";
import type { IncarnationId, WorkerId } from "../../../src/base/ids.ts";
import { systemClock } from "../../../src/base/clock.ts";
import { systemRandom } from "../../../src/base/random.ts";
import {
  adoptLedgerCharts,
  checkLedgerCharts,
  keyedStamp,
  KNOWN_CHARTS,
} from "../../../src/coordinator/ledger-charts.ts";
import type { KnownCharts } from "../../../src/coordinator/ledger-charts.ts";
import { StorageLease } from "../../../src/coordinator/lead/lease.ts";
import { runRecord } from "../../../src/coordinator/run/run.ts";
import { workerRecord, workersSegment } from "../../../src/coordinator/workers/worker-record.ts";
import { encodeRecord, okOrFailure } from "../../../src/storage/codec.ts";
import { LEDGER_CHARTS_KEY, RUN_KEY, workerKey } from "../../../src/storage/keys.ts";
import { MemoryStore } from "../../../src/storage/memory/memory-store.ts";
import { readRecord } from "../../../src/storage/records.ts";
import { SegmentCount, verifySegment } from "../../../src/storage/segment-count.ts";
import type { Batch, Entry, Expectation, Store } from "../../../src/storage/store.ts";
import { batchOf, EVERYTHING } from "../../support/batch.ts";
import { chartsEntry } from "../../support/ledger-rows.ts";
import { failureOf } from "../../support/rejection.ts";

type Stamps = Parameters<typeof chartsEntry>;

function storeOf(...stamps: Stamps): MemoryStore {
  return new MemoryStore([chartsEntry(...stamps)]);
}

async function lead(store: Store): Promise<Expectation> {
  return (await new StorageLease(store, "a").claim()).epochRow;
}

const keyed: Stamps = KNOWN_CHARTS.current.map(({ chart, version, structure }) => [
  chart,
  version,
  structure,
]);
/** As every ledger without keys is stamped. */
const current = keyed.filter(([chart]) => chart !== "key");

describe("the charts of the ledger", () => {
  it("are stamped into a new ledger, and found again by the next leader", async () => {
    const store = new MemoryStore();
    await checkLedgerCharts(store);
    await adoptLedgerCharts(store, await lead(store));
    const stamp = await store.get(LEDGER_CHARTS_KEY);
    expect(stamp).to.deep.equal(chartsEntry(...current).value);
    await checkLedgerCharts(store);
    await adoptLedgerCharts(store, await lead(store));
    expect(await store.get(LEDGER_CHARTS_KEY)).to.deep.equal(stamp);
  });

  for (const [what, store] of [
    ["a newer version", storeOf(["worker-lifecycle", "2", "0"])],
    ["a version that nobody has written", storeOf(["worker-lifecycle", "0", "0"])],
    ["the same version and another structure", storeOf(["worker-lifecycle", "1", "0"])],
    ["nothing of one that this leader needs", storeOf(["work-item", "1", "0"])],
  ] as const)
    it(`are refused when the store says ${what}, by name, before and after a claim`, async () => {
      for (const look of [checkLedgerCharts(store), adoptLedgerCharts(store, await lead(store))]) {
        const error = await failureOf(look);
        expect(error.code).to.equal("store_newer");
        expect(error.params["key"]).to.equal(LEDGER_CHARTS_KEY);
        expect(error.params["known"]).to.contain("worker-lifecycle 1");
      }
    });

  it("are known with the chart of keys, for which a program that has no keys refuses the store", async () => {
    const store = new MemoryStore([keyedStamp()]);
    expect(await checkLedgerCharts(store)).to.equal("readable");
    await adoptLedgerCharts(store, await lead(store));
    expect(await store.get(LEDGER_CHARTS_KEY)).to.deep.equal(keyedStamp().value);
    // Version 1 of the record is all that such a program reads.
    expect(keyedStamp().value[1]).to.equal(2);
    expect(chartsEntry(...current).value[1]).to.equal(1);
  });

  it("are refused when the chart of keys is another", async () => {
    const other = KNOWN_CHARTS.current.map((one) => (one.chart === "key" ? { ...one, version: "3" } : one));
    const store = new MemoryStore([keyedStamp({ ...KNOWN_CHARTS, current: other })]);
    const error = await failureOf(checkLedgerCharts(store));
    expect(error).to.include({ code: "store_newer" });
    expect(error.params["known"]).to.contain("key 2");
  });

  it("are refused when the stamp is damaged", async () => {
    const store = new MemoryStore([{ key: LEDGER_CHARTS_KEY, value: new Uint8Array(30) }]);
    expect((await failureOf(checkLedgerCharts(store))).code).to.equal("store_corrupt");
  });

  it("are stamped anew, and nothing else is written, where items are of the version before there were releases", async () => {
    const before = current.map(([chart, version, structure]): Stamps[number] =>
      chart === "work-item" ? [chart, "1", "b2e3f8b011452b1f"] : [chart, version, structure],
    );
    const store = storeOf(...before);
    expect(await checkLedgerCharts(store)).to.equal("to be adopted");
    await adoptLedgerCharts(store, await lead(store));
    expect(await store.get(LEDGER_CHARTS_KEY)).to.deep.equal(chartsEntry(...current).value);
    expect(await checkLedgerCharts(store)).to.equal("readable");
  });

  it("are not stamped by a leader that was deposed", async () => {
    const store = new MemoryStore();
    const older = await lead(store);
    await lead(store);
    await adoptLedgerCharts(store, older);
    expect(await store.get(LEDGER_CHARTS_KEY)).to.equal(undefined);
  });

  it("are known in every version that a user's ledger may have", () => {
    const { structures } = JSON.parse(readFileSync(LOCK_FILE, "utf8")) as StructureLock;
    for (const { chart, version, structure } of KNOWN_CHARTS.current) {
      const id = chart as keyof KnownCharts["predecessors"];
      const read = [{ version, structure }, ...KNOWN_CHARTS.predecessors[id]];
      const found = Object.fromEntries(read.map((one) => [one.version, one.structure]));
      expect(found, `${chart}: the predecessors in machines/index.ts`).to.deep.equal(structures[chart]);
    }
  });

  it("have predecessors where they move rows of the ledger, and nowhere else", () => {
    const withRows = Object.entries(charts).filter(([, chart]) => "predecessors" in chart);
    expect(withRows.map(([id]) => id).sort()).to.deep.equal(keyed.map(([id]) => id).sort());
  });
});

describe("a ledger that predecessors of the charts have written", () => {
  /** As it will be one day: the charts of today are predecessors. */
  const tomorrow: KnownCharts = {
    current: KNOWN_CHARTS.current.map((one) => ({ ...one, version: "9", structure: "of tomorrow" })),
    predecessors: {
      "worker-lifecycle": [
        of("worker-lifecycle", { "Ready+Alive": "Fit+Alive", "Gone+Removed": "Gone+Removed" }),
      ],
      "worker-trust": [of("worker-trust", { Trusted: "Trusted", Cordoned: "Kept" })],
      "work-item": [of("work-item", {})],
      run: [of("run", { "Open.Active": "Open.Busy" })],
      key: [],
    },
  };

  function of(chart: string, states: Predecessor["states"]): Predecessor {
    const stamp = KNOWN_CHARTS.current.find((one) => one.chart === chart);
    if (stamp === undefined) throw new Error(`no chart ${chart}`);
    return { version: stamp.version, structure: stamp.structure, states };
  }

  const workers = ["Ready+Alive", "Gone+Removed", "Ready+Alive"].map((state, at) => ({
    id: newUlid<WorkerId>(systemClock, systemRandom),
    record: {
      incarnation: newUlid<IncarnationId>(systemClock, systemRandom),
      state,
      trust: at === 2 ? "Cordoned" : "Trusted",
      isToDrain: at === 1,
      failuresInRow: at,
      slots: 2,
      plugins: [{ name: "p", version: "1" }],
      registeredAtWallMs: 7,
    },
  }));
  const run = {
    state: "Open.Active",
    pauseReason: null,
    task: { digest: new Uint8Array([1]), plugin: "p", summary: "s" },
    countedFrom: { wallMs: 1, done: 2, failures: 3 },
  };

  async function ledger(change: Partial<typeof run> = {}): Promise<MemoryStore> {
    const store = new MemoryStore();
    const count = await SegmentCount.load(store, workersSegment);
    const puts: Entry[] = workers.map(({ id, record }) => {
      const key = workerKey(id);
      const value = encodeRecord(workerRecord, key, record);
      count.added(value);
      return { key, value };
    });
    puts.push(count.entry(), chartsEntry(...current));
    puts.push({ key: RUN_KEY, value: encodeRecord(runRecord, RUN_KEY, { ...run, ...change }) });
    await store.commit(batchOf({ puts }));
    return store;
  }

  it("is led: each row gets the state that the charts have for it now, and keeps all else", async () => {
    const store = await ledger();
    expect(await checkLedgerCharts(store, tomorrow)).to.equal("to be adopted");
    await adoptLedgerCharts(store, await lead(store), tomorrow);
    expect(await checkLedgerCharts(store, tomorrow)).to.equal("readable");
    const states = ["Fit+Alive", "Gone+Removed", "Fit+Alive"];
    const trusts = ["Trusted", "Trusted", "Kept"];
    for (const [at, { id, record }] of workers.entries())
      expect(await readRecord(store, workerKey(id), workerRecord)).to.deep.equal({
        ...{ ...record, state: states[at], trust: trusts[at] },
      });
    const after = await readRecord(store, RUN_KEY, runRecord);
    expect(after).to.deep.include({ state: "Open.Busy", countedFrom: run.countedFrom });
    expect(okOrFailure("memory", await verifySegment(store, workersSegment))).to.equal(3);
  });

  it("is stamped anew in the same commit, after which an older program refuses it by name", async () => {
    const store = await ledger();
    const epochRow = await lead(store);
    const batches: Batch[] = [];
    const commit = store.commit.bind(store);
    store.commit = (batch) => {
      batches.push(batch);
      return commit(batch);
    };
    await adoptLedgerCharts(store, epochRow, tomorrow);
    expect(batches).to.have.length(1);
    expect(batches[0]?.durability).to.equal("sync");
    expect(batches[0]?.expect.map(({ key }) => key)).to.deep.equal([epochRow.key, LEDGER_CHARTS_KEY]);
    const error = await failureOf(checkLedgerCharts(store));
    expect(error).to.include({ code: "store_newer" });
    expect(error.params["found"]).to.equal("worker-lifecycle 9 (of tomorrow)");
  });

  it("is not changed by a read, nor a second time", async () => {
    const store = await ledger();
    const epochRow = await lead(store);
    const before = await store.scan(EVERYTHING);
    await checkLedgerCharts(store, tomorrow);
    expect(await store.scan(EVERYTHING)).to.deep.equal(before);
    await adoptLedgerCharts(store, epochRow, tomorrow);
    const after = await store.scan(EVERYTHING);
    await adoptLedgerCharts(store, epochRow, tomorrow);
    expect(await store.scan(EVERYTHING)).to.deep.equal(after);
  });

  it("is damaged where a row is in a state that its chart did not have", async () => {
    const store = await ledger({ state: "Open.Odd" });
    const error = await failureOf(adoptLedgerCharts(store, await lead(store), tomorrow));
    expect(error).to.include({ code: "store_corrupt" });
    expect(error.params["key"]).to.equal(RUN_KEY);
  });

  it("is refused where one chart of it is unknown", async () => {
    const store = await ledger();
    const puts = [
      chartsEntry(...current.map((one): Stamps[number] => (one[0] === "run" ? ["run", "1", "x"] : one))),
    ];
    await store.commit(batchOf({ puts }));
    const before = await store.scan(EVERYTHING);
    const error = await failureOf(checkLedgerCharts(store, tomorrow));
    expect(error.params["found"]).to.equal("run 1 (x)");
    expect(await store.scan(EVERYTHING)).to.deep.equal(before);
  });
});
