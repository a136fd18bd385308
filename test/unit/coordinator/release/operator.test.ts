// The questions of operators about releases: each refusal, and each decision twice.
import { expect } from "chai";
import { PowerLossStore } from "../../../support/power-loss-store.ts";
import { TASK_DIGEST, World } from "../../../support/world.ts";
import {
  ALL,
  CANDIDATE,
  CANDIDATE_DIGEST,
  onWorkers,
  PLUGIN,
  releaseId,
  ReleaseRun,
  share,
  STABLE,
  SUCCESS,
} from "./release-run.ts";
import type { Behaviour } from "./release-run.ts";
import type { Input } from "../../../../src/coordinator/turn/input.ts";
import type { ReleaseRequest } from "../../../../src/coordinator/release/operator.ts";

async function ready({ workers = 2, items = 40 } = {}): Promise<ReleaseRun> {
  const run = await ReleaseRun.start({ items });
  for (let number = 1; number <= workers; number++) await run.worker(number);
  return run;
}

/** The code of a refusal, or `created`. */
async function outcomeOf(run: ReleaseRun, ...asked: Parameters<ReleaseRun["create"]>): Promise<string> {
  const before = run.world.state.releases.latest;
  const answer = await run.create(...asked);
  if (answer.kind === "created") return "created";
  expect(run.world.state.releases.latest, "nothing has begun").to.equal(before);
  return answer.code;
}

const candidate = (parts: Partial<ReleaseRequest["candidate"]>): Partial<ReleaseRequest> => ({
  candidate: {
    plugin: PLUGIN,
    version: "2",
    digest: CANDIDATE_DIGEST,
    ...parts,
  },
});

describe("a release is refused", () => {
  it("of another plugin, of the version or of the task that is in use", async () => {
    const run = await ready();
    expect(await outcomeOf(run, candidate({ plugin: "other" }))).to.equal("release_plugin_other");
    expect(await outcomeOf(run, candidate({ version: "1" }))).to.equal("release_version_in_use");
    expect(await outcomeOf(run, candidate({ digest: TASK_DIGEST }))).to.equal("release_version_in_use");
  });

  it("where no worker has the candidate, unless it is to wait", async () => {
    const run = await ReleaseRun.start();
    await run.worker(1, { plugins: [STABLE] });
    expect(await outcomeOf(run)).to.equal("release_no_worker");
    await run.worker(2, {
      plugins: [STABLE, { ...CANDIDATE, taskDigest: new Uint8Array(32) }],
    });
    expect(await outcomeOf(run)).to.equal("release_other_file");
    expect(await outcomeOf(run, { waits: true })).to.equal("created");
  });

  it("beside another one that is not over", async () => {
    const run = await ready();
    expect(await outcomeOf(run)).to.equal("created");
    expect(await outcomeOf(run, { id: releaseId(2) })).to.equal("release_not_over");
    expect(await outcomeOf(run), "the same one again").to.equal("created");
  });

  it("before the first item, and where nothing is left", async () => {
    const world = await World.start();
    const request = {
      id: releaseId(1),
      waits: true,
      isDryRun: false,
      by: "",
      ...candidate({}),
    };
    const answer = await world.ask<{ kind: string; code?: string }>((given) => ({
      kind: "createRelease",
      request: {
        ...request,
        terms: {
          alpha: 0.05,
          onBreach: "rollback",
          stages: [share(0.5), ALL],
          metrics: [],
        },
      } as ReleaseRequest,
      answer: given,
    }));
    expect(answer.code).to.equal("release_no_items");
    const run = await ready({ items: 8 });
    await run.work(() => SUCCESS);
    await run.world.seal();
    expect(await outcomeOf(run)).to.equal("release_run_over");
  });

  it("where all items that are left have keys", async () => {
    const run = await ReleaseRun.start({
      items: 20,
      parts: { keyOf: (text) => text },
    });
    await run.worker(1);
    expect(await outcomeOf(run)).to.equal("release_keyed_only");
  });

  it("with as many workers as there are, and with a share where a worker has one version open", async () => {
    const run = await ready();
    expect(await outcomeOf(run, {}, { stages: [onWorkers(2), ALL] })).to.equal("release_workers_few");
    await run.worker(3, { loadedVersions: 1 });
    expect(await outcomeOf(run)).to.equal("release_one_version");
    expect(await outcomeOf(run, {}, { stages: [onWorkers(2), ALL] })).to.equal("created");
  });

  it("in a dry run for the same reasons, and otherwise nothing is written", async () => {
    const run = await ready();
    expect(await outcomeOf(run, { isDryRun: true })).to.equal("created");
    expect(run.world.written.puts).to.deep.equal([]);
    expect(run.world.state.releases.latest).to.equal(undefined);
  });
});

describe("an operator", () => {
  const pause = { action: "pause", reason: "lunch" } as const;

  it("pauses and resumes a release, once each", async () => {
    const run = await ready({ items: 200 });
    await run.create();
    run.takeTopics();
    for (let twice = 0; twice < 2; twice++) expect((await run.steer(pause)).kind).to.equal("release");
    expect([await run.state(), (await run.status()).reason, (await run.status()).by]).to.deep.equal([
      "HELD",
      "lunch",
      "operator ada",
    ]);
    await run.work(() => SUCCESS, { rounds: 2 });
    const [stage] = (await run.status()).stages;
    expect(stage?.tried, "nothing new to the candidate").to.equal(0);
    for (let twice = 0; twice < 2; twice++) await run.steer({ action: "resume" });
    expect(await run.state()).to.equal("ROLLING");
    expect(run.takeTopics()).to.deep.equal(["release_held", "release_resumed"]);
  });

  it("has what the candidate has not started handed back, and lets it go on when the release does", async () => {
    const run = await ready({ items: 200, workers: 1 });
    await run.create();
    const [worker] = run.workers;
    if (worker === undefined) throw new Error("there is a worker");
    await worker.ask(16);
    const tried = worker.held.filter(({ pluginVersion }) => pluginVersion === "2");
    await run.steer(pause);
    const recalled = worker.framesOf("recall").at(-1)?.attempts ?? [];
    expect(recalled.map(({ id }) => Buffer.from(id).toString("hex")).sort()).to.deep.equal(
      tried.map(({ id }) => Buffer.from(id).toString("hex")).sort(),
    );
    await worker.handBack(tried.slice(2));
    await run.end(worker, (_, isCandidate) =>
      isCandidate ? { kind: "error", message: "it broke" } : undefined,
    );
    const [stage] = (await run.status()).stages;
    expect([stage?.judged, stage?.open]).to.deep.equal([2, 0]);
    const context = run.world.contextOf(tried[0]);
    expect(context, "done by the old version, or waiting for it").to.satisfy(
      (at: typeof context) => at === undefined || at.trial === "",
    );
  });

  it("has a single item that the candidate has not started handed back", async () => {
    const run = await ready({ items: 200, workers: 1 });
    await run.create();
    const [worker] = run.workers;
    if (worker === undefined) throw new Error("there is a worker");
    const tried = (): number => worker.held.filter(({ pluginVersion }) => pluginVersion === "2").length;
    while (tried() === 0) await worker.ask(1);
    await run.steer(pause);
    expect(worker.framesOf("recall").at(-1)?.attempts).to.have.length(1);
  });

  it("promotes a stage, and only once however often that is said", async () => {
    const run = await ready({ items: 200 });
    await run.create(
      {},
      {
        stages: [share(0.1, { minItems: 100 }), share(0.5, { minItems: 100 }), ALL],
      },
    );
    for (let twice = 0; twice < 2; twice++)
      expect((await run.steer({ action: "promote", stage: 1 })).kind).to.equal("release");
    expect(await run.phases()).to.deep.equal(["PROMOTED by OPERATOR", "ACTIVE", "WAITING"]);
    const early = await run.steer({ action: "promote", stage: 3 });
    expect(early.kind === "refused" && early.code).to.equal("release_stage_waits");
    await run.steer({ action: "promote", stage: 2 });
    expect(await run.state()).to.equal("COMPLETED");
    expect((await run.steer({ action: "promote", stage: 2 })).kind).to.equal("release");
    const abort = await run.steer({ action: "abort", reason: "" });
    expect(abort.kind === "refused" && abort.code).to.equal("release_completed");
  });

  it("creates and promotes in one turn: what the turn has written is expected of nobody", async () => {
    const run = await ready({ items: 200 });
    await run.create({}, { stages: [share(0.1), share(0.5), ALL] });
    const promote = (stage: number): Input => ({
      ...({ kind: "steerRelease", id: "", by: "ada" } as const),
      steering: { action: "promote", stage },
      answer: () => undefined,
    });
    await run.world.step(promote(1), promote(2));
    expect(await run.state()).to.equal("COMPLETED");
  });

  it("aborts a release, and one that is over is answered as it is", async () => {
    const run = await ready({ items: 200 });
    await run.create();
    for (let twice = 0; twice < 2; twice++)
      expect((await run.steer({ action: "abort", reason: "enough" })).kind).to.equal("release");
    expect(await run.state()).to.equal("ABORTED");
    const late = await run.steer(pause);
    expect(late.kind === "refused" && late.code).to.equal("release_over");
    const unknown = await run.steer(pause, releaseId(7));
    expect(unknown.kind === "refused" && unknown.code).to.equal("release_unknown");
    const none = await (await ready({ items: 2 })).steer(pause, "");
    expect(none).to.deep.include({ code: "release_unknown", params: { release: "yet" } });
  });

  it("holds a release that a breach holds, and promotes it all the same", async () => {
    const run = await ready({ items: 400 });
    await run.create({}, { onBreach: "hold" });
    await run.work((_, isCandidate) => (isCandidate ? { kind: "error", message: "it broke" } : SUCCESS), {
      rounds: 8,
    });
    expect(await run.state()).to.equal("HELD");
    await run.steer({ action: "promote", stage: 1 });
    expect(await run.state()).to.equal("COMPLETED");
  });
});

describe("workers with several versions", () => {
  it("that have another task than the run's get nothing", async () => {
    const run = await ReleaseRun.start();
    const other = await run.worker(1, { plugins: [CANDIDATE] });
    const untold = await run.worker(2, {
      plugins: [{ name: PLUGIN, version: "0" }],
    });
    await run.fill(other);
    await run.fill(untold);
    expect([other.held.length, untold.held.length]).to.deep.equal([0, 8]);
  });

  it("get every item of the new version when a release is complete, and others none", async () => {
    const run = await ready({ items: 200, workers: 1 });
    const old = await run.worker(2, { plugins: [STABLE] });
    const only = await run.worker(3, { plugins: [CANDIDATE] });
    const untold = await run.worker(4, {
      plugins: [{ name: PLUGIN, version: "1" }],
    });
    await run.create();
    await run.steer({ action: "promote", stage: 1 });
    for (const worker of run.workers) await run.fill(worker);
    expect([
      run.workers[0]?.held.length,
      old.held.length,
      only.held.length,
      untold.held.length,
    ]).to.deep.equal([8, 0, 8, 0]);
    expect(new Set(only.held.map(({ pluginVersion }) => pluginVersion))).to.deep.equal(new Set(["2"]));
  });

  it("that hand a version back are not offered it again before their next beat", async () => {
    const run = await ready({ items: 200, workers: 1 });
    await run.create({}, { stages: [share(0.9), ALL] });
    const [worker] = run.workers;
    if (worker === undefined) throw new Error("there is a worker");
    await run.fill(worker);
    const tried = worker.held.filter(({ pluginVersion }) => pluginVersion === "2");
    await worker.handBack(tried);
    await run.fill(worker);
    expect(new Set(worker.held.map(({ pluginVersion }) => pluginVersion))).to.deep.equal(new Set([""]));
    await run.end(worker, () => SUCCESS);
    await worker.beat();
    await run.fill(worker);
    expect(new Set(worker.held.map(({ pluginVersion }) => pluginVersion))).to.include("2");
  });

  it("get items with keys of the old version until the release is complete", async () => {
    const run = await ReleaseRun.start({
      items: 40,
      parts: { keyOf: (text) => (text.endsWith("1") ? text : "") },
    });
    await run.worker(1);
    await run.create({}, { stages: [share(0.99, { minItems: 1_000 }), ALL] });
    await run.work(() => SUCCESS, { rounds: 8 });
    const keyed =
      run.workers[0]?.given.flatMap(({ items }) => items).filter(({ keyed: key }) => key !== undefined) ?? [];
    expect(keyed.length).to.be.greaterThan(2);
    expect(new Set(keyed.map(({ pluginVersion }) => pluginVersion))).to.deep.equal(new Set([""]));
  });

  it("of a stage of workers have one version each, and an item that was tried goes to another one", async () => {
    const run = await ready({ items: 120, workers: 3 });
    const stages = [onWorkers(1, { minItems: 1_000 }), ALL];
    await run.create({}, { stages, metrics: [{ kind: "errors", maxWorse: 0.99 }] });
    await run.world.scan();
    for (const worker of run.workers) await run.fill(worker);
    const chosen = run.workers.filter(({ held }) => held.some(({ pluginVersion }) => pluginVersion === "2"));
    expect(chosen).to.have.length(1);
    const broken: Behaviour = (_, isCandidate) =>
      isCandidate ? { kind: "error", message: "it broke" } : SUCCESS;
    // Alone it would be the first to be offered what it has just failed.
    await run.work(broken, { workers: chosen, rounds: 3 });
    await run.work(broken, { rounds: 12 });
    const versions = run.workers.map(({ given }) => [
      ...new Set(given.flatMap(({ items }) => items.map(({ pluginVersion }) => pluginVersion))),
    ]);
    expect(versions.map((of) => of.length)).to.deep.equal([1, 1, 1]);
    expect(versions.flat().sort()).to.deep.equal(["", "", "2"]);
    await run.work(() => SUCCESS, { rounds: 12 });
    const { done, failed } = await run.world.view();
    expect([done, failed]).to.deep.equal([120, 0]);
  });

  it("state attempts of the candidate after a loss of power, which are adopted as trials", async () => {
    const run = await ReleaseRun.start({
      items: 40,
      store: new PowerLossStore(),
    });
    await run.worker(1);
    await run.create({}, { stages: [share(0.5, { minItems: 1_000 }), ALL] });
    const [worker] = run.workers;
    if (worker === undefined) throw new Error("there is a worker");
    await run.fill(worker);
    const tried = worker.held.filter(({ pluginVersion }) => pluginVersion === "2");
    expect(tried).not.to.deep.equal([]);
    await run.world.losePower();
    expect(await run.world.countUnder("running/"), "the assignments are forgotten").to.equal(0);
    expect(await worker.reconnect()).not.to.include(false);
    expect(run.world.contextOf(tried[0])?.trial).to.equal(releaseId(1));
    await run.end(worker, (_, isCandidate) =>
      isCandidate ? { kind: "error", message: "it broke" } : SUCCESS,
    );
    const [stage] = (await run.status()).stages;
    expect([stage?.judged, stage?.open], "judged by nobody, and closed").to.deep.equal([0, 0]);
    await run.work(() => SUCCESS, { rounds: 8 });
    expect((await run.world.view()).failed).to.equal(0);
  });

  it("state attempts of a candidate that an older copy of the store knows nothing of: they cost their items nothing", async () => {
    const run = await ReleaseRun.start({
      items: 40,
      store: new PowerLossStore(),
      budgets: { maxAttempts: 1 },
    });
    await run.worker(1);
    const copy = await run.world.store.scan({ from: "!", to: "~", limit: 10_000 });
    await run.create({}, { stages: [share(0.5, { minItems: 1_000 }), ALL] });
    const [worker] = run.workers;
    if (worker === undefined) throw new Error("there is a worker");
    await run.fill(worker);
    const tried = worker.held.filter(({ pluginVersion }) => pluginVersion === "2");
    expect(tried.length).to.be.greaterThan(1);
    await run.world.lead(new PowerLossStore(copy));
    expect(run.world.state.releases.latest).to.equal(undefined);
    expect(await worker.reconnect()).not.to.include(false);
    expect(tried.map((item) => run.world.contextOf(item)?.trial)).not.to.include("");
    // Attempts that have begun end, for better or worse.
    await run.end(worker, (item, isCandidate) =>
      isCandidate && item !== tried[0] ? { kind: "error", message: "it broke" } : SUCCESS,
    );
    const { failed, pending, done } = await run.world.view();
    expect([failed, done, pending]).to.deep.equal([0, 8 - (tried.length - 1), 32 + tried.length - 1]);
    await run.work(() => SUCCESS, { rounds: 8 });
    expect((await run.world.view()).done).to.equal(40);
  });

  it("have all of this also without a single row where there is no release", async () => {
    const run = await ready({ items: 40 });
    await run.work(() => SUCCESS, { rounds: 4 });
    expect(await run.world.countUnder("releases/")).to.equal(0);
    expect(await run.world.store.get("meta/releases")).to.equal(undefined);
    const frames = run.workers.flatMap(({ given }) => given);
    expect(new Set(frames.map(({ pointers }) => pointers))).to.deep.equal(new Set([undefined]));
  });
});
