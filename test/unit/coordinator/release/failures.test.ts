// Failures in the middle of a release, in the reactor and on a clock by hand. The titles are those under which the documents name them.
import { expect } from "chai";
import { failedItems } from "../keys/failed-items.ts";
import { ERROR } from "../../../support/world-worker.ts";
import type { WorldWorker } from "../../../support/world-worker.ts";
import { chosenWorkers } from "../../../../src/coordinator/release/arms.ts";
import { itemKeyOf } from "../../../../src/coordinator/ledger/place.ts";
import { react } from "../../../../src/coordinator/reactor.ts";
import { countsKey, stageKey } from "../../../../src/coordinator/release/records.ts";
import { currentStage } from "../../../../src/coordinator/release/release.ts";
import type { Release } from "../../../../src/coordinator/release/release.ts";
import {
  ALL,
  BOTH,
  CANDIDATE,
  measured,
  onWorkers,
  releaseId,
  ReleaseRun,
  share,
  STABLE,
  SUCCESS,
} from "./release-run.ts";
import type { MetricSpec } from "../../../../src/base/statistics/metric.ts";
import type { Input, ReleaseAnswer } from "../../../../src/coordinator/turn/input.ts";
import type { Behaviour, TERMS } from "./release-run.ts";
import type { WorldOptions } from "../../../support/world.ts";
import { texts } from "../../../support/world.ts";

const good: Behaviour = () => SUCCESS;
const bad: Behaviour = (_, isCandidate) => (isCandidate ? ERROR : SUCCESS);
/** The candidate's attempts go on. */
const hanging: Behaviour = (_, isCandidate) => (isCandidate ? undefined : SUCCESS);

/** A stage that goes on for as long as there are items. */
const ENDLESS = [share(0.5, { minItems: 1_000 }), ALL];

function latestOf(run: ReleaseRun): Release {
  const { latest } = run.world.state.releases;
  if (latest === undefined) throw new Error("there is no release");
  return latest;
}

async function started({
  items = 400,
  workers = 2,
  terms = {},
  ...options
}: WorldOptions & {
  items?: number;
  workers?: number;
  terms?: Partial<typeof TERMS>;
} = {}): Promise<ReleaseRun> {
  const run = await ReleaseRun.start({ items, ...options });
  for (let number = 1; number <= workers; number++) await run.worker(number);
  await run.create({}, terms);
  run.takeTopics();
  return run;
}

/** A new leader, and the workers find their way to it. */
async function takeOver(run: ReleaseRun): Promise<void> {
  await run.world.lead();
  for (const worker of run.workers) await worker.rejoin();
}

/** Works until the verdict asks for a step, whose question is under way when this resolves. */
async function untilAsked(run: ReleaseRun, behaviour: Behaviour): Promise<void> {
  run.world.isLeader = false;
  await run.work(behaviour, { rounds: 10 });
  run.world.isLeader = true;
}

describe("releases and failures", () => {
  it("release failure: the leader dies without resigning, and the next one goes on with the counts", async () => {
    const run = await started({
      terms: { stages: [share(0.5, { minItems: 60 }), ALL] },
    });
    await run.work(good, { rounds: 2 });
    const before = currentStage(latestOf(run)).counts.candidate.judged;
    expect(before).to.be.within(1, 59);
    await takeOver(run);
    expect(currentStage(latestOf(run)).counts.candidate.judged).to.equal(before);
    await run.work(good, { rounds: 12 });
    expect(await run.state()).to.equal("COMPLETED");
    expect(run.takeTopics()).to.deep.equal(["stage_promoted", "release_completed"]);
  });

  it("release failure: the next leader has heard no beat of a worker, and gives it nothing before one", async () => {
    const run = await started({ terms: { stages: ENDLESS } });
    const other = await run.worker(3, { plugins: [CANDIDATE] });
    const all = [...run.workers];
    await run.world.lead();
    for (const worker of all) {
      await worker.hello([]);
      await worker.ask(8);
      expect(worker.held, "its versions are not known").to.deep.equal([]);
    }
    for (const worker of all) await worker.beat();
    expect(other.held, "it has another task than the run's for its own").to.deep.equal([]);
    for (const { held } of all.slice(0, 2)) {
      expect(held).to.have.length(8);
      const tickets = held.map(({ id }) => run.world.state.ledger.running.get(itemKeyOf(id))?.ticket);
      expect(tickets, "each is judged").not.to.include(0);
    }
  });

  for (const [behaviour, end] of [
    [good, "COMPLETED"],
    [bad, "ROLLED_BACK"],
  ] as const)
    it(`release failure: the store cannot be read, and nothing happens until it can (${end.toLowerCase()})`, async () => {
      const run = await started();
      run.world.isLeader = false;
      await run.work(behaviour, { rounds: 8 });
      await run.watch(20_000);
      expect(await run.state()).to.equal("ROLLING");
      expect(run.takeTopics()).to.deep.equal([]);
      run.world.isLeader = true;
      await run.watch(10_000);
      expect(await run.state()).to.equal(end);
    });

  it("release failure: both promoters have missed it, and it is decided within ten seconds", async () => {
    const run = await started();
    await untilAsked(run, bad);
    expect(await run.state()).to.equal("ROLLING");
    // Nothing is judged any more: only the batch promoter looks.
    await run.watch(10_000);
    expect(await run.state()).to.equal("ROLLED_BACK");
    expect(run.takeTopics()).to.deep.equal(["release_rolled_back"]);
  });

  it("release failure: two leaders overlap, and one of them promotes", async () => {
    const run = await started({
      terms: { stages: [share(0.25), share(0.5), ALL] },
    });
    await untilAsked(run, good);
    const { world } = run;
    const other = await ReleaseRun.over(world.store, world);
    const confirmed = { kind: "leadershipConfirmed", leads: true } as const;
    const time = { nowMs: world.nowMs, wallMs: world.wallMs };
    const [one, two] = [world.state, other].map((state) => react(state, [confirmed], time).writes);
    const key = stageKey(releaseId(1), 1);
    expect(one?.expect.map((row) => row.key)).to.include(key);
    // Neither is fenced by its epoch here: the row of the stage decides.
    const commit = (writes: typeof one) =>
      world.store.commit({
        puts: [],
        deletes: [],
        durability: "sync",
        expect: [],
        ...writes,
      });
    expect((await commit(one)).kind).to.equal("committed");
    expect(await commit(two)).to.deep.equal({ kind: "conflict", key });
  });

  it("release failure: the leader is killed between verdict and commit, and the next one decides again", async () => {
    const run = await started();
    await untilAsked(run, good);
    react(run.world.state, [{ kind: "leadershipConfirmed", leads: true }], run.world);
    await takeOver(run);
    expect(await run.phases()).to.deep.equal(["ACTIVE", "WAITING"]);
    await run.watch(11_000);
    expect(await run.state()).to.equal("COMPLETED");
    expect(run.takeTopics()).to.deep.equal(["stage_promoted", "release_completed"]);
  });

  it("release failure: the leader is killed between commit and event, and the event is not said twice", async () => {
    const run = await started();
    await untilAsked(run, good);
    run.world.answerLate();
    await run.world.step({ kind: "leadershipConfirmed", leads: true });
    await takeOver(run);
    expect(await run.state()).to.equal("COMPLETED");
    await run.watch(21_000);
    expect(run.takeTopics()).to.deep.equal([]);
  });

  it("release failure: the leader is killed in each stage, and what was promoted stays promoted", async () => {
    const stages = [share(0.25), share(0.5), share(0.75), ALL];
    const run = await started({ items: 800, terms: { stages } });
    const seen: (number | undefined)[][] = [];
    for (let round = 0; round < 40 && (await run.state()) === "ROLLING"; round++) {
      await run.work(good);
      await takeOver(run);
      seen.push((await run.status()).stages.map(({ promotedAtMs }) => promotedAtMs));
      run.world.pass(10);
    }
    expect(await run.state()).to.equal("COMPLETED");
    for (let stage = 0; stage < stages.length; stage++)
      expect(new Set(seen.map((row) => row[stage]).filter((atMs) => atMs !== undefined)).size).to.equal(1);
  });

  it("release failure: the candidate kills processes, and one attempt of each counts in a turn", async () => {
    const run = await started({
      terms: {
        stages: [share(0.9), ALL],
        metrics: [{ kind: "errors", maxWorse: 0.9 }],
      },
    });
    for (const worker of run.workers) await run.fill(worker);
    const tried = run.workers
      .flatMap(({ held }) => held)
      .filter(({ pluginVersion }) => pluginVersion === "2");
    expect(tried.length).to.be.greaterThan(4);
    const crash: Behaviour = (_, isCandidate) =>
      isCandidate ? { kind: "crash_shared", message: "the server is gone" } : undefined;
    for (const worker of run.workers) await run.end(worker, crash);
    const [stage] = (await run.status()).stages;
    expect([stage?.tried, stage?.judged]).to.deep.equal([tried.length, 2]);
    await run.work(good, { rounds: 30 });
    const { done, failed } = await run.world.view();
    expect([done, failed]).to.deep.equal([400, 0]);
  });

  it("release failure: the candidate kills workers, and no item is charged", async () => {
    const run = await started({
      workers: 4,
      items: 60,
      terms: { stages: ENDLESS },
    });
    const [victim] = run.workers as [WorldWorker, ...WorldWorker[]];
    await run.fill(victim);
    const tried = victim.held.filter(({ pluginVersion }) => pluginVersion === "2");
    const others = run.workers.slice(1);
    await run.world.watch(6_000, others);
    expect(run.world.stateOf(victim.id)).to.equal("Ready+Failed");
    await run.work(good, { workers: others, rounds: 6 });
    const { done, failed } = await run.world.view();
    expect([done, failed]).to.deep.equal([60, 0]);
    const [stage] = (await run.status()).stages;
    expect(stage?.judged).to.be.at.least(tried.length);
    expect((await run.status()).metrics[0]?.candidate?.value).to.be.greaterThan(0);
  });

  it("release failure: the candidate hangs, and is not promoted", async () => {
    const run = await started();
    const hung = new Map<string, boolean>();
    const hangs = (text: string): boolean => {
      if (!hung.has(text)) hung.set(text, hung.size % 5 === 0);
      return hung.get(text) === true;
    };
    await run.work(({ text }, isCandidate) => (isCandidate && hangs(text) ? undefined : SUCCESS), {
      rounds: 20,
    });
    await run.watch(11_000);
    expect((await run.status()).reason).to.match(
      /^\d+ of the first \d+ attempts of the candidate have not ended$/,
    );
    await run.work(hanging, { rounds: 2 });
    expect(await run.state()).to.equal("ROLLING");
  });

  const score: MetricSpec = {
    ...({
      kind: "number",
      name: "score",
      pointer: "/score",
      low: 0,
      high: 10,
      better: "higher",
    } as const),
    maxWorse: 5,
  };
  for (const [what, measure, reason] of [
    ["prints no JSON", "missing", /^\d+ of \d+ successes of candidate have no number for score$/],
    ["prints NaN", "not a number", /^\d+ of \d+ successes of candidate have no number for score$/],
  ] as const)
    it(`release failure: the candidate ${what}, and is not promoted`, async () => {
      const run = await started({ items: 300, terms: { metrics: [score] } });
      await run.work((_, isCandidate) => measured(isCandidate ? measure : 7), {
        rounds: 20,
      });
      await run.watch(11_000);
      expect(await run.state()).to.equal("ROLLING");
      expect((await run.status()).reason).to.match(reason);
    });

  it("release failure: the candidate's numbers are out of range, and count as the end of the range", async () => {
    const run = await started({
      items: 300,
      terms: { stages: ENDLESS, metrics: [score] },
    });
    await run.work((_, isCandidate) => measured(isCandidate ? 1e300 : 7), {
      rounds: 10,
    });
    const [metric] = (await run.status()).metrics;
    expect(metric?.candidate?.value).to.equal(10);
    expect(metric?.candidate?.clipped).to.equal(metric?.candidate?.n);
  });

  it("release failure: a worker hot-reloads in the middle, and both of its versions of the old task are stable", async () => {
    const run = await started();
    const [worker] = run.workers as [WorldWorker];
    await run.work(good);
    worker.plugins = [{ ...STABLE, version: "1.1" }, CANDIDATE];
    await worker.beat();
    await run.work(good, { rounds: 12 });
    expect(await run.state()).to.equal("COMPLETED");
  });

  it("release failure: the candidate's file is another on one worker, which gets no item of it", async () => {
    const run = await started({ workers: 1 });
    const other = await run.worker(2, {
      plugins: [STABLE, { ...CANDIDATE, taskDigest: new Uint8Array(32).fill(9) }],
    });
    await run.work(good, { rounds: 3 });
    const versions = new Set(
      other.given.flatMap(({ items }) => items.map(({ pluginVersion }) => pluginVersion)),
    );
    expect(versions).to.deep.equal(new Set([""]));
    expect((await run.status()).workers).to.deep.include({
      withCandidate: 1,
      ready: 2,
    });
  });

  it("release failure: all workers with the candidate vanish, and the run goes on without it", async () => {
    const run = await started({ items: 100 });
    const last = await run.worker(3, { plugins: [STABLE] });
    await run.world.watch(6_000, [last]);
    await run.world.watch(6_000, [last]);
    expect(run.takeTopics(), "said once").to.deep.equal(["release_waits_for_workers"]);
    await run.world.lead();
    await last.rejoin();
    await run.world.watch(6_000, [last]);
    expect(run.takeTopics(), "not said again by the next leader").to.deep.equal([]);
    await run.work(good, { workers: [last], rounds: 14 });
    expect((await run.world.view()).done).to.equal(100);
    expect(await run.state()).to.equal("ROLLING");
    expect((await run.status()).reason).to.equal("no ready worker has both versions");
  });

  it("release failure: the workers outside of a stage are cordoned, and items that are not for trial go on", async () => {
    const run = await ReleaseRun.start({ items: 60 });
    for (const number of [1, 2, 3]) await run.worker(number);
    const { world, workers } = run;
    const chosen = chosenWorkers(releaseId(1), [...world.state.workers.values()], { count: 2, ready: 3 });
    const inside = workers.filter(({ id }) => chosen.has(id));
    const outside = workers.filter(({ id }) => !chosen.has(id));
    let failures = 0;
    await run.work(() => (failures++ < 4 ? ERROR : undefined), { workers: outside });
    await run.work(good, { workers: inside });
    await run.create({}, { stages: [onWorkers(2, { minItems: 1_000 }), ALL] });
    world.takeTopics();
    await run.work(() => ERROR, { workers: outside });
    expect(world.takeTopics()).to.include("worker_cordoned");
    // The cordoned one comes to try one item in that time, and gets what nobody has failed.
    for (let round = 0; round < 5; round++) {
      await run.watch(4_000);
      await run.work(good, { workers: inside });
    }
    expect((await world.view()).done).to.equal(60);
  });

  it("release failure: the one worker outside of a stage fails items, and gets them again before their time for another is over", async () => {
    const run = await ReleaseRun.start({ items: 30 });
    for (const number of [1, 2, 3]) await run.worker(number, { slots: 2 });
    const { world, workers } = run;
    const chosen = chosenWorkers(releaseId(1), [...world.state.workers.values()], { count: 2, ready: 3 });
    const outside = workers.filter(({ id }) => !chosen.has(id));
    const inside = workers.filter(({ id }) => chosen.has(id));
    await run.create({}, { stages: [onWorkers(2, { minItems: 1_000 }), ALL] });
    await run.work(() => ERROR, { workers: outside });
    for (let round = 0; round < 5; round++) {
      await run.watch(4_000);
      await run.work(good, { workers: [...inside, ...outside] });
    }
    expect((await world.view()).done).to.equal(30);
  });

  it("release failure: stable is bad too, and the candidate is not blamed for that", async () => {
    const run = await started({ budgets: { maxAttempts: 1 }, limits: {} });
    let count = 0;
    await run.work(() => (count++ % 2 === 0 ? ERROR : SUCCESS), { rounds: 12 });
    expect(await run.state()).not.to.equal("ROLLED_BACK");
  });

  it("release failure: an abort during a promotion: the first in the turn counts", async () => {
    for (const isAbortFirst of [true, false]) {
      const run = await started();
      await untilAsked(run, good);
      const answers: string[] = [];
      const abort: Input = {
        ...({ kind: "steerRelease", id: "", by: "operator ada" } as const),
        steering: { action: "abort", reason: "enough" },
        answer: (answer: ReleaseAnswer) => void answers.push(answer.kind),
      };
      const confirmed = { kind: "leadershipConfirmed", leads: true } as const;
      await run.world.step(...(isAbortFirst ? [abort, confirmed] : [confirmed, abort]));
      expect(await run.state()).to.equal(isAbortFirst ? "ABORTED" : "COMPLETED");
      expect(answers).to.deep.equal([isAbortFirst ? "release" : "refused"]);
    }
  });

  it("release failure: the run is paused and resumed, sealed and over in the middle", async () => {
    const run = await started({
      items: 60,
      terms: { stages: [share(0.5, { minItems: 1_000 }), ALL] },
    });
    await run.work(good);
    await run.world.step({
      kind: "pause",
      reason: "lunch",
      answer: () => undefined,
    });
    await run.work(good);
    const judged = currentStage(latestOf(run)).counts.candidate.judged;
    await run.work(good, { rounds: 2 });
    expect(currentStage(latestOf(run)).counts.candidate.judged).to.equal(judged);
    await run.world.step({ kind: "resume", answer: () => undefined });
    await run.world.seal();
    await run.work(good, { rounds: 10 });
    await run.world.settle();
    expect(await run.state()).to.equal("ENDED");
    expect(run.takeTopics()).to.deep.equal(["release_ended"]);
    expect(await run.phases()).to.deep.equal(["ABANDONED", "ABANDONED"]);
  });

  it("release failure: the run is cancelled in the middle", async () => {
    const run = await started();
    await run.work(good);
    await run.world.step({ kind: "cancel", answer: () => undefined });
    await run.world.settle();
    expect(await run.state()).to.equal("ENDED");
  });

  it("release failure: several releases one after another, each with arms of its own", async () => {
    const run = await started({ items: 900 });
    await run.work(bad, { rounds: 8 });
    expect(await run.state()).to.equal("ROLLED_BACK");
    const again = await run.create({ id: releaseId(2) });
    expect(again.kind).to.equal("created");
    await run.work(good, { rounds: 14 });
    expect([await run.state(), latestOf(run).id]).to.deep.equal(["COMPLETED", releaseId(2)]);
    const next = {
      ...CANDIDATE,
      version: "3",
      taskDigest: new Uint8Array(32).fill(10),
    };
    for (const worker of run.workers) {
      worker.plugins = [...BOTH, next];
      await worker.beat();
    }
    const candidate = {
      plugin: next.name,
      version: next.version,
      digest: next.taskDigest,
    };
    expect((await run.create({ id: releaseId(3), candidate })).kind).to.equal("created");
    await run.work((item) => (item.pluginVersion === "3" ? ERROR : SUCCESS), {
      rounds: 30,
    });
    expect([await run.state(), latestOf(run).stable.version]).to.deep.equal(["ROLLED_BACK", "2"]);
    const { failed } = await run.world.view();
    expect(failed).to.equal(0);
  });

  for (const items of [0, 1, 99])
    it(`release failure: a run with ${items} items left`, async () => {
      const run = await ReleaseRun.start({ items: items + 8 });
      await run.worker(1);
      await run.work(good);
      expect((await run.world.view()).pending).to.equal(items);
      expect((await run.create()).kind).to.equal("created");
      await run.work(good, { rounds: 16 });
      expect((await run.world.view()).done).to.equal(items + 8);
      expect(await run.state()).to.equal(items === 99 ? "COMPLETED" : "ROLLING");
      await run.world.submit(texts(8, "more"), {
        plugin: STABLE.name,
        batchNumber: 2,
      });
      await run.world.seal();
      await run.work(good, { rounds: 3 });
      expect(await run.state()).to.equal(items === 99 ? "COMPLETED" : "ENDED");
    });

  it("release failure: a failed item is retried in the middle, and is stable's for the rest of that release", async () => {
    const run = await started({ items: 30, budgets: { maxAttempts: 1 }, terms: { stages: ENDLESS } });
    await run.work(() => ERROR, { rounds: 12 });
    expect((await run.world.view()).failed, "tried or not, one charged attempt each").to.equal(30);
    const judged = (): number[] => {
      const { stable, candidate } = currentStage(latestOf(run)).counts;
      return [stable.judged, candidate.judged];
    };
    const before = judged();
    expect(before[0] ?? 0).to.be.greaterThan(0);
    expect(before[1] ?? 0).to.be.greaterThan(0);
    const failed = await failedItems(run.world);
    await run.world.step({ kind: "retry", failed, answer: () => undefined });
    await takeOver(run);
    const versions: (string | undefined)[] = [];
    const noted: Behaviour = ({ pluginVersion }) => {
      versions.push(pluginVersion);
      return SUCCESS;
    };
    await run.work(noted);
    expect(versions.length).to.equal(16);
    expect(versions, "the candidate gets none").not.to.include("2");
    expect(judged(), "each item is judged once").to.deep.equal(before);
    await run.steer({ action: "abort", reason: "" });
    await run.create({ id: releaseId(2) }, { stages: ENDLESS });
    await run.work(noted, { rounds: 2 });
    expect((await run.world.view()).done).to.equal(30);
    expect(versions.slice(16), "another release tries what is left").to.include("2");
  });

  it("release failure: a lost worker of a stage of workers counts once", async () => {
    const terms = {
      stages: [onWorkers(1), ALL],
      metrics: [{ kind: "errors", maxWorse: 0.9 }],
    } as const;
    const run = await started({ workers: 3, terms });
    await run.world.scan();
    for (const worker of run.workers) await run.fill(worker);
    const chosen = run.workers.filter(({ held }) => held.some(({ pluginVersion }) => pluginVersion === "2"));
    expect(chosen).to.have.length(1);
    const [lost] = chosen as [WorldWorker];
    expect(new Set(lost.held.map(({ pluginVersion }) => pluginVersion))).to.deep.equal(new Set(["2"]));
    await run.world.watch(
      6_000,
      run.workers.filter((worker) => worker !== lost),
    );
    expect(currentStage(latestOf(run)).counts.candidate.judged).to.equal(1);
  });

  it("release failure: stored counts that are not those that were counted end the process", async () => {
    const run = await started();
    await run.work(good);
    const key = countsKey(releaseId(1), 1);
    const old = await run.world.store.get(key);
    await run.work(good);
    await run.world.store.commit({
      ...{
        puts: [{ key, value: old ?? new Uint8Array() }],
        deletes: [],
        expect: [],
        durability: "sync",
      },
    });
    run.world.pass(10_000);
    await run.world.scanUnchecked();
    expect(String(run.world.fatal[0])).to.match(/the counts of a stage are not those that were counted/);
  });
});
