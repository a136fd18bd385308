import { expect } from "chai";
import fc from "fast-check";
import { seededRandom } from "../../src/base/random.ts";
import type { Random } from "../../src/base/random.ts";
import { PowerLossStore } from "../support/power-loss-store.ts";
import type { Store } from "../../src/storage/store.ts";
import { batchOf, EVERYTHING, putOf, textOf } from "../support/batch.ts";
import { failureOf } from "../support/rejection.ts";
import { storeContract } from "./store.ts";

storeContract("power loss", { open: async () => new PowerLossStore() });

const always = (unit: number): Random => ({ unit: () => unit, bytes: (count) => new Uint8Array(count) });
const allSurvives = always(0.999_999);

const contents = async (store: Store): Promise<Record<string, string | undefined>> =>
  Object.fromEntries((await store.scan(EVERYTHING)).map(({ key, value }) => [key, textOf(value)]));

describe("power loss store", () => {
  it("loses flushed commits and keeps synced ones, and all that was flushed before them", async () => {
    const store = new PowerLossStore();
    await store.commit(batchOf({ puts: [putOf("a", "flushed")] }));
    await store.commit(batchOf({ puts: [putOf("b", "synced")], durability: "sync" }));
    await store.commit(batchOf({ puts: [putOf("a", "again"), putOf("c", "flushed")], deletes: ["b"] }));
    expect(store.atRisk).to.equal(1);
    expect(await contents(store)).to.deep.equal({ a: "again", c: "flushed" });
    expect(await contents(store.losePower())).to.deep.equal({ a: "flushed", b: "synced" });
  });

  it("an empty synced commit makes what was flushed durable", async () => {
    const store = new PowerLossStore();
    await store.commit(batchOf({ puts: [putOf("a", "1")] }));
    await store.commit(batchOf({ durability: "sync" }));
    expect(await contents(store.losePower())).to.deep.equal({ a: "1" });
  });

  it("what survives is a first part of the commits, each whole, and nothing synced is ever lost", async () => {
    await fc.assert(
      fc.asyncProperty(fc.array(fc.boolean(), { maxLength: 20 }), fc.nat(), async (syncs, seed) => {
        const store = new PowerLossStore();
        for (const [at, sync] of syncs.entries()) {
          const puts = [putOf("x", `${at}`), putOf("y", `${at}`)];
          await store.commit(batchOf({ puts, durability: sync ? "sync" : "flush" }));
        }
        const found = await contents(store.losePower(seededRandom(seed)));
        expect(found["x"]).to.equal(found["y"]);
        expect(Number(found["x"] ?? -1)).to.be.within(syncs.lastIndexOf(true), syncs.length - 1);
      }),
      { numRuns: 200, seed: 3 },
    );
  });

  it("chance reaches from none of the flushed commits to all of them", async () => {
    for (const [random, expected] of [
      [always(0), {}],
      [always(0.5), { a: "1" }],
      [allSurvives, { a: "1", b: "1" }],
    ] as const) {
      const store = new PowerLossStore();
      for (const key of ["a", "b"]) await store.commit(batchOf({ puts: [putOf(key, "1")] }));
      expect(await contents(store.losePower(random))).to.deep.equal(expected);
    }
  });

  it("a killed process loses nothing that was answered", async () => {
    const store = new PowerLossStore();
    await store.commit(batchOf({ puts: [putOf("a", "1")] }));
    expect(await contents(store.killProcess())).to.deep.equal({ a: "1" });
  });

  it("a killed process leaves at risk what no sync has reached", async () => {
    const store = new PowerLossStore();
    await store.commit(batchOf({ puts: [putOf("a", "1")] }));
    const restarted = store.killProcess();
    expect(restarted.atRisk).to.equal(1);
    expect(await contents(restarted.losePower())).to.deep.equal({});
  });

  it("a handle from before the loss is dead, and what was on its way is unknown", async () => {
    const store = new PowerLossStore();
    const onItsWay = store.commit(batchOf({ puts: [putOf("a", "1")], durability: "sync" }));
    const after = store.losePower(allSurvives);
    expect((await onItsWay).kind).to.equal("unknown");
    expect((await store.commit(batchOf({ puts: [putOf("b", "1")], durability: "sync" }))).kind).to.equal(
      "unknown",
    );
    expect(await failureOf(store.get("a"))).to.include({ code: "store_write_failed" });
    expect(await contents(after)).to.deep.equal({});
  });

  it("a store that came back can lose its power again", async () => {
    const first = new PowerLossStore();
    await first.commit(batchOf({ puts: [putOf("a", "1")], durability: "sync" }));
    const second = first.losePower();
    await second.commit(batchOf({ puts: [putOf("b", "1")] }));
    expect(await contents(second.losePower())).to.deep.equal({ a: "1" });
  });
});
