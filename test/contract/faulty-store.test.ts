import { expect } from "chai";
import { systemClock } from "../../src/base/clock.ts";
import { FaultyStore, noFaults, scriptedFaults } from "../support/faulty-store.ts";
import type { Fault, FaultPlan } from "../support/faulty-store.ts";
import { MemoryStore } from "../../src/storage/memory/memory-store.ts";
import { batchOf, EVERYTHING, putOf, textOf } from "../support/batch.ts";
import { failureOf } from "../support/rejection.ts";
import { storeContract } from "./store.ts";

storeContract("faulty without faults", {
  open: async () =>
    new FaultyStore(new MemoryStore(), { plan: noFaults, clock: systemClock, afterFailure: "broken" }),
});

function faulty(plan: FaultPlan, afterFailure: "broken" | "usable" = "usable") {
  const inner = new MemoryStore();
  return { inner, store: new FaultyStore(inner, { plan, clock: systemClock, afterFailure }) };
}
const second = (fault: Fault): FaultPlan => scriptedFaults([{ operation: "commit", nth: 2, fault }]);

describe("faulty store", () => {
  it("a commit that fails before it is executed is unknown and not there", async () => {
    const { inner, store } = faulty(second({ kind: "fail_before" }));
    const kinds = [];
    for (const key of ["a", "b", "c"])
      kinds.push((await store.commit(batchOf({ puts: [putOf(key, "")] }))).kind);
    expect(kinds).to.deep.equal(["committed", "unknown", "committed"]);
    expect((await inner.scan(EVERYTHING)).map(({ key }) => key)).to.deep.equal(["a", "c"]);
  });

  it("a commit that fails after it is executed is unknown and there", async () => {
    const { inner, store } = faulty(second({ kind: "fail_after" }));
    await store.commit(batchOf({ puts: [putOf("a", "")] }));
    const outcome = await store.commit(batchOf({ puts: [putOf("b", "")] }));
    expect(outcome.kind).to.equal("unknown");
    expect((await inner.scan(EVERYTHING)).map(({ key }) => key)).to.deep.equal(["a", "b"]);
  });

  it("a broken handle answers nothing but unknown, even for what is already on its way, and its reads throw", async () => {
    const { inner, store } = faulty(second({ kind: "fail_before" }), "broken");
    const outcomes = await Promise.all(
      ["a", "b", "c", "d"].map((key) => store.commit(batchOf({ puts: [putOf(key, "")] }))),
    );
    expect(outcomes.map(({ kind }) => kind)).to.deep.equal(["committed", "unknown", "unknown", "unknown"]);
    expect(await failureOf(store.get("a"))).to.include({ code: "store_write_failed" });
    expect(await failureOf(store.scan(EVERYTHING))).to.include({ code: "store_write_failed" });
    expect((await inner.scan(EVERYTHING)).map(({ key }) => key)).to.deep.equal(["a"]);
  });

  it("later commits wait behind a delayed one", async () => {
    const { store } = faulty(
      scriptedFaults([{ operation: "commit", nth: 1, fault: { kind: "delay", delayMs: 20 } }]),
    );
    const answered: string[] = [];
    const commit = async (value: string): Promise<void> => {
      await store.commit(batchOf({ puts: [putOf("last", value)] }));
      answered.push(value);
    };
    await Promise.all([commit("slow"), commit("fast")]);
    expect(answered).to.deep.equal(["slow", "fast"]);
    expect(textOf(await store.get("last"))).to.equal("fast");
  });

  it("close waits for a delayed commit", async () => {
    const { inner, store } = faulty(second({ kind: "delay", delayMs: 20 }));
    const commits = ["a", "b"].map((key) => store.commit(batchOf({ puts: [putOf(key, "")] })));
    await store.close();
    expect((await Promise.all(commits)).map(({ kind }) => kind)).to.deep.equal(["committed", "committed"]);
    expect(await failureOfClosed(inner)).to.equal("AssertionFailed");
  });

  it("the reads that the plan names throw, and no others", async () => {
    const { store } = faulty(
      scriptedFaults([
        { operation: "get", nth: 2, fault: { kind: "fail_before" } },
        { operation: "scan", nth: 1, fault: { kind: "fail_after" } },
        { operation: "get", nth: 3, fault: { kind: "delay", delayMs: 1 } },
      ]),
    );
    expect(await store.get("a")).to.equal(undefined);
    expect(await failureOf(store.get("a"))).to.include({ code: "store_corrupt" });
    expect(await store.get("a")).to.equal(undefined);
    expect(await failureOf(store.scan(EVERYTHING))).to.include({ code: "store_corrupt" });
    expect(await store.scan(EVERYTHING)).to.deep.equal([]);
  });
});

async function failureOfClosed(store: MemoryStore): Promise<unknown> {
  return store.get("a").then(
    () => undefined,
    (error: unknown) => (error instanceof Error ? error.name : error),
  );
}
