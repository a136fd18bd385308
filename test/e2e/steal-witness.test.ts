// Work is taken from a worker that does it. That nothing ran twice is read from the executions' own journal: of real
// processes, and of the real code with every delivery in the hand of a scheduler.
import { expect } from "chai";
import fc from "fast-check";
import type { DoneRecord } from "../../src/coordinator/ledger/records.ts";
import { doneRecord } from "../../src/coordinator/ledger/records.ts";
import type { HeldClaim } from "../../src/coordinator/turn/session-frame.ts";
import { decodeRecord, okOrFailure } from "../../src/storage/codec.ts";
import { DONE_PREFIX } from "../../src/storage/keys.ts";
import { withCluster } from "../support/cluster.ts";
import { World } from "../support/world.ts";
import { claimOf, reportOf } from "../support/world-worker.ts";
import type { HeldItem, WorldWorker } from "../support/world-worker.ts";
import { readJournal, readResults, runUntil } from "../support/run-observer.ts";
import type { RaceOptions } from "./steal/steal-race.ts";
import { StealRace } from "./steal/steal-race.ts";

const WITNESS = "concurrent_ack_and_steal_no_double_execute";
const WAVES = 4;
const WAVE_ITEMS = 120;
const RANDOM_RACES = 2_000;

describe("witnesses", () => {
  it(WITNESS, async () => {
    const mock = { "mock.journal": "./journal", "mock.distribution": "uniform" } as const;
    // Long enough for nothing to be handed back unasked.
    await withCluster({ ...mock, "worker.backlog_time": "10s" }, async (cluster) => {
      const coordinator = await cluster.startCoordinator();
      // It ends an item every 20 ms, so that what it reports and what it is asked for cross on the way.
      const slow = await cluster.startWorker({
        env: { ROLLOUT_WORKER_SLOTS: "16", ROLLOUT_MOCK_SLEEP: "320ms" },
      });
      const quick = { env: { ROLLOUT_WORKER_SLOTS: "4", ROLLOUT_MOCK_SLEEP: "5ms" } };
      await Promise.all([cluster.startWorker(quick), cluster.startWorker(quick)]);

      for (let wave = 1; wave <= WAVES; wave++) {
        const values = Array.from({ length: WAVE_ITEMS }, (_, at) => ({ wave, at }));
        expect(await cluster.submit(values)).to.include({ added: WAVE_ITEMS });
        await runUntil(cluster, ({ done }) => done === wave * WAVE_ITEMS);
      }
      const steals = coordinator.seen("work_stolen");
      expect(coordinator.seen("work_stolen", { victim_id: await slow.id() })).not.to.deep.equal([]);
      await coordinator.stop();

      const executions = readJournal(cluster.file("journal"));
      // A thief that is not scheduled for half a second does not get it: then its victim may have it again.
      const slowId = await slow.id();
      const others = executions.filter(({ attempt, worker }) => attempt > 1 && worker !== slowId);
      expect(others, "what was taken was executed by another").not.to.deep.equal([]);
      expect(
        executions.reduce((sum, { attempt }) => sum + attempt - 1, 0),
        "each time that it was taken made an attempt, and nothing else did",
      ).to.equal(steals.reduce((sum, { items }) => sum + items, 0));
      expect(executions.length, "nothing was executed twice").to.equal(WAVES * WAVE_ITEMS);
      expect(new Set(executions.map(({ item }) => item)).size).to.equal(WAVES * WAVE_ITEMS);
      const results = await readResults(cluster.file("data/rollout.db"));
      expect(results.length).to.equal(WAVES * WAVE_ITEMS);
      expect(new Set(results).size, "every item has exactly one result").to.equal(WAVES * WAVE_ITEMS);
    });
  });

  it(`${WITNESS}: in every order of deliveries, executions, lost sessions and restarts of a small case`, async () => {
    const small = { slots: 1, prefetch: 1 };
    const again = await explore({
      workers: [{ slots: 1, prefetch: 2 }, small],
      items: 3,
      mishaps: 0,
      pauses: 1,
    });
    const withMishap = await explore({ workers: [small, small], items: 2, mishaps: 1, pauses: 0 });
    for (const { states, ends, ended } of [again, withMishap]) {
      expect(states, "there is something to explore").to.be.above(500);
      expect(ends.has(0), "the victim was quicker").to.equal(true);
      expect(ends.has(1), "the thief was quicker").to.equal(true);
      expect(ended).to.be.above(5);
    }
  });

  it(`${WITNESS}: in ${RANDOM_RACES} random orders of larger ones`, async () => {
    const workers = [
      { slots: 2, prefetch: 7 },
      { slots: 2, prefetch: 2 },
      { slots: 1, prefetch: 1 },
    ];
    let stolen = 0;
    const race = async (choices: number[], items: number, mishaps: number, pauses: number): Promise<void> => {
      const racing = await StealRace.start({ workers, items, mishaps, pauses });
      for (const choice of choices) {
        const { steps } = racing;
        const step = steps[choice % steps.length];
        if (step !== undefined) await racing.take(step);
      }
      await racing.finish();
      stolen += racing.stolen;
    };
    const choices = fc.array(fc.nat(), { minLength: 10, maxLength: 60, size: "max" });
    const upTo = (max: number): fc.Arbitrary<number> => fc.integer({ min: 0, max });
    await fc.assert(fc.asyncProperty(choices, fc.integer({ min: 4, max: 9 }), upTo(3), upTo(4), race), {
      numRuns: RANDOM_RACES,
      seed: 20_261,
    });
    expect(stolen).to.be.above(RANDOM_RACES / 2);
  });

  it(`${WITNESS}: in every order of what a victim that keeps no rule may say`, async () => {
    const outcomes = new Set<string>();
    for (const order of permutationsOf(Object.keys(MOVES))) {
      const outcome = await playRaw(order).catch((cause: unknown) => {
        throw new Error(`in the order ${order.join(", ")}`, { cause });
      });
      outcomes.add(outcome);
    }
    expect([...outcomes]).to.have.members(["done by the thief", "done by the victim"]);
  });
});

/** Every state that can be reached, each reached once; what follows is tried from each. */
async function explore(
  options: RaceOptions,
): Promise<{ states: number; ended: number; ends: ReadonlySet<number> }> {
  const known = new Set<string>();
  /** By how many items changed hands. */
  const ends = new Set<number>();
  const paths: string[][] = [[]];
  let ended = 0;
  const follow = async (path: string[]): Promise<void> => {
    const race = await StealRace.start(options);
    for (const step of path) await race.take(step);
    while (!known.has(race.fingerprint)) {
      known.add(race.fingerprint);
      const [next, ...others] = race.steps;
      if (next === undefined) {
        ended++;
        ends.add(race.stolen);
        return race.checkEnd();
      }
      paths.push(...others.map((other) => [...path, other]));
      path.push(next);
      await race.take(next);
    }
  };
  for (let path = paths.pop(); path !== undefined; path = paths.pop()) {
    const taken = path;
    await follow(taken).catch((cause: unknown) => {
      throw new Error(`in the order ${taken.join(", ")}`, { cause });
    });
  }
  return { states: known.size, ended, ends };
}

interface RawRace {
  readonly world: World;
  readonly victim: WorldWorker;
  readonly thief: WorldWorker;
  /** The items that both want, as the victim was given them. */
  readonly item: HeldItem;
  /** The victim's stream at the beginning. */
  readonly firstPort: WorldWorker["port"];
}

/** The victim claims to have, and to have executed, what it also hands back, on streams old and new. */
const MOVES: Readonly<Record<string, (race: RawRace) => Promise<unknown>>> = {
  "the victim reports": async (race) => {
    const { world, victim, item } = race;
    const before = await standingOf(race);
    await victim.send([reportOf(item)]);
    const after = await standingOf(race);
    // Accepted while its attempt is the current one; worth nothing once another has the item, or its result is there.
    if (before === `attempt ${item.attempt}`) expect(after).to.equal("done by the victim");
    else if (before !== "pending") expect(after).to.equal(before);
    await world.settle();
  },
  "a steal is asked for": async ({ world, victim, thief }) => {
    world.pass(600);
    await world.step(victim.beatInput(), thief.beatInput(), { kind: "scan" });
    await world.settle();
  },
  "the victim hands it back": (race) => handsBack(race, race.victim.port),
  "what the victim hands back comes late": (race) => handsBack(race, race.firstPort),
  "the thief asks": ({ thief }) => thief.ask(1),
  "the victim comes back and asks again": async ({ victim, item }) => {
    await victim.hello(claimsWith(victim, item));
    await victim.ask(1);
  },
  "another leads": async ({ world, victim, thief, item }) => {
    await world.lead();
    await world.settle();
    await victim.hello(claimsWith(victim, item));
    await thief.hello();
  },
};

async function handsBack(race: RawRace, port: WorldWorker["port"]): Promise<void> {
  const { world, victim, item } = race;
  const before = await standingOf(race);
  victim.forget([item]);
  await world.step({ kind: "handedBack", workerId: victim.id, port, attempts: [item] });
  // Only the attempt that it names can be handed back.
  if (before !== `attempt ${item.attempt}`) expect(await standingOf(race)).to.equal(before);
  await world.settle();
}

/** Returns how the item stands in the end. */
async function playRaw(order: readonly string[]): Promise<string> {
  const world = await World.start({ isChecked: false });
  const victim = await world.worker(1, { slots: 1, credit: 2 });
  await world.submit(["first", "second"]);
  const thief = await world.worker(2, { slots: 1, incarnation: 2 });
  const item = victim.held.find(({ text }) => text === "second");
  if (item === undefined) throw new Error("the victim has both");
  const race: RawRace = { world, victim, thief, item, firstPort: victim.port };
  for (const name of order) {
    const before = await standingOf(race);
    await MOVES[name]?.(race);
    if (before.startsWith("done")) expect(await standingOf(race), `after "${name}"`).to.equal(before);
  }
  // The remaining items are asked for and reported.
  for (let round = 0; round < 2; round++) {
    await thief.ask(2);
    await thief.report([...thief.held]);
    await victim.send([item, ...victim.held].map((held) => reportOf(held)));
    await world.settle();
  }
  expect(await doneIn(world), "each has one result").to.have.length(2);
  return standingOf(race);
}

function claimsWith(victim: WorldWorker, item: HeldItem): HeldClaim[] {
  return [...new Set([item, ...victim.held])].map((held) => claimOf(held));
}

async function standingOf({ world, victim, item }: RawRace): Promise<string> {
  const running = world.contextOf(item);
  if (running !== undefined) return `attempt ${running.attempt}`;
  const done = (await doneIn(world)).filter(({ id }) => Buffer.compare(id, item.id) === 0);
  expect(done.length).to.be.below(2);
  if (done[0] === undefined) return "pending";
  return done[0].worker === victim.id ? "done by the victim" : "done by the thief";
}

async function doneIn(world: World): Promise<DoneRecord[]> {
  const rows = await world.rowsUnder(DONE_PREFIX);
  return rows.map(({ key, value }) => okOrFailure("", decodeRecord(doneRecord, key, value)));
}

function permutationsOf(all: readonly string[]): string[][] {
  if (all.length === 0) return [[]];
  return all.flatMap((first) =>
    permutationsOf(all.filter((one) => one !== first)).map((rest) => [first, ...rest]),
  );
}
