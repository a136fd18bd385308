// Counts of releases against a log of everything that was given out and reported: recounted from that log, by rules that are written down
// here a second time, they are those in the store, whatever ends, whoever leads and whichever stage is open.
import { expect } from "chai";
import { seededRandom } from "../../../../src/base/random.ts";
import type { Random } from "../../../../src/base/random.ts";
import { countsKey, countsRecord } from "../../../../src/coordinator/release/records.ts";
import { currentStage } from "../../../../src/coordinator/release/release.ts";
import type { ReportedOutcome } from "../../../../src/coordinator/turn/session-frame.ts";
import { readRecord } from "../../../../src/storage/records.ts";
import type { HeldItem } from "../../../support/world-worker.ts";
import { ALL, CANDIDATE, ReleaseRun, releaseId, share, SUCCESS } from "./release-run.ts";

interface Given {
  readonly isCandidate: boolean;
  readonly stage: number;
  readonly leadership: number;
}

interface Arm {
  judged: number;
  bad: number;
}

class ShadowCounts {
  readonly #given = new Map<string, Given>();
  /** Items that an attempt was charged for, or that the candidate has failed. */
  readonly #harmed = new Set<string>();
  readonly #stages = new Map<string, Arm>();

  gave(item: HeldItem, given: Given): void {
    if (!this.#harmed.has(item.text)) this.#given.set(`${item.text} ${item.attempt}`, given);
  }

  ended(item: HeldItem, outcome: ReportedOutcome["kind"], now: Omit<Given, "isCandidate">): void {
    if (outcome === "preempted") return;
    const isBad = outcome !== "success";
    if (isBad) this.#harmed.add(item.text);
    const given = this.#given.get(`${item.text} ${item.attempt}`);
    if (given?.stage !== now.stage || given.leadership !== now.leadership) return;
    const arm = this.arm(now.stage, given.isCandidate);
    arm.judged++;
    if (isBad) arm.bad++;
  }

  arm(stage: number, isCandidate: boolean): Arm {
    const name = `${stage} ${isCandidate}`;
    const known = this.#stages.get(name) ?? { judged: 0, bad: 0 };
    this.#stages.set(name, known);
    return known;
  }
}

const OUTCOMES: readonly ReportedOutcome[] = [
  { kind: "error", message: "it broke" },
  { kind: "timeout", message: "too slow" },
  { kind: "crash", message: "gone" },
  { kind: "preempted" },
];

function drawOutcome(random: Random): ReportedOutcome | undefined {
  if (random.unit() < 0.15) return OUTCOMES[Math.floor(random.unit() * OUTCOMES.length)];
  return undefined;
}

async function runThrough(seed: number): Promise<{ readonly judged: number; readonly stages: number }> {
  const random = seededRandom(seed);
  const run = await ReleaseRun.start({
    items: 500,
    seed,
    budgets: { maxAttempts: 10 },
  });
  for (const number of [1, 2, 3]) await run.worker(number);
  const metrics = [{ kind: "errors", maxWorse: 0.9 }] as const;
  await run.create(
    {},
    {
      stages: [share(0.3, { minItems: 15 }), share(0.6, { minItems: 30 }), ALL],
      metrics,
    },
  );
  const shadow = new ShadowCounts();
  const seen = new Set<HeldItem>();
  let leadership = 0;
  let judged = 0;
  const stageNow = (): number => run.world.state.releases.latest?.row.context.stage ?? 0;
  const look = (stage: number): void => {
    for (const item of run.workers.flatMap(({ held }) => held))
      if (!seen.has(item)) {
        seen.add(item);
        shadow.gave(item, {
          isCandidate: item.pluginVersion === CANDIDATE.version,
          stage,
          leadership,
        });
      }
  };
  for (let round = 0; round < 60 && run.world.state.releases.isLive; round++) {
    const worker = run.workers[Math.floor(random.unit() * run.workers.length)];
    if (worker === undefined) continue;
    const stage = stageNow();
    await run.fill(worker);
    look(stageNow());
    await run.end(worker, (item) => {
      if (random.unit() < 0.3) return undefined;
      const outcome = drawOutcome(random);
      shadow.ended(item, outcome?.kind ?? "success", { stage, leadership });
      return outcome ?? SUCCESS;
    });
    look(stageNow());
    const stored = await readRecord(run.world.store, countsKey(releaseId(1), stage), countsRecord);
    const live = run.world.state.releases.latest;
    for (const isCandidate of [false, true]) {
      const arm = stored?.[isCandidate ? "candidate" : "stable"];
      const [metric] = arm?.metrics ?? [];
      const bad = metric?.counts.kind === "rate" ? metric.counts.k : 0;
      expect({ judged: arm?.judged ?? 0, bad }, `seed ${seed}, round ${round}`).to.deep.equal(
        shadow.arm(stage, isCandidate),
      );
      judged += arm?.judged ?? 0;
    }
    if (live !== undefined) expect(currentStage(live).number).to.be.at.least(stage);
    if (random.unit() < 0.1) {
      leadership++;
      await run.world.lead();
      for (const one of run.workers) await one.rejoin();
      look(stageNow());
    }
  }
  return { judged, stages: stageNow() };
}

describe("the counts of a release", () => {
  for (let seed = 1; seed <= 6; seed++)
    it(`are those of a recount, seed ${seed}`, async () => {
      const { judged, stages } = await runThrough(seed);
      expect([judged > 50, stages > 1]).to.deep.equal([true, true]);
    });
});
