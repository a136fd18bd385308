// Random histories of a few workers, held against a small model of what is promised. The harness checks the state and
// its replay after every step.
import { expect } from "chai";
import fc from "fast-check";
import type { BeatVerdict, ClaimedState } from "../../../src/coordinator/turn/input.ts";
import { LIVENESS, World } from "../../support/world.ts";
import { incarnationId, workerId } from "../../support/world-worker.ts";

const WORKERS_MAX = 3;
const STATES: readonly ClaimedState[] = ["Init", "Ready", "Draining", "Gone"];

interface BeatStep {
  readonly kind: "beat";
  readonly worker: number;
  readonly incarnation: number;
  readonly sequence: number;
  readonly state: ClaimedState;
  readonly slots: number;
}
type Step =
  | BeatStep
  | { readonly kind: "watch" | "stall"; readonly forMs: number }
  | { readonly kind: "scan" | "restart" | "list" };

const beat: fc.Arbitrary<Step> = fc.record({
  kind: fc.constant("beat" as const),
  worker: fc.integer({ min: 1, max: WORKERS_MAX + 1 }),
  incarnation: fc.integer({ min: 1, max: 3 }),
  sequence: fc.integer({ min: 1, max: 6 }),
  state: fc.constantFrom(...STATES),
  slots: fc.integer({ min: 1, max: 2 }),
});
const step: fc.Arbitrary<Step> = fc.oneof(
  { weight: 6, arbitrary: beat },
  { weight: 2, arbitrary: fc.record({ kind: fc.constant("watch" as const), forMs: fc.nat(7_000) }) },
  { weight: 1, arbitrary: fc.record({ kind: fc.constant("stall" as const), forMs: fc.nat(9_000) }) },
  {
    weight: 2,
    arbitrary: fc.record({ kind: fc.constantFrom("scan" as const, "restart" as const, "list" as const) }),
  },
);

/** The facts of a registered worker. */
interface Known {
  incarnation: number;
  sequence: number;
  rank: number;
}

class Model {
  readonly known = new Map<number, Known>();
  readonly failed = new Set<string>();

  /** A worker that has failed or left makes room. */
  expectedVerdict({ worker, incarnation }: BeatStep, reactor: World): BeatVerdict {
    const known = this.known.get(worker);
    const states = [...this.known.keys()].map((each) => reactor.stateOf(workerId(each)) ?? "");
    const hasRoom = this.known.size < WORKERS_MAX || states.some((state) => /Failed|Removed/.test(state));
    if (known === undefined) return hasRoom ? "accepted" : "refused";
    return incarnation < known.incarnation ? "superseded" : "accepted";
  }

  /** Takes an accepted beat. */
  take({ worker, incarnation, sequence, state }: BeatStep): void {
    const rank = STATES.indexOf(state);
    const known = this.known.get(worker);
    if (known === undefined || incarnation > known.incarnation)
      this.known.set(worker, { incarnation, sequence, rank });
    else if (sequence > known.sequence) {
      known.sequence = sequence;
      known.rank = Math.max(known.rank, rank);
    }
  }
}

async function play(steps: readonly Step[], seen: Set<string>): Promise<void> {
  const reactor = await World.start({ workersMax: WORKERS_MAX, liveness: { removeAfterMs: 4_000 } });
  const model = new Model();
  for (const one of steps) {
    await perform(reactor, model, one);
    checkEvents(reactor, model);
    for (const topic of reactor.takeTopics()) seen.add(topic);
    checkWorkers(reactor, model);
  }
}

async function perform(reactor: World, model: Model, one: Step): Promise<void> {
  switch (one.kind) {
    case "beat": {
      const { worker, incarnation, sequence, state, slots } = one;
      const ids = { workerId: workerId(worker), incarnation: incarnationId(incarnation) };
      const expected = model.expectedVerdict(one, reactor);
      expect(await reactor.beat({ ...ids, sequence, state, slots })).to.equal(expected);
      if (expected === "accepted") model.take(one);
      return;
    }
    case "watch":
      return reactor.watch(one.forMs);
    case "stall":
      return reactor.pass(one.forMs);
    case "scan":
      return reactor.scan();
    case "restart":
      model.failed.clear();
      return reactor.lead();
    case "list":
      expect((await reactor.list()).workers.length).to.equal(model.known.size);
  }
}

function checkEvents(reactor: World, model: Model): void {
  const { clockSkewBudgetMs, coordinatorFailureTimeoutMs } = LIVENESS;
  for (const { worker_id: id, late_ms } of reactor.events.of("worker_failed")) {
    expect(late_ms).to.be.greaterThan(coordinatorFailureTimeoutMs);
    expect(model.failed.has(id), "worker_failed is said once").to.equal(false);
    model.failed.add(id);
  }
  for (const { late_ms } of reactor.events.of("worker_suspected"))
    expect(late_ms).to.be.greaterThan(clockSkewBudgetMs);
  for (const { worker_id: id } of reactor.events.of("worker_removed"))
    for (const worker of model.known.keys()) if (workerId(worker) === id) model.known.delete(worker);
}

function checkWorkers(reactor: World, model: Model): void {
  const found = [...reactor.state.workers.values()].map(({ id, chart, sequence }) => ({
    id,
    incarnation: chart.context.incarnation,
    sequence,
    lifecycle: reactor.stateOf(id)?.split("+")[0],
  }));
  const expected = [...model.known].map(([worker, { incarnation, sequence, rank }]) => ({
    id: workerId(worker),
    incarnation: incarnationId(incarnation),
    sequence,
    lifecycle: STATES[rank],
  }));
  expect(found).to.have.deep.members(expected);
}

describe("the reactor", () => {
  it("keeps its promises over random histories of beats, silence and restarts", async () => {
    const seen = new Set<string>();
    const histories = fc.array(step, { maxLength: 40, size: "max" });
    await fc.assert(
      fc.asyncProperty(histories, (steps) => play(steps, seen)),
      { numRuns: 150 },
    );
    // Histories in which nobody is silent for long keep every promise about silence.
    expect([...seen]).to.include.members(["worker_suspected", "worker_failed", "worker_removed"]);
  });
});
