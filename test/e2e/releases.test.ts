// Releases on real processes over TLS: a bad candidate that goes, a good one that stays whoever is killed, and one that a second terminal
// begins beside `rollout run`. Executions are counted, and those beyond a limit wait: no run ends before its verdict, and the number of
// items says how far a stage can have come, whatever the machine does meanwhile.
import { existsSync, rmSync, statSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { expect } from "chai";
import { withCluster } from "../support/cluster.ts";
import type { Cluster } from "../support/cluster.ts";
import { concurrentTests } from "../support/concurrent.ts";
import { eventually } from "../support/eventually.ts";
import { withLocalRun } from "../support/local-run.ts";

/** Its version is in its text. Two of five items of a bad one fail, always the same ones. */
const codeOf = (version: string, isBad: boolean): string => `
import { appendFileSync, readFileSync, statSync } from "node:fs";
const pause = (ms) => new Promise((resolve) => setTimeout(resolve, ms));
const limit = () => { try { return Number(readFileSync("limit", "utf8")); } catch { return Infinity; } };
export default async ({ n }, { signal }) => {
  appendFileSync("begun", ".");
  const own = statSync("begun").size;
  while (own > limit() && !signal.aborted) await pause(20);
  appendFileSync("ended", ".");
  if (${isBad} && n % 5 < 2) throw new Error("it cannot do this one");
  return { by: "${version}", n };
};
`;

/** A verdict comes with few items: what is worse by less than half of them is not asked about. */
const SPEC = `
[release]
alpha = 0.2
[[metric]]
kind = "errors"
max_worse = "50%"
`;

interface Stage {
  readonly share: number;
  readonly minItems: number;
}

interface Status {
  readonly state: string;
  readonly stage: number;
  readonly stages: readonly { readonly phase: string; readonly promoted_at?: unknown }[];
}

interface Line {
  readonly ok: boolean;
  readonly plugin_version: string;
  readonly output: { readonly by: string; readonly n: number };
}

/** A directory with both versions of the plugin, `v1.toml` and `v2.toml`. */
class Bench {
  readonly #directory: string;

  constructor(directory: string, { isBad = false } = {}) {
    this.#directory = directory;
    for (const version of ["1", "2"]) {
      const lines = ['name = "p"', `version = "${version}"`, 'backend = "module"', "[module]"];
      this.#write(`v${version}.toml`, [...lines, `module = "v${version}.mjs"`, ""].join("\n"));
      this.#write(`v${version}.mjs`, codeOf(version, isBad && version === "2"));
    }
  }

  /** Executions beyond this one wait. */
  limit(executions: number): void {
    this.#write("limit", String(executions));
  }

  letGo(): void {
    rmSync(join(this.#directory, "limit"));
  }

  /** As many as are let through have ended, and the next ones have begun. */
  async untilLimit(executions: number): Promise<void> {
    await eventually(`${executions} executions`, () => this.#count("ended") >= executions);
    await eventually("those that wait", () => this.#count("begun") > executions);
  }

  writeSpec(stages: readonly Stage[], more = SPEC): string {
    const tables = stages.map(
      ({ share, minItems }) => `[[stage]]\nitems = "${share}%"\nmin_items = ${minItems}\nmin_time = "0ms"\n`,
    );
    this.#write("release.toml", `${more}${tables.join("")}`);
    return "release.toml";
  }

  #write(name: string, text: string): void {
    writeFileSync(join(this.#directory, name), text);
  }

  #count(name: string): number {
    const path = join(this.#directory, name);
    return existsSync(path) ? statSync(path).size : 0;
  }
}

const BOTH = ["--plugin", "v1.toml", "--plugin", "v2.toml", "--slots", "4"];

describe("releases", () => {
  const it = concurrentTests(2);

  /** A sealed run of so many items, none of which ends before a limit lets it, with a worker that has both versions. */
  async function startRun(cluster: Cluster, bench: Bench, items: number): Promise<void> {
    bench.limit(0);
    await cluster.startCoordinator();
    await cluster.startWorker({ args: BOTH });
    const values = Array.from({ length: items }, (_, n) => ({ n }));
    await cluster.submit(values, "--plugin", "v1.toml", "--seal");
  }

  async function say(cluster: Cluster, ...words: string[]): Promise<string> {
    const { code, stdout, stderr } = await cluster.run(...words);
    expect(code, stderr).to.equal(0);
    return stdout;
  }

  const statusOf = async (cluster: Cluster): Promise<Status> =>
    JSON.parse(await say(cluster, "release", "status", "--json")) as Status;

  const linesOf = (text: string): Line[] =>
    text
      .trim()
      .split("\n")
      .map((line) => JSON.parse(line) as Line);

  /** Each item once, and each by the version that its result names. Says how many items each version has done. */
  function expectAllDone(
    lines: readonly Line[],
    items: number,
  ): { readonly first: number; readonly second: number } {
    expect(lines.every(({ ok }) => ok)).to.equal(true);
    expect(lines.map(({ output }) => output.n).toSorted((one, other) => one - other)).to.deep.equal(
      Array.from({ length: items }, (_, n) => n),
    );
    expect(lines.filter(({ output, plugin_version }) => output.by !== plugin_version)).to.deep.equal([]);
    const first = lines.filter(({ plugin_version }) => plugin_version === "1").length;
    return { first, second: lines.length - first };
  }

  it("a candidate that fails two of five items for good is rolled back, and no item fails", () =>
    // One failure that is charged would end its item.
    withCluster({ "run.max_attempts": 1 }, async (cluster) => {
      const [items, enough] = [240, 200];
      const bench = new Bench(cluster.directory, { isBad: true });
      await startRun(cluster, bench, items);
      const spec = bench.writeSpec([{ share: 50, minItems: 100 }], "");
      await say(cluster, "release", "create", spec, "--plugin", "v2.toml");
      bench.limit(enough);
      await cluster.coordinator.event("release_rolled_back");
      const watched = await cluster.run("release", "status", "--watch", "--json");
      expect(watched.code, watched.stderr).to.equal(1);
      bench.letGo();
      await cluster.coordinator.event("run_completed");
      expect((await statusOf(cluster)).state).to.equal("rolled_back");
      const done = expectAllDone(linesOf(await say(cluster, "results")), items);
      expect(done.second, "what it did stays").to.be.within(1, enough);
      const ofSecond = linesOf(await say(cluster, "results", "--plugin-version", "2"));
      expect(ofSecond).to.have.length(done.second);
      expect(ofSecond.filter(({ plugin_version }) => plugin_version !== "2")).to.deep.equal([]);
    }));

  it("a good candidate reaches all items and stays there, also when the leader is killed in each stage", () =>
    withCluster({}, async (cluster) => {
      // No stage can be promoted by the items that end before the leader is killed in it, and each by those that end after.
      const [inFirst, inSecond, toAll, items] = [20, 120, 420, 470];
      const bench = new Bench(cluster.directory);
      await startRun(cluster, bench, items);
      const spec = bench.writeSpec([
        { share: 40, minItems: inFirst + 1 },
        { share: 60, minItems: inSecond + 1 },
      ]);
      await say(cluster, "release", "create", spec, "--plugin", "v2.toml");

      const killInStage = async (stage: number, limit: number): Promise<Status> => {
        bench.limit(limit);
        if (stage > 1) await cluster.coordinator.event("stage_promoted", { stage: stage - 1 });
        await bench.untilLimit(limit);
        const before = await statusOf(cluster);
        expect(before.stage).to.equal(stage);
        await cluster.coordinator.kill();
        await cluster.startCoordinator();
        const after = await statusOf(cluster);
        expect([after.state, after.stage]).to.deep.equal([before.state, before.stage]);
        expectSamePromotions(before, after);
        return after;
      };
      await killInStage(1, inFirst);
      await killInStage(2, inSecond);
      const completed = await killInStage(3, toAll);
      expect(completed.state).to.equal("completed");
      bench.letGo();
      await cluster.coordinator.event("run_completed");
      const end = await statusOf(cluster);
      expect(end.stages.map(({ phase }) => phase)).to.deep.equal(["promoted", "promoted", "promoted"]);
      expect(end.stages).to.deep.equal(completed.stages);
      const { first, second } = expectAllDone(linesOf(await say(cluster, "results")), items);
      expect(first, "the old version had its part").to.be.greaterThan(0);
      expect(second, "none of the last items is of the old version").to.be.at.least(items - toAll);
    }));

  it("one begun beside `rollout run` restarts nobody, and the run is up to date with either manifest then", () =>
    withLocalRun({ items: 0 }, async (place) => {
      const [items, toAll] = [160, 130];
      place.writeInput(items);
      const bench = new Bench(place.directory);
      bench.limit(0);
      const words = (manifest: string): string[] => {
        const flags = ["--workers", "1", "--slots", "4", "--plugin", manifest];
        return ["run", "in.jsonl", "-o", "out.jsonl", ...flags];
      };
      const run = place.launch(words("v1.toml"));
      await bench.untilLimit(0);
      const workers = await place.workerPids();
      const spec = bench.writeSpec([{ share: 50, minItems: 20 }]);
      const config = ["-c", "out.jsonl.rollout/rollout.toml"];
      await place.wordsTo(0, ["release", "create", spec, "--plugin", "v2.toml", ...config]);
      bench.limit(toAll);
      await place.wordsTo(0, ["release", "status", "--watch", "--json", ...config]);
      await bench.untilLimit(toAll);
      expect(await place.workerPids(), "nobody was restarted").to.deep.equal(workers);
      bench.letGo();
      expect((await run.ended).code, run.describe()).to.equal(0);
      const lines = (await place.results()) as unknown as Line[];
      const numbered = lines.map((line) => ({ ...line, output: { ...line.output, n: line.output.n - 1 } }));
      const { first, second } = expectAllDone(numbered, items);
      expect(first).to.be.greaterThan(0);
      expect(second).to.be.at.least(items - toAll);
      for (const manifest of ["v1.toml", "v2.toml"])
        expect((await place.wordsTo(0, words(manifest))).stderr).to.equal(
          `nothing to do: ${items} of ${items} were done before: out.jsonl\n`,
        );
    }));
});

/** A stage that is promoted never changes. */
function expectSamePromotions(before: Status, after: Status): void {
  const promoted = ({ stages }: Status): unknown[] =>
    stages.filter(({ phase }) => phase === "promoted").map((stage) => [stage.phase, stage.promoted_at]);
  expect(promoted(after)).to.deep.equal(promoted(before));
  expect(promoted(before)).to.have.length(before.state === "completed" ? 3 : before.stage - 1);
}
