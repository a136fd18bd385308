// Releases over the stores that a run may have: the same course, the same guard of two leaders, the same damage found.
import { expect } from "chai";
import { systemClock } from "../../../../src/base/clock.ts";
import { react } from "../../../../src/coordinator/reactor.ts";
import { verifyReleases } from "../../../../src/coordinator/read/verify-releases.ts";
import { findDamages } from "../../../../src/coordinator/quarantine/known-rows.ts";
import { RELEASES_KEY, RELEASES_PREFIX } from "../../../../src/storage/keys.ts";
import { openLevelStore } from "../../../../src/storage/level/level-store.ts";
import type { Store } from "../../../../src/storage/store.ts";
import { batchOf } from "../../../support/batch.ts";
import { usePostgresDatabase } from "../../../support/postgres-database.ts";
import { openTestStore } from "../../../support/postgres-store.ts";
import { useTemporaryDirectory } from "../../../support/temporary-directory.ts";
import { ERROR } from "../../../support/world-worker.ts";
import { ALL, ReleaseRun, share, SUCCESS } from "./release-run.ts";
import type { Behaviour } from "./release-run.ts";

const good: Behaviour = () => SUCCESS;
const bad: Behaviour = (_, isCandidate) => (isCandidate ? ERROR : SUCCESS);
const TWO = { stages: [share(0.25), share(0.5), ALL] };

describe("releases on LevelDB", () => {
  const directory = useTemporaryDirectory();
  let opened = 0;

  behaveAlike(() =>
    openLevelStore({ path: directory.file(`${++opened}.db`), holderName: "test", clock: systemClock }),
  );
});

describe("releases on Postgres", () => {
  const database = usePostgresDatabase();

  behaveAlike(() => openTestStore(database.url));
});

function behaveAlike(open: () => Promise<Store>): void {
  let store: Store;
  let run: ReleaseRun;

  beforeEach(async () => {
    store = await open();
    run = await ReleaseRun.start({ items: 200, store, isChecked: false });
    for (const number of [1, 2]) await run.worker(number);
  });

  afterEach(() => store.close());

  /** A new leader, and the workers find their way to it. */
  async function takeOver(): Promise<void> {
    await run.world.lead();
    for (const worker of run.workers) await worker.rejoin();
  }

  it("a good candidate gets all items, under another leader in each stage", async () => {
    await run.create({}, TWO);
    for (let round = 0; round < 20 && run.world.state.releases.isLive; round++) {
      await run.work(good);
      if (round % 4 === 1) await takeOver();
    }
    expect(await run.phases()).to.deep.equal(Array<string>(3).fill("PROMOTED by VERDICT"));
    const before = await run.status();
    await takeOver();
    expect(await run.status()).to.deep.equal(before);
    expect(await verifyReleases(store)).to.equal(undefined);
  });

  it("a bad candidate is rolled back, and its items have lost nothing", async () => {
    await run.create();
    await run.work(bad, { rounds: 8 });
    expect(await run.state()).to.equal("ROLLED_BACK");
    await takeOver();
    await run.work(good, { rounds: 20 });
    expect(await run.world.view()).to.include({ done: 200, failed: 0 });
  });

  it("release failure: two leaders overlap, and one of them promotes", async () => {
    await run.create({}, TWO);
    run.world.isLeader = false;
    await run.work(good, { rounds: 8 });
    const { world } = run;
    const other = await ReleaseRun.over(store, world);
    const leaderships = [world.state, other].map((state) => {
      const time = { nowMs: world.nowMs, wallMs: world.wallMs };
      return react(state, [{ kind: "leadershipConfirmed", leads: true }], time).writes;
    });
    // Neither is fenced by its epoch here: the row of the stage decides.
    const outcomes: string[] = [];
    for (const writes of leaderships) outcomes.push((await store.commit(batchOf(writes))).kind);
    expect(outcomes).to.deep.equal(["committed", "conflict"]);
  });

  it("a row of a release that is damaged or gone is found by its key", async () => {
    await run.create({}, TWO);
    await run.work(good, { rounds: 2 });
    const names = await store.get(RELEASES_KEY);
    if (names === undefined) throw new Error("there is no row that names the release");
    const ofRelease = await run.world.rowsUnder(RELEASES_PREFIX);
    expect(ofRelease.map(({ key }) => key.split("/").slice(2).join("/"))).to.deep.equal([
      ...["", "counts/01", "stages/01", "stages/02", "stages/03"],
    ]);
    const rows = [{ key: RELEASES_KEY, value: names }, ...ofRelease];
    for (const entry of rows) {
      const { key, value } = entry;
      await store.commit(batchOf({ puts: [{ key, value: value.with(-1, (value.at(-1) ?? 0) ^ 1) }] }));
      expect(await verifyReleases(store), "by the check at the end").to.include({ key });
      expect(
        (await findDamages(store)).map((damage) => damage.key),
        "by quarantine",
      ).to.deep.equal([key]);
      await store.commit(batchOf({ puts: [entry] }));
    }
    for (const { key } of rows.filter(({ key: one }) => one.includes("/stages/"))) {
      const gone = rows.filter((row) => row.key === key);
      await store.commit(batchOf({ deletes: [key] }));
      expect(await verifyReleases(store), "gone").to.include({ key });
      await store.commit(batchOf({ puts: gone }));
    }
  });
}
