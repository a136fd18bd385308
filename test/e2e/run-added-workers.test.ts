import { expect } from "chai";
import { concurrentTests } from "../support/concurrent.ts";
import { eventually } from "../support/eventually.ts";
import { withLocalRun } from "../support/local-run.ts";
import type { LocalRunPlace } from "../support/local-run.ts";

const ITEMS = 30;

const words = (workers: number): string[] => [
  ...["run", "in.jsonl", "-o", "out.jsonl", "--workers", String(workers), "--", "sh", "work.sh"],
];

async function untilWorkers(place: LocalRunPlace, count: number): Promise<void> {
  await eventually(`${count} workers`, async () => (await place.workerPids()).length === count);
}

describe("the same `rollout run` with more workers, while the first goes on,", () => {
  const it = concurrentTests(2);

  it("adds those that are missing, which leave at Ctrl-C or with the run", async () => {
    await withLocalRun({ items: ITEMS, secondsEach: 0.4 }, async (place) => {
      place.hold(1);
      const first = place.launch(words(1));
      await place.untilResults(1);
      expect((await place.runWords(words(1))).stderr, "no more than there are").to.match(/is in use by/);

      const second = place.launch(words(3));
      await untilWorkers(place, 3);
      second.send("SIGINT");
      // Its workers may end their items.
      place.hold(ITEMS / 2);
      expect((await second.ended).code).to.equal(4);
      await untilWorkers(place, 1);

      const third = place.launch(words(2));
      await untilWorkers(place, 2);
      place.letGo();
      expect(await first.ended).to.deep.equal({ code: 0, signal: null });
      expect(await third.ended).to.deep.equal({ code: 0, signal: null });
      expect(third.stderr.join("\n"))
        .to.match(/this run goes on in process \d+, with 1 worker: 1 more are added/)
        .and.match(/the added workers have left/);
      expect(await place.results()).to.have.length(ITEMS);
      expect(await place.processes()).to.deep.equal([]);
    });
  });

  it("adds them once, when two are typed at the same time", async () => {
    await withLocalRun({ items: ITEMS, secondsEach: 1 }, async (place) => {
      const first = place.launch(words(1));
      await place.untilResults(1);
      const both = [place.launch(words(3)), place.launch(words(3))];
      const refused = await Promise.race(both.map((each) => each.ended.then(() => each)));
      expect((await refused.ended).code, refused.describe()).to.equal(3);
      expect(refused.stderr.join("\n")).to.match(/is in use by/);
      expect(await place.workerPids()).to.have.length(3);
      for (const each of [...both, first]) {
        each.send("SIGINT");
        await each.ended;
      }
    });
  });
});
