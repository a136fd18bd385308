// The rule of a fleet, as properties over random arrivals, start times and losses: a small world of machines on a clock of its own, which does
// what the rule says and nothing else.
import { expect } from "chai";
import type { FleetSettings } from "../../../../src/config/fleet.ts";
import {
  itemMsOf,
  learnJoin,
  learnWork,
  NOTHING_LEARNED,
  wanted,
} from "../../../../src/coordinator/fleet/demand.ts";
import type { Demand } from "../../../../src/coordinator/fleet/demand.ts";
import { planOf } from "../../../../src/coordinator/fleet/plan.ts";
import type { Plan, Situation, Unit } from "../../../../src/coordinator/fleet/plan.ts";
import { seededRandom } from "../../../../src/base/random.ts";
import type { Random } from "../../../../src/base/random.ts";

const STEP_MS = 1_000;
const POLL_MS = 10_000;

const SETTINGS: FleetSettings = {
  ...{
    name: "spot",
    slots: 4,
    min: 0,
    max: 20,
    pollIntervalMs: POLL_MS,
    startTimeoutMs: 300_000,
    orphanTimeoutMs: 1_800_000,
  },
  ...{ queueTimeoutMs: undefined, idleTimeoutMs: 60_000, finishWithinMs: 600_000, maxPending: 8 },
  ...{ maxLifetimeMs: undefined, pricePerHour: undefined, maxMachineHours: undefined },
  ...{ maxCost: undefined, maxCostPerHour: undefined, stopAtMs: undefined, advertise: undefined },
  provider: { kind: "exec", command: ["true"], timeoutMs: 1_000, directory: "/" },
};

interface Machine {
  readonly id: string;
  readonly askedAtMs: number;
  readonly joinsAtMs: number;
  endsAtMs: number | undefined;
  idleSinceMs: number | undefined;
  /** When each of its items is done. */
  items: number[];
}

/** Machines that start, work, are lost and end, and a queue of equal items. */
class FleetWorld {
  nowMs = 0;
  pending = 0;
  readonly machines: Machine[] = [];
  readonly counts = { launches: 0, useless: 0, done: 0 };
  readonly #settings: FleetSettings;
  readonly #random: Random;
  readonly #startMs: number;
  readonly #itemMs: number;
  readonly #worked = new Set<string>();
  #grownAtMs = 0;
  #learned = NOTHING_LEARNED;
  #executingSinceMs: number | undefined;
  #surplusSinceMs: number | undefined;
  #grown = { launches: 0, from: 0, atMs: -Infinity };

  constructor(
    settings: FleetSettings,
    random: Random,
    { startMs, itemMs }: { startMs: number; itemMs: number },
  ) {
    this.#settings = settings;
    this.#random = random;
    this.#startMs = startMs;
    this.#itemMs = itemMs;
  }

  submit(items: number): void {
    this.pending += items;
    this.#grownAtMs = this.nowMs;
  }

  lose(machine: Machine): void {
    this.machines.splice(this.machines.indexOf(machine), 1);
    this.pending += machine.items.length;
  }

  get joined(): Machine[] {
    return this.machines.filter(
      ({ joinsAtMs, endsAtMs }) => joinsAtMs <= this.nowMs && endsAtMs === undefined,
    );
  }

  get executing(): number {
    return this.machines.reduce((sum, { items }) => sum + items.length, 0);
  }

  get isDone(): boolean {
    return this.pending === 0 && this.executing === 0;
  }

  step(): { readonly plan: Plan; readonly demand: Demand; readonly live: number } {
    this.nowMs += STEP_MS;
    this.#work();
    const executingForMs = this.#executingSinceMs === undefined ? 0 : this.nowMs - this.#executingSinceMs;
    const demand: Demand = {
      ...{ pending: this.pending, executing: this.executing, slotsElsewhere: 0 },
      ...{ grownForMs: this.nowMs - this.#grownAtMs, itemMs: itemMsOf(this.#learned, executingForMs) },
    };
    if (this.nowMs - this.#grown.atMs >= POLL_MS)
      this.#grown = { launches: 0, from: this.machines.length, atMs: this.nowMs };
    const units = this.machines.map((machine) => this.#unitOf(machine));
    const situation: Situation = {
      ...{ settings: this.#settings, units, demand, joinMs: this.#learned.joinMs || 30_000 },
      surplusMs: this.#surplusSinceMs === undefined ? undefined : this.nowMs - this.#surplusSinceMs,
      ...{ obstacle: undefined, launchesMax: Infinity, grown: this.#grown, over: undefined },
    };
    const plan = planOf(situation);
    expect(planOf(situation)).to.deep.equal(plan);
    const live = units.filter(({ state }) => state !== "Ending").length;
    this.#carryOut(plan);
    return { plan, demand, live };
  }

  #work(): void {
    this.#learned = learnWork(this.#learned, this.executing * STEP_MS, 0);
    for (const machine of [...this.machines]) {
      const done = machine.items.filter((atMs) => atMs <= this.nowMs).length;
      machine.items = machine.items.filter((atMs) => atMs > this.nowMs);
      this.counts.done += done;
      if (done > 0) this.#worked.add(machine.id);
      if (done > 0) this.#executingSinceMs = undefined;
      this.#learned = learnWork(this.#learned, 0, done);
      if (machine.endsAtMs !== undefined && machine.endsAtMs <= this.nowMs && machine.items.length === 0) {
        if (!this.#worked.has(machine.id)) this.counts.useless++;
        this.machines.splice(this.machines.indexOf(machine), 1);
      }
    }
    for (const machine of this.joined) {
      if (machine.joinsAtMs > this.nowMs - STEP_MS)
        this.#learned = learnJoin(this.#learned, machine.joinsAtMs - machine.askedAtMs);
      while (this.pending > 0 && machine.items.length < this.#settings.slots) {
        this.pending--;
        machine.items.push(this.nowMs + this.#itemMs);
      }
      machine.idleSinceMs = machine.items.length > 0 ? undefined : (machine.idleSinceMs ?? this.nowMs);
    }
    if (this.executing > 0) this.#executingSinceMs ??= this.nowMs;
    else this.#executingSinceMs = undefined;
  }

  #unitOf({ id, askedAtMs, joinsAtMs, endsAtMs, idleSinceMs }: Machine): Unit {
    const hasJoined = joinsAtMs <= this.nowMs;
    return {
      ...{ id, state: endsAtMs !== undefined ? "Ending" : hasJoined ? "Joined" : "Booting" },
      ...{ slots: this.#settings.slots, forMs: this.nowMs - askedAtMs, ranMs: this.nowMs - askedAtMs },
      ...{ idleMs: idleSinceMs === undefined ? undefined : this.nowMs - idleSinceMs, isPoor: false },
      isOutdated: false,
    };
  }

  #carryOut({ launches, ends, hasSurplus }: Plan): void {
    for (const { id } of ends) {
      const machine = this.machines.find((one) => one.id === id);
      expect(machine?.items ?? [], "only what is idle ends").to.deep.equal([]);
      if (machine !== undefined) machine.endsAtMs = this.nowMs + 2 * STEP_MS;
    }
    for (let left = launches; left > 0; left--) {
      const startMs = this.#startMs * (0.5 + this.#random.unit());
      this.machines.push({
        ...{ id: `m${++this.counts.launches}`, askedAtMs: this.nowMs, joinsAtMs: this.nowMs + startMs },
        ...{ endsAtMs: undefined, idleSinceMs: undefined, items: [] },
      });
    }
    this.#grown = { ...this.#grown, launches: this.#grown.launches + launches };
    this.#surplusSinceMs = hasSurplus ? (this.#surplusSinceMs ?? this.nowMs) : undefined;
  }
}

function between(random: Random, low: number, high: number): number {
  return low + Math.floor(random.unit() * (high - low + 1));
}

describe("the rule of a fleet", () => {
  it("keeps its bounds over random arrivals, start times and losses, and does all of the work", () => {
    for (let seed = 1; seed <= 60; seed++) {
      const random = seededRandom(seed);
      const settings = { ...SETTINGS, slots: between(random, 1, 8), max: between(random, 1, 20) };
      const itemMs = between(random, 1, 60) * 1_000;
      const startMs = between(random, 1, 90) * 1_000;
      const world = new FleetWorld(settings, random, { startMs, itemMs });
      for (let steps = 0; steps < 600; steps++) {
        if (random.unit() < 0.01) world.submit(between(random, 1, 200));
        const [first] = world.joined;
        if (first !== undefined && random.unit() < 0.005) world.lose(first);
        const { plan, live } = world.step();
        expect(world.machines.length, `seed ${seed}: above max`).to.be.at.most(settings.max);
        if (plan.launches > 0)
          expect(live + plan.launches, `seed ${seed}: two launches for one need`).to.be.at.most(plan.want);
        expect(
          plan.launches === 0 || plan.ends.length === 0,
          `seed ${seed}: started and ended at once`,
        ).to.equal(true);
      }
      for (let steps = 0; !world.isDone; steps++) {
        world.step();
        expect(steps, `seed ${seed}: the work is not done`).to.be.below(40_000);
      }
      const patienceMs = settings.idleTimeoutMs + 2 * POLL_MS;
      for (let passedMs = 0; passedMs < patienceMs; passedMs += STEP_MS) world.step();
      expect(world.machines.length, `seed ${seed}: machines without work`).to.equal(0);
      const { launches } = world.counts;
      for (let steps = 0; steps < 600; steps++) world.step();
      expect(world.counts.launches, `seed ${seed}: started for nothing`).to.equal(launches);
    }
  });

  it("starts and ends each machine once for a backlog of which nothing is lost", () => {
    for (let seed = 1; seed <= 40; seed++) {
      const random = seededRandom(seed);
      const world = new FleetWorld(SETTINGS, random, {
        startMs: between(random, 1, 120) * 1_000,
        itemMs: between(random, 1, 90) * 1_000,
      });
      world.submit(between(random, 1, 3_000));
      let ended = false;
      while (!world.isDone) {
        const { plan } = world.step();
        ended ||= plan.ends.length > 0;
        expect(ended && plan.launches > 0, `seed ${seed}: started after it has ended some`).to.equal(false);
      }
    }
  });

  it("replaces a lost machine while the target needs it", () => {
    const world = new FleetWorld(SETTINGS, seededRandom(1), { startMs: 20_000, itemMs: 30_000 });
    world.submit(2_000);
    for (let steps = 0; steps < 200; steps++) world.step();
    const before = world.machines.length;
    const [first] = world.joined;
    expect(first, "somebody works").not.to.equal(undefined);
    if (first !== undefined) world.lose(first);
    for (let steps = 0; steps < 3; steps++) world.step();
    expect(world.machines.length).to.be.at.least(before);
  });

  it("grows before the first of long items has ended", () => {
    const world = new FleetWorld(SETTINGS, seededRandom(1), { startMs: 5_000, itemMs: 3_600_000 });
    world.submit(40);
    for (let steps = 0; steps < 900; steps++) world.step();
    expect(world.counts.done).to.equal(0);
    expect(world.machines.length).to.equal(10);
  });

  it("asks for one machine for short work, and for none that would come too late", () => {
    const world = new FleetWorld({ ...SETTINGS, slots: 8 }, seededRandom(1), {
      startMs: 120_000,
      itemMs: 1_000,
    });
    world.submit(500);
    while (!world.isDone) world.step();
    expect(world.counts).to.deep.equal({ launches: 1, useless: 0, done: 500 });
  });

  it("counts what others have, and wants a slot for each item where there is no time", () => {
    const demand = { pending: 100, executing: 0, slotsElsewhere: 0, grownForMs: 0, itemMs: 1_000 };
    const now = { ...SETTINGS, finishWithinMs: 0, max: 100 };
    expect(wanted(demand, now)).to.equal(25);
    expect(wanted({ ...demand, slotsElsewhere: 40 }, now)).to.equal(15);
    expect(wanted({ ...demand, slotsElsewhere: 400 }, now)).to.equal(0);
    expect(wanted({ ...demand, slotsElsewhere: 400 }, { ...now, min: 2 })).to.equal(2);
    expect(wanted({ ...demand, pending: 6_000, itemMs: 10_000 }, { ...SETTINGS, max: 100 })).to.equal(25);
    // A target that is over leaves a quarter of it, and does not recede.
    expect(
      wanted({ ...demand, pending: 6_000, itemMs: 10_000, grownForMs: 1e9 }, { ...SETTINGS, max: 1_000 }),
    ).to.equal(100);
  });
});
