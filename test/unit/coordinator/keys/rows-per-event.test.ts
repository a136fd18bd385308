// Rows that an event of an actor costs, counted: each is written in the one batch of the result that has brought it about.
import { expect } from "chai";
import type { Asks } from "../../../../src/coordinator/ledger/asks.ts";
import { keyNumbersRecord, numbersRecordFor } from "../../../../src/coordinator/keys/key-records.ts";
import { decodeRecord, encodeRecord } from "../../../../src/storage/codec.ts";
import { KEY_NUMBERS_KEY } from "../../../../src/storage/keys.ts";
import { ActorRig, bytes } from "./actor-rig.ts";

const send = (to: string) => ({ to, event: bytes("x"), isOptional: false });

/** Rows put and deleted by the turn that records the result, what it gives out next left aside. */
async function rowsOf(asks: Partial<Asks>, before: readonly string[] = []): Promise<Record<string, number>> {
  const rig = await ActorRig.start();
  await rig.send("a go", ...before);
  // Nothing is given out in the turn that is counted.
  await rig.world.step({ kind: "withdrawCredit", workerId: rig.worker.id, port: rig.worker.port });
  const item = rig.find("a");
  const seen: Record<string, number> = {};
  const { world } = rig;
  const report = rig.doneReport(item, asks);
  await world.step(rig.worker.resultsInput([report]));
  for (const key of [...world.written.puts.map(({ key: of }) => of), ...world.written.deletes]) {
    const kind = key.startsWith("meta/") ? key : (key.split("/")[0] ?? "");
    seen[kind] = (seen[kind] ?? 0) + 1;
  }
  return seen;
}

const numbers = { "meta/ledger": 1, "meta/keys": 1, completions: 1 };
const settled = { running: 1, done: 1, keys: 1, states: 1 };

describe("an event of an actor costs in rows", () => {
  it("as much as an item of a key with a state, if it asks for nothing", async () => {
    expect(await rowsOf({})).to.deep.equal({ ...numbers, ...settled });
  });

  it("three more for each message to an actor that is idle, and three to one that is not", async () => {
    const idle = await rowsOf({ sends: [send("b")] });
    expect(idle).to.deep.equal({ ...numbers, ...settled, items: 1, ids: 1, keys: 2 });
    const busy = await rowsOf({ sends: [send("b"), send("b")] }, ["b waits"]);
    expect(busy).to.deep.equal({ ...numbers, ...settled, items: 2, ids: 2, mail: 2, keys: 2 });
  });

  it("one more for a timer, and three for an invocation", async () => {
    const timer = { id: "t", delayMs: 1_000, event: bytes("x"), to: "", isOptional: false };
    expect(await rowsOf({ timers: [timer] })).to.deep.equal({ ...numbers, ...settled, timers: 1 });
    const invocation = { id: "i", source: "s", input: bytes("x") };
    const invoked = await rowsOf({ invocations: [invocation] });
    expect(invoked).to.deep.equal({ ...numbers, ...settled, items: 1, ids: 1, keys: 2 });
  });

  it("no new row where it asks for nothing: the ledger's numbers have the version that earlier programs read", async () => {
    const rig = await ActorRig.start();
    await rig.send("a go");
    const of = numbersRecordFor(rig.world.state.keys.rows.numbers);
    expect(of.version ?? 1).to.equal(1);
    await rig.done("a");
    const value = await rig.world.store.get(KEY_NUMBERS_KEY);
    expect(value?.[1]).to.equal(1);
    await rig.send("a more");
    await rig.done("a", { sends: [send("b")] });
    const later = await rig.world.store.get(KEY_NUMBERS_KEY);
    expect(later?.[1]).to.equal(2);
    const { numbers: now } = rig.world.state.keys.rows;
    const read = decodeRecord(keyNumbersRecord, KEY_NUMBERS_KEY, later ?? new Uint8Array());
    expect(read.kind === "ok" && read.value).to.deep.equal(now);
    // A store of before: its numbers are read as they were.
    const older = { ...now, inside: undefined, segments: { ...now.segments, timers: { count: 0, sum: 0 } } };
    const bytesOfOlder = encodeRecord(numbersRecordFor(older), KEY_NUMBERS_KEY, older);
    const again = decodeRecord(keyNumbersRecord, KEY_NUMBERS_KEY, bytesOfOlder);
    expect(again.kind === "ok" && again.value).to.deep.equal(older);
  });
});
