// A run in the reactor with workers that have two versions of its plugin, and releases of the second one. Time is by hand, and each step is
// compared with a replay (C4).
import assert from "node:assert/strict";
import type { WorldOptions } from "../../../support/world.ts";
import { LEADERSHIP, LIVENESS, TASK_DIGEST, texts, World } from "../../../support/world.ts";
import type { SubmitParts } from "../../../support/world.ts";
import { reportOf } from "../../../support/world-worker.ts";
import type { HeldItem, WorldWorker } from "../../../support/world-worker.ts";
import { replay } from "../../../../src/coordinator/replay.ts";
import type { CoordinatorState } from "../../../../src/coordinator/turn/state.ts";
import type { Store } from "../../../../src/storage/store.ts";
import type { Measure } from "../../../../src/base/measure.ts";
import type { Terms } from "../../../../src/coordinator/release/release.ts";
import type { StageSpec } from "../../../../src/config/release.ts";
import type { ReleaseRequest, ReleaseSteering } from "../../../../src/coordinator/release/operator.ts";
import type { CreatedReleaseAnswer, ReleaseAnswer } from "../../../../src/coordinator/turn/input.ts";
import type { Report, ReportedOutcome } from "../../../../src/coordinator/turn/session-frame.ts";
import { PromotedBy, ReleaseState, StagePhase } from "../../../../src/gen/rollout/v1/release_pb.ts";
import type { ReleaseStatus } from "../../../../src/gen/rollout/v1/release_pb.ts";
import type { Filled } from "../../../../src/coordinator/turn/operator-message.ts";

export const PLUGIN = "words";
export const CANDIDATE_DIGEST = new Uint8Array(32).fill(8);
export const STABLE = { name: PLUGIN, version: "1", taskDigest: TASK_DIGEST };
export const CANDIDATE = {
  name: PLUGIN,
  version: "2",
  taskDigest: CANDIDATE_DIGEST,
};
export const BOTH = [STABLE, CANDIDATE];

export const ALL: StageSpec = {
  kind: "items",
  share: 1,
  minItems: 1,
  minTimeMs: 0,
  maxItems: undefined,
};

export function share(of: number, parts: Partial<StageSpec> = {}): StageSpec {
  return { ...ALL, minItems: 20, ...parts, kind: "items", share: of };
}

export function onWorkers(workers: number, parts: Partial<StageSpec> = {}): StageSpec {
  return {
    minItems: 20,
    minTimeMs: 0,
    maxItems: undefined,
    ...parts,
    kind: "workers",
    workers,
  };
}

/** One stage of half of the items, and then all; errors alone, with a wide margin, so that few items decide. */
export const TERMS: Terms = {
  alpha: 0.05,
  onBreach: "rollback",
  stages: [share(0.5), ALL],
  metrics: [{ kind: "errors", maxWorse: 0.3 }],
};

/** ULIDs that sort as their numbers do. */
export function releaseId(number: number): string {
  return `01R${String(number).padStart(23, "0")}`;
}

/** How an item ends, by what its assignment named. */
export type Behaviour = (
  item: HeldItem,
  isCandidate: boolean,
) => ReportedOutcome | Partial<Report> | undefined;

export class ReleaseRun {
  readonly world: World;
  readonly workers: WorldWorker[] = [];

  private constructor(world: World) {
    this.world = world;
  }

  static async start({
    items = 200,
    parts = {},
    ...options
  }: WorldOptions & {
    items?: number;
    parts?: SubmitParts;
  } = {}): Promise<ReleaseRun> {
    const run = new ReleaseRun(await World.start(options));
    await run.world.submit(texts(items), { plugin: PLUGIN, ...parts });
    return run;
  }

  /** The state of another leader over the same store, which has not heard of this one. */
  static over(store: Store, { nowMs }: { readonly nowMs: number }): Promise<CoordinatorState> {
    return replay(store, {
      ...LEADERSHIP,
      liveness: LIVENESS,
      workersMax: 10,
      nowMs,
    });
  }

  async worker(
    number: number,
    {
      plugins = BOTH,
      slots = 8,
      loadedVersions,
    }: Partial<Pick<WorldWorker, "plugins" | "loadedVersions">> & {
      slots?: number;
    } = {},
  ): Promise<WorldWorker> {
    const worker = await this.world.worker(number, { slots, plugins });
    worker.loadedVersions = loadedVersions;
    await worker.beat();
    this.workers.push(worker);
    return worker;
  }

  create(parts: Partial<ReleaseRequest> = {}, terms: Partial<Terms> = {}): Promise<CreatedReleaseAnswer> {
    const candidate = {
      plugin: PLUGIN,
      version: CANDIDATE.version,
      digest: CANDIDATE_DIGEST,
    };
    const request = {
      ...{ id: releaseId(1), terms: { ...TERMS, ...terms }, candidate },
      ...{ waits: false, isDryRun: false, by: "operator ada", ...parts },
    };
    return this.world.ask((answer) => ({
      kind: "createRelease",
      request,
      answer,
    }));
  }

  async steer(steering: ReleaseSteering, id = ""): Promise<ReleaseAnswer> {
    const answer = await this.world.ask<ReleaseAnswer>((given) => ({
      ...{
        kind: "steerRelease",
        id,
        by: "operator ada",
        steering,
        answer: given,
      },
    }));
    await this.world.settle();
    return answer;
  }

  async status(id = ""): Promise<Filled<ReleaseStatus>> {
    const answer = await this.world.ask<ReleaseAnswer>((given) => ({
      kind: "getRelease",
      id,
      answer: given,
    }));
    assert(answer.kind === "release", `there is no release ${id}`);
    return answer.status;
  }

  async state(): Promise<string> {
    return wordOf(ReleaseState, (await this.status()).state);
  }

  /** The phase of each stage, and by whom it was promoted. */
  async phases(): Promise<string[]> {
    const { stages } = await this.status();
    return stages.map(({ phase, promotedBy }) =>
      [wordOf(StagePhase, phase), promotedBy === undefined ? [] : [wordOf(PromotedBy, promotedBy)]]
        .flat()
        .join(" by "),
    );
  }

  /** Workers ask for items and end them, until nothing comes any more or so many rounds have passed. */
  async work(
    behaviour: Behaviour,
    { rounds = 1, workers = this.workers }: { rounds?: number; workers?: readonly WorldWorker[] } = {},
  ): Promise<void> {
    for (let round = 0; round < rounds; round++) {
      for (const worker of workers) await this.fill(worker);
      for (const worker of workers) await this.end(worker, behaviour);
    }
  }

  async fill(worker: WorldWorker, upTo = 8): Promise<void> {
    if (worker.held.length < upTo) await worker.ask(upTo - worker.held.length);
  }

  /** Ends what the behaviour says something of. */
  async end(worker: WorldWorker, behaviour: Behaviour): Promise<void> {
    const reports = worker.held.flatMap((item): [HeldItem, Report][] => {
      const said = behaviour(item, item.pluginVersion === CANDIDATE.version);
      if (said === undefined) return [];
      const report = "kind" in said ? reportOf(item, said) : { ...reportOf(item), ...said };
      return [[item, { execution: executed(item), ...report }]];
    });
    if (reports.length === 0) return;
    await worker.send(reports.map(([, report]) => report));
    worker.forget(reports.map(([item]) => item));
    await this.world.settle();
  }

  /** Time passes with scans, and the workers beat. */
  watch(byMs: number): Promise<void> {
    return this.world.watch(byMs, this.workers);
  }

  takeTopics(): string[] {
    return this.world
      .takeTopics()
      .filter((topic) => topic.startsWith("release_") || topic === "stage_promoted");
  }
}

/** The name of a constant of an enum. */
function wordOf(constants: Readonly<Record<string, number>>, value: number): string {
  return Object.keys(constants).find((word) => constants[word] === value) ?? assert.fail();
}

function executed({ pluginVersion }: HeldItem, durationMs = 10): NonNullable<Report["execution"]> {
  const version = pluginVersion === undefined || pluginVersion === "" ? STABLE.version : pluginVersion;
  return { pluginVersion: version, startedAtWallMs: 1, durationMs };
}

/** A success in which these numbers were found. */
export function measured(...measures: Measure[]): Partial<Report> {
  return { measures };
}

export const SUCCESS: Partial<Report> = {};
