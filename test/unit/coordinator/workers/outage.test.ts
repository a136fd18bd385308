// The end of a worker's process, as items see it: the doing of one of them, or an outage that many met together.
import { expect } from "chai";
import { OutcomeClass } from "../../../../src/gen/rollout/v1/work_pb.ts";
import { World } from "../../../support/world.ts";
import { hexOf, WorldOperator } from "../../../support/world-operator.ts";
import type { WorldWorker } from "../../../support/world-worker.ts";

/** Until it is known that a worker which has restarted was the only one, and a scan more. */
const KNOWN_MS = 5_500;
/** After which a restart is not a repeated one. */
const LONG_MS = 61_000;

describe("a worker's process that ends without a goodbye", () => {
  let ledger: World;
  let incarnations: number;

  beforeEach(async () => {
    ledger = await World.start();
    incarnations = 1;
  });

  async function fleet(size: number): Promise<WorldWorker[]> {
    const workers: WorldWorker[] = [];
    for (let number = 1; number <= size; number++) workers.push(await ledger.worker(number, { slots: 1 }));
    return workers;
  }

  /** The next process of each, one after the other. */
  async function restart(...workers: readonly WorldWorker[]): Promise<void> {
    for (const worker of workers) {
      await worker.startAnew(++incarnations);
    }
  }

  const poisoned = (): number => ledger.state.ledger.tally.failedByClass.poison;

  it("is counted against what it executed, when it is the only worker, and at once", async () => {
    const [worker] = (await fleet(1)) as [WorldWorker];
    await ledger.submit(["a"]);
    await worker.ask(1);
    await restart(worker);
    await worker.ask(1);
    expect(worker.held.map(({ attempt }) => attempt)).to.deep.equal([2]);
    expect(ledger.losses).to.deep.equal([1]);
  });

  it("makes poison of an item, however often the only worker is started again", async () => {
    const [worker] = (await fleet(1)) as [WorldWorker];
    await ledger.submit(["a"]);
    for (let round = 1; round <= 5; round++) {
      await worker.ask(1);
      await restart(worker);
    }
    expect([ledger.state.ledger.running.size, poisoned()]).to.deep.equal([0, 1]);
  });

  it("is not counted when the coordinator has ended as well: its machine did", async () => {
    const [worker] = (await fleet(1)) as [WorldWorker];
    await ledger.submit(["a"]);
    for (let round = 1; round <= 6; round++) {
      await worker.ask(1);
      await ledger.lead();
      await restart(worker);
    }
    await worker.ask(1);
    expect(worker.held.map(({ attempt, alone }) => [attempt, alone])).to.deep.equal([[7, false]]);
    expect([ledger.losses, poisoned()]).to.deep.equal([[0], 0]);
  });

  it("is counted when the others go on, and not before that is known", async () => {
    const [one, two, three] = (await fleet(3)) as [WorldWorker, WorldWorker, WorldWorker];
    await ledger.submit(["a", "b"]);
    await one.ask(2);
    await restart(one);
    await two.ask(2);
    expect(two.texts, "what it cannot have begun is given out again").to.deep.equal(["b"]);
    await ledger.watch(4_000, [one, two, three]);
    expect(two.texts).to.deep.equal(["b"]);
    await ledger.watch(KNOWN_MS - 4_000, [one, two, three]);
    expect(two.texts).to.deep.equal(["b", "a"]);
    expect(ledger.losses).to.deep.equal([0, 1]);
  });

  it("is not counted when half of the workers do so, those that come first included", async () => {
    const workers = (await fleet(4)) as [WorldWorker, WorldWorker, WorldWorker, WorldWorker];
    await ledger.submit(["a", "b", "c", "d"]);
    for (let round = 1; round <= 6; round++) {
      for (const worker of workers) if (worker.held.length === 0) await worker.ask(1);
      await restart(workers[0]);
      await ledger.watch(3_000, workers);
      await restart(workers[1]);
      await ledger.watch(LONG_MS, workers);
      for (const worker of workers) await worker.hello();
    }
    for (const worker of workers) if (worker.held.length === 0) await worker.ask(1);
    expect([ledger.losses, poisoned()]).to.deep.equal([[0, 0, 0, 0], 0]);
  });

  it("is not counted together with the silence of others, nor is that", async () => {
    const [one, two, three] = (await fleet(3)) as [WorldWorker, WorldWorker, WorldWorker];
    await ledger.submit(["a", "b"]);
    await one.ask(1);
    await two.ask(1);
    await ledger.watch(250, [three]);
    await restart(one);
    await ledger.watch(7_000, [one, three]);
    await three.ask(2);
    expect(three.texts).to.have.members(["a", "b"]);
    expect(ledger.losses).to.deep.equal([0, 0]);
  });

  it("is counted when it is soon the second time, whoever else it happens to: no fleet restarts that often", async () => {
    const workers = await fleet(2);
    await ledger.submit(["a", "b"]);
    for (let round = 1; round <= 6; round++) {
      for (const worker of workers) await worker.ask(1);
      await ledger.watch(1_000, workers);
      await restart(...workers);
    }
    expect(poisoned()).to.equal(2);
  });

  it("leaves room for other work while it is not known", async () => {
    const [one, two] = (await fleet(2)) as [WorldWorker, WorldWorker];
    await ledger.submit(["a"]);
    await one.ask(1);
    await restart(one);
    await ledger.submit(["b"], { batchNumber: 2 });
    await one.ask(1);
    expect(one.texts).to.deep.equal(["b"]);
    await ledger.watch(KNOWN_MS, [one, two]);
    await two.ask(1);
    expect(two.texts).to.deep.equal(["a"]);
  });

  it("says nothing any more when the next process leaves in good order", async () => {
    const [one, two] = (await fleet(2)) as [WorldWorker, WorldWorker];
    await ledger.submit(["a"]);
    await one.ask(1);
    await restart(one);
    one.state = "Gone";
    await one.beat();
    await two.ask(1);
    expect([two.texts, ledger.losses]).to.deep.equal([["a"], [0]]);
  });

  it("is known no later because its next process opens another session", async () => {
    const [one, two] = (await fleet(2)) as [WorldWorker, WorldWorker];
    await ledger.submit(["a"]);
    await one.ask(1);
    await restart(one);
    await ledger.watch(4_000, [one, two]);
    await one.hello();
    await ledger.watch(KNOWN_MS - 4_000, [one, two]);
    await two.ask(1);
    expect([two.texts, ledger.losses]).to.deep.equal([["a"], [1]]);
  });
});

describe("a worker that leaves, and whose goodbye nobody hears", () => {
  /** A worker falls silent, and is judged so. */
  const SILENT_MS = 6_500;
  let ledger: World;
  let leaving: WorldWorker;
  let other: WorldWorker;
  let third: WorldWorker;

  beforeEach(async () => {
    ledger = await World.start();
    leaving = await ledger.worker(1, { slots: 1 });
    other = await ledger.worker(2);
    third = await ledger.worker(3);
    await ledger.submit(["a", "b"]);
    await leaving.ask(2);
    leaving.state = "Draining";
    await leaving.beat();
  });

  /** The record of the first attempt of each item, and its charge. */
  async function firstAttempts(): Promise<[OutcomeClass | undefined, number][]> {
    const operator = new WorldOperator(ledger);
    const lost = (item: string): number =>
      ledger.state.ledger.running.get(Buffer.from(item, "hex").toString("latin1"))?.row.context.lost ?? 0;
    const told: [OutcomeClass | undefined, number][] = [];
    for (const text of ["a", "b"]) {
      const { item } = await operator.ask((run) => run.getItem({ name: hexOf(text) }));
      told.push([item?.attempts.find(({ attempt }) => attempt === 1)?.outcome, lost(hexOf(text))]);
    }
    return told;
  }

  const PREEMPTED = [
    [OutcomeClass.PREEMPTED, 0],
    [OutcomeClass.PREEMPTED, 0],
  ];

  it("was preempted, whatever it had begun", async () => {
    await ledger.watch(SILENT_MS, [other, third]);
    await other.ask(2);
    expect(other.texts).to.deep.equal(["a", "b"]);
    expect(await firstAttempts()).to.deep.equal(PREEMPTED);
    expect(ledger.state.counters.reassigned).to.equal(0);
  });

  it("was preempted also when the coordinator was started again meanwhile", async () => {
    await ledger.lead();
    for (const worker of [other, third]) await worker.hello();
    await ledger.watch(SILENT_MS, [other, third]);
    await other.ask(2);
    expect(other.texts).to.deep.equal(["a", "b"]);
    expect(await firstAttempts()).to.deep.equal(PREEMPTED);
  });

  it("was preempted also when its next process is heard first", async () => {
    await ledger.watch(1_000, [leaving, other, third]);
    await leaving.startAnew(2);
    await other.ask(2);
    expect(other.texts).to.deep.equal(["a", "b"]);
    expect(await firstAttempts()).to.deep.equal(PREEMPTED);
  });

  it("and said so to nobody, while nobody led, is not held against its items", async () => {
    leaving.state = "Gone";
    await leaving.beat();
    const silent = await ledger.worker(4, { slots: 1 });
    await silent.ask(1);
    expect(silent.texts).to.deep.equal(["a"]);
    await ledger.lead();
    for (const worker of [other, third]) await worker.hello();
    await ledger.watch(SILENT_MS, [other, third]);
    await other.ask(2);
    expect([other.texts, ledger.losses]).to.deep.equal([
      ["a", "b"],
      [0, 0],
    ]);
  });
});
