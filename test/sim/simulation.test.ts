// A whole cluster under all kinds of trouble, some hundreds of times; thousands by `npm run simulate`.
import { expect } from "chai";
import { seededRandom } from "../../src/base/random.ts";
import { reportOf, withoutStacks } from "./report.ts";
import { COORDINATORS, drawSettings, FAULTS, SHARED_FAULTS } from "./settings.ts";
import type { Variant } from "./variant.ts";
import { simulate } from "./simulation.ts";

/** Each in its place, so that a slow machine shows which seeds were slow. */
const CHUNKS = 8;
const SEEDS_PER_CHUNK = 20;
/** Seeds of three coordinators that have each found something, which is mended. */
const FINDS = [
  102_384, 104_962, 400_714, 400_815, 402_276, 402_454, 402_972, 500_718, 917_722, 920_654, 1_000_199,
  1_000_562, 1_000_662, 1_000_773, 1_000_876, 1_004_298, 1_007_065, 1_007_264, 1_008_984, 1_009_932,
  5_000_899,
];
/** The same, with keys that were actors. */
const FINDS_OF_ACTORS = [4_000_841, 6_003_764, 7_000_086];

/** The same of releases, which no variant has unless it asks for one. */
const FINDS_OF_RELEASES = [3_100_024, 4_000_658, 4_000_726, 4_700_839, 4_702_263];

/** The same where the seed drew how many coordinators there are. */
const FINDS_OF_DRAWN = [5_100_545, 5_101_194, 6_101_692, 7_200_905];

/** The others found it with keys that were no actors. */
const WITHOUT_ACTORS: Variant = {
  name: "without actors",
  settings: (drawn) => ({ ...drawn, hasActors: false }),
};

describe("a simulated cluster", () => {
  withoutStacks();

  /** The operators' doings in these seeds. */
  const met = { retaken: 0, cancelled: 0, completed: 0, shared: 0, followed: 0, trials: 0, acting: 0 };
  /** The states in which releases ended, of candidates that are good and of those that are not. */
  const ended = new Set<string>();

  for (let chunk = 0; chunk < CHUNKS; chunk++) {
    const first = 1 + chunk * SEEDS_PER_CHUNK;
    const last = first + SEEDS_PER_CHUNK - 1;
    it(`makes every item final exactly once, whatever happens to it (seeds ${first} to ${last})`, async () => {
      for (let seed = first; seed <= last; seed++) {
        const verdict = await simulate(seed);
        expect(verdict.violation, reportOf(verdict)).to.equal(undefined);
        met.retaken += verdict.retaken;
        met.trials += verdict.trials;
        if (verdict.settings.release !== undefined)
          ended.add(`${verdict.release} ${verdict.settings.release.badness === undefined ? "good" : "bad"}`);
        if (verdict.settings.coordinators > 1) {
          met.shared++;
          if (verdict.leaderships > 1) met.followed++;
        }
        if (verdict.settings.hasActors) met.acting++;
        if (verdict.ended === "Cancelled") met.cancelled++;
        else met.completed++;
      }
    });
  }

  it("stays mended where a seed has found something", async () => {
    const finds = [
      [FINDS, WITHOUT_ACTORS, COORDINATORS],
      [[...FINDS_OF_ACTORS, ...FINDS_OF_RELEASES], undefined, COORDINATORS],
      [FINDS_OF_DRAWN, undefined, undefined],
    ] as const;
    for (const [seeds, variant, coordinators] of finds)
      for (const seed of seeds) {
        const verdict = await simulate(seed, variant, coordinators);
        expect(verdict.violation, reportOf(verdict, coordinators)).to.equal(undefined);
      }
  });

  it("met operators that take items back and that cancel, in these seeds", () => {
    expect(met.retaken).to.be.greaterThan(0);
    expect(met.cancelled).to.be.greaterThan(0);
    expect(met.completed).to.be.greaterThan(met.cancelled);
  });

  it("met releases that are completed, rolled back, aborted and over with their run, in these seeds", () => {
    expect(met.trials).to.be.greaterThan(100);
    expect([...ended]).to.include.members(["Completed good", "RolledBack bad", "Ended good", "Ended bad"]);
    expect([...ended].some((end) => end.startsWith("Aborted"))).to.equal(true);
  });

  it("met coordinators that share a database and follow each other, in these seeds", () => {
    expect(met.shared).to.be.within(50, 110);
    expect(met.followed).to.be.greaterThan(met.shared / 4);
  });

  it("executes actors in some of these seeds", () => {
    expect(met.acting).to.be.within(16, 40);
  });

  it("runs the same way for the same seed, and another for another", async () => {
    const hashes = new Set<string>();
    for (const seed of [3, 14, 159, 265, 358]) {
      const [one, other] = [await simulate(seed), await simulate(seed)];
      expect([other.hash, other.lines, other.moments]).to.deep.equal([one.hash, one.lines, one.moments]);
      hashes.add(one.hash);
    }
    expect(hashes.size).to.equal(5);
  });

  it("meets every kind of trouble within the seeds that are tried here", () => {
    const faults = new Set<string>();
    for (let seed = 1; seed <= CHUNKS * SEEDS_PER_CHUNK; seed++)
      for (const fault of drawSettings(seededRandom(seed)).faults) faults.add(fault);
    expect([...faults]).to.have.members([...FAULTS, ...SHARED_FAULTS]);
  });
});
