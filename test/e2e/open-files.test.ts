// With the fewest files and sockets that rollout says it needs, everything comes through: what it demands is measured here.
import { expect } from "chai";
import { filesOfLocalRun } from "../../src/compose/open-files.ts";
import { withCluster } from "../support/cluster.ts";
import { withLocalRun } from "../support/local-run.ts";

const ITEMS = 20;
const SLOTS = 4;

const limitedTo = (files: number): string[] => ["sh", "-c", `ulimit -n ${files}; exec "$@"`, "sh"];

describe("with few open files allowed", () => {
  it("a local run completes with as many files as it asks for", async () => {
    const { files } = filesOfLocalRun(1, SLOTS);
    await withLocalRun({ items: ITEMS }, async (place) => {
      const run = place.launch(place.words("--slots", String(SLOTS)), limitedTo(files));
      expect(await run.ended).to.deep.equal({ code: 0, signal: null });
      expect(await place.results()).to.have.length(ITEMS);
      const next = place.launch(place.words("--slots", String(SLOTS)), limitedTo(files - 1));
      expect(await next.ended).to.deep.equal({ code: 2, signal: null });
      expect(next.stderr.join())
        .to.contain(`needs ${files} open files`)
        .and.contain(`may have ${files - 1} here`);
    });
  });

  it("`rollout doctor` says for which processes they are enough, and fails where they are not", async () => {
    await withCluster({ "worker.slots": 8 }, async (cluster) => {
      const doctor = cluster.launch(["doctor", "--json"], { wrapper: limitedTo(64) });
      expect((await doctor.ended).code).to.equal(2);
      expect(doctor.stdout.join()).to.contain("too_few_files").and.contain("a worker of 8 slots needs 72");
      await cluster.configure({ "worker.slots": 1 });
      const wary = cluster.launch(["doctor"], { wrapper: limitedTo(64) });
      await wary.ended;
      expect(wary.stdout.join()).to.contain("warn  open files").and.contain("a coordinator of 24 workers");
    });
  });
});
