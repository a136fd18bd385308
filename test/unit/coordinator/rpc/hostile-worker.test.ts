// Attacks of a worker with nothing but its certificate, over a real listener with mutual TLS: it asks for everything, gives
// nothing back, and claims what it was never given.
import { expect } from "chai";
import { LIMITS } from "../../../../src/config/limits.ts";
import { itemRecord } from "../../../../src/coordinator/ledger/records.ts";
import { decodeRecord, okOrFailure } from "../../../../src/storage/codec.ts";
import { CONFLICTS_PREFIX, ITEMS_PREFIX } from "../../../../src/storage/keys.ts";
import { prefixRange } from "../../../../src/storage/store.ts";
import { eventually } from "../../../support/eventually.ts";
import { useLedCluster } from "../../../support/led-cluster.ts";
import { texts } from "../../../support/world.ts";
import { ScriptedWorker } from "./scripted-worker.ts";
import type { AttemptInit } from "./scripted-worker.ts";
import { seenRun } from "../../../support/worker-client.ts";

/** Silence is judged late, and the deadline for handing back, twice the failure timeout, is over soon. */
const LIVENESS = {
  heartbeatIntervalMs: 4_000,
  clockSkewBudgetMs: 250,
  coordinatorFailureTimeoutMs: 500,
  removeAfterMs: 60_000,
};

describe("a hostile worker", () => {
  const led = useLedCluster(() => ({ liveness: LIVENESS, inboxMax: 1_000 }));
  let batchNumber = 0n;

  beforeEach(() => (batchNumber = 0n));

  async function submit(...texts: string[]): Promise<void> {
    const items = texts.map((text) => ({ payload: Buffer.from(text) }));
    const submission = { submissionId: new Uint8Array(16).fill(4), taskDigest: new Uint8Array(32).fill(3) };
    await led.operator.run.submit({ ...submission, batchNumber: ++batchNumber, items });
  }

  async function join(): Promise<ScriptedWorker> {
    const worker = new ScriptedWorker(await led.join());
    led.closeLater(() => worker.end());
    return worker;
  }

  async function idOf(nth: number): Promise<Uint8Array> {
    const rows = await led.cluster.store.scan({ ...prefixRange(ITEMS_PREFIX), limit: 100 });
    return rows.map(({ key, value }) => okOrFailure("memory", decodeRecord(itemRecord, key, value)).id)[
      nth
    ] as Uint8Array;
  }

  const run = async (): Promise<Record<string, unknown>> => {
    const { pending, running, done, staleReports, conflicts } = await seenRun(led.operator.run);
    return { pending, running, done, staleReports, conflicts };
  };

  it("that asks for everything has what the coordinator's limits let it have", async () => {
    await submit(...texts(LIMITS.backlogPerWorker + 1_000));
    const hoarder = await join();
    await hoarder.open(30_000, 4);
    const max = 4 + LIMITS.backlogPerWorker;
    await eventually("it has its share", () => hoarder.given.length >= max);
    await hoarder.beat(4);
    await submit("one more");
    expect(await run()).to.include({ running: max });
  });

  it("that ignores that it is asked to hand back loses to others what it never began", async () => {
    await submit("a", "b", "c");
    const [hoarder, other] = [await join(), await join()];
    await hoarder.open(10);
    await eventually("it has everything", () => hoarder.given.length === 3);
    await other.open(10, 3);
    await eventually("the other one has what was hoarded", async () => {
      await Promise.all([hoarder.beat(), other.beat(3)]);
      return other.given.length === 2;
    });
    expect(other.given.map(({ text }) => text)).to.deep.equal(["c", "b"]);
    expect(hoarder.frames).to.include("recall").and.include("drop");
    for (const { text, ...attempt } of hoarder.given) await hoarder.report(attempt, 0n, text);
    expect(await run(), "it is too late").to.include({ done: 1, running: 2, staleReports: 2 });
    for (const { text, ...attempt } of other.given) await other.report(attempt, 0n, text);
    expect(await run()).to.include({ done: 3, running: 0, conflicts: 0 });
  });

  it("that contradicts results leaves one piece of evidence for each item that it had, and fills no disk", async () => {
    await submit("a", "b");
    const [liar, other] = [await join(), await join()];
    await liar.open(1);
    await eventually("it has one", () => liar.given.length === 1);
    await other.open(1);
    await eventually("the other has one", () => other.given.length === 1);
    const [[own], [others]] = [liar.given, other.given];
    if (own === undefined || others === undefined) throw new Error("each has one");
    const attemptOf = ({ itemId, attempt }: typeof own): AttemptInit => ({ itemId, attempt });
    await liar.report(attemptOf(own), 0n, "true");
    await other.report(attemptOf(others), 0n, "true");
    const large = "x".repeat(2 ** 16);
    for (let round = 0; round < 5; round++) {
      const contradictions = Array.from({ length: 4 }, (_, at) => `${round} ${at} ${large}`);
      await Promise.all([
        ...contradictions.map((text) => liar.report(attemptOf(own), 0n, text)),
        ...contradictions.map((text, at) => liar.report({ ...attemptOf(own), attempt: at + 2 }, 0n, text)),
        ...contradictions.map((text) => liar.report(attemptOf(others), 0n, text)),
      ]);
    }
    const evidence = await led.cluster.store.scan({ ...prefixRange(CONFLICTS_PREFIX), limit: 100 });
    expect(evidence, "of the attempt that it had").to.have.length(1);
    expect(await run(), "the others are counted").to.include({ done: 2, conflicts: 60 });
    const warned = led.listening.log.lines.filter(({ message }) => message.includes("another result"));
    expect(warned).to.have.length(1);
  });

  it("that claims an earlier leadership is not believed of what came in after it", async () => {
    const liar = await join();
    await liar.beat();
    await submit("before");
    await led.restart();
    await submit("under the second");
    await led.restart();
    await submit("under the third");
    const again = new ScriptedWorker(await led.join({ id: liar.client.worker.id }));
    await again.beat();
    for (const nth of [0, 1, 2]) await again.report({ itemId: await idOf(nth), attempt: 1 }, 0n, "made up");
    expect(await run(), "what can have been given to it, and nothing else").to.include({
      done: 1,
      pending: 2,
      staleReports: 2,
    });
  });

  it("that no earlier leader knew can have nothing of one", async () => {
    await submit("a");
    await led.restart();
    const liar = await join();
    await liar.beat();
    await liar.report({ itemId: await idOf(0), attempt: 1 }, 0n, "made up");
    expect(await run()).to.include({ done: 0, pending: 1, staleReports: 1 });
  });
});
