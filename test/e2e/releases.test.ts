// Releases on real processes over TLS: a bad candidate that goes, a good one that stays whoever is killed, and one that a second terminal
// begins beside `rollout run`. Executions are counted, and those beyond a limit wait: no run ends before its verdict, and the number of
// items says how far a stage can have come, whatever the machine does meanwhile. Items are chosen by their arms where they can be, so that it
// says that whatever the ids are, too.
import { existsSync, rmSync, statSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { expect } from "chai";
import { loadManifest } from "../../src/config/manifest.ts";
import { taskOf } from "../../src/config/task.ts";
import { withCluster } from "../support/cluster.ts";
import type { Cluster } from "../support/cluster.ts";
import { concurrentTests } from "../support/concurrent.ts";
import { eventually } from "../support/eventually.ts";
import { withLocalRun } from "../support/local-run.ts";
import { itemsByArm } from "./items-by-arm.ts";
import type { ItemsByArm } from "./items-by-arm.ts";

const isHard = (n: number): boolean => n % 5 < 2;

/** Its version is in its text. Two of five items of a bad one fail, always the same ones. */
const codeOf = (version: string, isBad: boolean): string => `
import { appendFileSync, readFileSync, statSync } from "node:fs";
const pause = (ms) => new Promise((resolve) => setTimeout(resolve, ms));
// Quick, but never so quick that hundreds of items wait at a worker.
const LEAST_MS = 5;
const limit = () => { try { return Number(readFileSync("limit", "utf8")); } catch { return Infinity; } };
export default async ({ n }, { signal }) => {
  appendFileSync("begun", ".");
  const own = statSync("begun").size;
  await pause(LEAST_MS);
  while (own > limit() && !signal.aborted) await pause(20);
  appendFileSync("ended", ".");
  if (${isBad} && (${isHard.toString()})(n)) throw new Error("it cannot do this one");
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
  readonly reason: string;
  readonly stage: number;
  readonly stages: readonly { readonly phase: string; readonly promoted_at?: unknown }[];
}

interface Line {
  readonly item: string;
  readonly ok: boolean;
  readonly plugin_version: string;
  readonly output: { readonly by: string; readonly n: number };
}

interface Expected {
  readonly n: number;
  /** Undefined for one that was not chosen by its id. */
  readonly id?: string;
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

/** A few items wait at the worker beside those that it executes: those that are given out in one stage and end in the next are few. */
const BOTH = ["--plugin", "v1.toml", "--plugin", "v2.toml", "--slots", "4", "--backlog-time", "10ms"];

describe("releases", () => {
  const it = concurrentTests(2);

  /** A run that goes on, whose first item has begun and does not end before a limit lets it, with a worker that has both versions. */
  async function startRun(cluster: Cluster, bench: Bench): Promise<void> {
    bench.limit(0);
    await cluster.startCoordinator();
    await cluster.startWorker({ args: BOTH });
    await cluster.submit([{ n: 0 }], "--plugin", "v1.toml");
    await bench.untilLimit(0);
  }

  /** The release begins, and all but the first of so many items are submitted for it. Returns all of them. */
  async function beginRelease(
    cluster: Cluster,
    spec: string,
    items: number,
    chosen: Pick<ItemsByArm<boolean>, "shares" | "turns">,
  ): Promise<Expected[]> {
    const said = await say(cluster, "release", "create", spec, "--plugin", "v2.toml", "--json");
    const { release } = JSON.parse(said) as { readonly release: string };
    const { digest: taskDigest } = taskOf(await loadManifest(cluster.file("v1.toml")));
    const by = { ...chosen, release, taskDigest, kindOf: isHard };
    const rest = itemsByArm(by, { first: 1, count: items - 1 });
    await cluster.submit(
      rest.map(({ n }) => ({ n })),
      "--plugin",
      "v1.toml",
      "--seal",
    );
    return [{ n: 0 }, ...rest];
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
    expected: readonly Expected[],
  ): { readonly first: number; readonly second: number } {
    expect(lines.every(({ ok }) => ok)).to.equal(true);
    const idOf = new Map(lines.map(({ output, item }) => [output.n, item]));
    expect(lines).to.have.length(expected.length);
    for (const { n, id } of expected) expect(idOf.get(n), `item ${n}`).to.equal(id ?? idOf.get(n) ?? "there");
    expect(lines.filter(({ output, plugin_version }) => output.by !== plugin_version)).to.deep.equal([]);
    const first = lines.filter(({ plugin_version }) => plugin_version === "1").length;
    return { first, second: lines.length - first };
  }

  it("a candidate that fails two of five items for good is rolled back, and no item fails", () =>
    // One failure that is charged would end its item.
    withCluster({ "run.max_attempts": 1 }, async (cluster) => {
      const [items, enough] = [240, 200];
      const bench = new Bench(cluster.directory, { isBad: true });
      await startRun(cluster, bench);
      const spec = bench.writeSpec([{ share: 50, minItems: 100 }], "");
      const [hard, easy, old] = [{ from: 0, kind: true }, { from: 0, kind: false }, { from: 1 }];
      const turns = [hard, old, easy, old, hard, old, easy, old, easy, old];
      const all = await beginRelease(cluster, spec, items, { shares: [0.5], turns });
      // Nothing ends meanwhile: what was handed back is given out again as it was.
      const paused = JSON.parse(
        await say(cluster, "release", "pause", "--reason", "lunch", "--json"),
      ) as Status;
      expect([paused.state, paused.reason]).to.deep.equal(["held", "lunch"]);
      expect(await say(cluster, "release", "resume")).to.match(
        /^release of version 2: rolling, stage 1 of 2/,
      );
      bench.limit(enough);
      await cluster.coordinator.event("release_rolled_back");
      const watched = await cluster.run("release", "status", "--watch", "--json");
      expect(watched.code, watched.stderr).to.equal(1);
      bench.letGo();
      await cluster.coordinator.event("run_completed");
      expect((await statusOf(cluster)).state).to.equal("rolled_back");
      expect((await cluster.run("release", "promote")).code, "it is over").to.equal(3);
      const done = expectAllDone(linesOf(await say(cluster, "results")), all);
      expect(done.second, "what it did stays").to.be.within(1, enough);
      const ofSecond = linesOf(await say(cluster, "results", "--plugin-version", "2"));
      expect(ofSecond).to.have.length(done.second);
      expect(ofSecond.filter(({ plugin_version }) => plugin_version !== "2")).to.deep.equal([]);
    }));

  it("a good candidate reaches all items and stays there, also when the leader is killed in each stage", () =>
    withCluster({}, async (cluster) => {
      // No stage can be promoted by the items that end before the leader is killed in it, and each by those that end after.
      // To be promoted the first stage takes 53 items that are given out in it, two of five of which are the candidate's, and the second
      // one 235, three of five; the rest covers those that a leader has given out and another one sees end.
      const [inFirst, inSecond, toAll, items] = [20, 140, 480, 530];
      const bench = new Bench(cluster.directory);
      await startRun(cluster, bench);
      const spec = bench.writeSpec([
        { share: 40, minItems: inFirst + 1 },
        { share: 60, minItems: inSecond + 1 },
      ]);
      const turns = [0, 1, 2, 0, 2].map((from) => ({ from }));
      const all = await beginRelease(cluster, spec, items, { shares: [0.4, 0.6], turns });

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
      const { first, second } = expectAllDone(linesOf(await say(cluster, "results")), all);
      expect(first, "the old version had its part").to.be.greaterThan(0);
      expect(second, "none of the last items is of the old version").to.be.at.least(items - toAll);
    }));

  it("one begun beside `rollout run` restarts nobody, and the run is of either manifest then: it is added to, and up to date", () =>
    withLocalRun({ items: 0 }, async (place) => {
      // Arms are left to chance here. That they are so uneven that none of this many items promotes the stage has a chance of 10^-9.
      const [items, toAll] = [900, 860];
      place.writeInput(items);
      const bench = new Bench(place.directory);
      bench.limit(0);
      const words = (manifest: string, count = 1): string[] => {
        const flags = ["--workers", String(count), "--slots", "4", "--plugin", manifest];
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
      const added = place.launch(words("v2.toml", 2));
      await eventually("a worker more", async () => (await place.workerPids()).length === 2);
      bench.letGo();
      expect((await added.ended).code, added.describe()).to.equal(0);
      expect((await run.ended).code, run.describe()).to.equal(0);
      const lines = (await place.results()) as unknown as Line[];
      const numbered = lines.map((line) => ({ ...line, output: { ...line.output, n: line.output.n - 1 } }));
      const { first, second } = expectAllDone(
        numbered,
        Array.from({ length: items }, (_, n) => ({ n })),
      );
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
