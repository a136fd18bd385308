import { readFileSync, rmSync, writeFileSync } from "node:fs";
import { expect } from "chai";
import { withCluster } from "../support/cluster.ts";
import type { Cluster } from "../support/cluster.ts";
import { concurrentTests } from "../support/concurrent.ts";
import { eventually } from "../support/eventually.ts";
import { restartableAddress } from "../support/listeners.ts";
import type { ProgramResult } from "../support/run-program.ts";

const ITEMS = 6;

type Line = Readonly<Record<string, unknown>>;

/** The first object that a command has printed. */
function object({ stdout, stderr }: ProgramResult): Line {
  const [first] = objects(stdout);
  if (first === undefined) throw new Error(`nothing was printed: ${stderr}`);
  return first;
}

function objects(text: string): Line[] {
  return text
    .split("\n")
    .filter((line) => line !== "")
    .map((line) => JSON.parse(line) as Line);
}

function inputOf(cluster: Cluster, count: number): string {
  const file = cluster.file("in.jsonl");
  const lines = Array.from({ length: count }, (_, at) => `{"id":"line-${at + 1}","n":${at + 1}}\n`);
  writeFileSync(file, lines.join(""));
  return file;
}

describe("an operator", () => {
  const it = concurrentTests(3);

  it("sees failures, takes them back, drains, pauses, resumes and gets every result", async () => {
    await withCluster({ "run.max_attempts": 1 }, async (cluster) => {
      const run = (...words: string[]): Promise<ProgramResult> => cluster.run(...words);
      await cluster.startCoordinator();
      expect((await run("status")).stdout)
        .to.contain("no items yet")
        .and.contain("no workers");

      // Everything fails.
      const broken = await cluster.startWorker({ args: ["--mock-failure-percent", "100"] });
      const brokenId = await broken.id();
      await run("submit", inputOf(cluster, ITEMS));
      const follower = cluster.launch(["results", "--follow", "--order", "completion", "-o", "all.jsonl"]);
      const failures = await lines(cluster, "all.jsonl", ITEMS);
      for (const line of failures) {
        expect(line).to.deep.include({ ok: false, attempt: 1, worker: brokenId, plugin_version: "1" });
        expect(line).to.have.nested.property("error.class", "error");
      }
      const status = await run("status", "--json");
      expect(object(status)).to.deep.include({
        failed: ITEMS,
        pending: 0,
        failed_by_class: { error: ITEMS },
      });
      const failed = await run("explain", "line-3");
      expect(failed.stdout)
        .to.match(/^item [0-9a-f]{64}\n {2}It is number 3 of the run, and "line-3" in the input\.\n/)
        .and.contain("It has failed as error with attempt 1")
        .and.contain("1 of 1 allowed failures");
      const { item } = object(await run("explain", "line-3", "--json"));
      expect(object(await run("explain", String(item).slice(0, 10), "--json"))).to.include({ id: "line-3" });
      const logs = await run("logs", "line-3");
      expect(logs).to.deep.include({
        code: 0,
        stdout: "",
        stderr: "No attempt that has ended left a log.\n",
      });

      // It leaves, and nobody is there.
      const drained = await run("worker", "drain", brokenId, "--wait", "--json");
      expect(object(drained)).to.deep.equal({ worker_id: brokenId, state: "gone" });
      expect(await broken.ended).to.deep.equal({ code: 0, signal: null });
      expect((await run("explain", brokenId)).stdout).to.contain("It has drained and left");
      expect((await run("worker", "list")).stdout).to.match(new RegExp(`^WORKER.*\n${brokenId} {2}gone `));
      const foreseen = await run("retry", "--failed", "--class", "error", "--dry-run", "--json");
      expect(object(foreseen)).to.deep.equal({ retried: ITEMS, skipped: 0, dry_run: true });
      expect(object(await run("retry", "--failed", "--class", "timeout", "--json"))).to.include({
        retried: 0,
      });
      expect((await run("retry", "line-3")).stdout).to.equal("1 item runs again.\n");
      expect((await run("retry", "line-3")).stdout).to.equal(
        "0 items run again; 1 that is not failed stays as it is.\n",
      );
      expect(object(await run("retry", "line-3", "line-4", "--json"))).to.include({ retried: 1, skipped: 1 });
      expect((await run("explain", "line-3", "-c", ".")).stdout).to.contain(
        "There is no worker: `rollout worker run -c .` starts one.",
      );

      // It waits although there is somebody.
      const paused = await run("pause", "--reason", "lunch");
      expect(paused.stdout).to.equal("The run is paused (lunch); no item is with a worker.\n");
      const good = await cluster.startWorker();
      const stopped = await run("status", "-c", ".");
      expect([stopped.code, stopped.stdout]).to.satisfy(
        ([code, text]: [number, string]) =>
          code === 5 && text.includes("`rollout resume -c .` lets it go on"),
      );
      for (const name of ["line-3", await good.id()]) {
        expect((await run("explain", name)).stdout).to.contain("The run is paused (lunch)");
      }
      const none = await run("logs", await good.id());
      expect([none.code, none.stderr]).to.satisfy(
        ([code, text]: [number, string]) => code === 2 && text.includes("is a worker, and logs are of items"),
      );
      expect((await run("resume")).stdout).to.match(
        /^The run goes on: [012] items? (is|are) not final yet\.\n$/,
      );
      await run("retry", "--failed");
      await lines(cluster, "all.jsonl", 2 * ITEMS);

      // It ends.
      await run("submit", "in.jsonl", "--seal");
      expect(await follower.ended).to.deep.equal({ code: 0, signal: null });
      const all = objects(readFileSync(cluster.file("all.jsonl"), "utf8"));
      expect(all.filter(({ ok }) => ok === true).map(({ id }) => id)).to.have.members(
        Array.from({ length: ITEMS }, (_, at) => `line-${at + 1}`),
      );
      expect((await run("cancel", "--yes")).stdout).to.equal("The run is complete already.\n");
      const done = await run("explain", "line-3");
      expect(done.stdout).to.contain("It is done: attempt 2 succeeded").and.contain("error");
      const events = objects((await run("events")).stdout).map(({ topic }) => topic);
      expect(events).to.include.members(["worker_registered", "run_completed"]);
      await expectFormats(cluster);
      await expectWrittenAnew(cluster);
    });
  });

  it("cancels a run for good, when it says yes", async () => {
    await withCluster({ "mock.sleep": "1m" }, async (cluster) => {
      await cluster.startCoordinator();
      const worker = await cluster.startWorker();
      await cluster.run("submit", inputOf(cluster, ITEMS));
      await cluster.coordinator.event("worker_heartbeat", { worker_id: await worker.id(), load: 1 });
      const unasked = await cluster.run("cancel");
      expect(unasked).to.deep.include({ code: 2, stdout: "" });
      expect(unasked.stderr).to.contain("say --yes");
      expect(object(await cluster.run("status", "--json"))).to.include({ state: "open", done: 0, failed: 0 });

      const cancelled = await cluster.run("cancel", "--yes");
      const sentence = "The run is cancelled: 0 results stay, and 4 of its items are never run.\n";
      expect(cancelled).to.deep.include({ code: 0, stdout: sentence });
      expect((await cluster.run("status")).code).to.equal(1);
      const results = await cluster.run("results");
      expect(results.code).to.equal(1);
      expect(results.stderr).to.equal("The run was cancelled: 4 of its items were never run.\n");
      // The worker's items, started or not.
      expect(objects(results.stdout)).to.have.length(2);
      expect(object(results)).to.have.nested.property("error.class", "cancelled");
      const waiting = (await cluster.run("explain", `line-${ITEMS}`)).stdout;
      expect(waiting).to.contain("the run was cancelled while it waited");
      expect((await cluster.run("retry", "--failed")).stderr).to.contain("the run was cancelled, for good");
    });
  });

  it("gets the results that there are in order of input, and is told how many are missing", async () => {
    await withCluster({ "mock.sleep": "30s" }, async (cluster) => {
      await cluster.startCoordinator();
      await cluster.run("submit", inputOf(cluster, ITEMS));
      // The first is never done; the worker that does the others has no time for it.
      const slow = await cluster.startWorker();
      await slow.until("the first item", () => true);
      await cluster.coordinator.event("worker_heartbeat", { worker_id: await slow.id(), load: 1 });
      await cluster.startWorker({ args: ["--mock-sleep", "0ms"] });
      const reading = (): Promise<ProgramResult> => cluster.run("results", "--order", "completion");
      let byCompletion = await reading();
      while (objects(byCompletion.stdout).length === 0) byCompletion = await reading();
      expect(byCompletion.code).to.equal(0);
      const byInput = await cluster.run("results");
      expect(byInput).to.deep.include({ code: 0, stdout: "" });
      expect(byInput.stderr).to.match(
        /the next item is not final\. `--order completion` gives all \d that are\.\n$/,
      );
    });
  });

  it("is told what a dry run would submit, and nothing is submitted", async () => {
    await withCluster({}, async (cluster) => {
      await cluster.startCoordinator();
      await cluster.run("submit", inputOf(cluster, 2));
      writeFileSync(cluster.file("more.jsonl"), '{"id":"line-1","n":1}\n5\n5\n5\n{"id":"line-1","n":1}\n');
      const foreseen = { added: 4, known: 1, duplicates: 3 };
      const dry = await cluster.run("submit", "more.jsonl", "--dry-run", "--seal");
      expect(dry).to.deep.include({
        code: 0,
        stdout: "4 items would be new, 1 known; 3 lines equal one before\n",
      });
      expect(object(await cluster.run("status", "--json"))).to.include({ pending: 2, sealed: false });
      const done = await cluster.run("submit", "more.jsonl", "--json");
      expect(object(done)).to.deep.equal({ ...foreseen, sealed: false, dry_run: false });
      const again = await cluster.run("submit", "more.jsonl", "--dry-run", "--json");
      expect(object(again)).to.include({ added: 0, known: 5, duplicates: 3 });
      writeFileSync(cluster.file("more.jsonl"), "1\n{\n");
      const refused = await cluster.run("submit", "more.jsonl", "--dry-run");
      expect(refused.code).to.equal(2);
      expect(refused.stderr).to.match(/^error: more\.jsonl:2: not an item: .*; nothing was started\)\n$/);
    });
  });

  it("ends `--follow` when nobody reads its output any more, also while nothing happens", async () => {
    await withCluster({}, async (cluster) => {
      await cluster.startCoordinator();
      const intoHead = { wrapper: ["sh", "-c", '"$@" | head -n 1', "sh"] };
      const followers = [
        cluster.launch(["events", "--follow"], intoHead),
        cluster.launch(["status", "--watch", "--json"], intoHead),
      ];
      for (const follower of followers) {
        expect(await follower.ended).to.deep.equal({ code: 0, signal: null });
        expect(follower.stdout).to.have.length(1);
      }
    });
  });

  it("follows the results of a run whose coordinator is away when it begins, or has never been there", async () => {
    await withCluster({}, async (cluster) => {
      await cluster.configure({ "transport.listen_addr": await restartableAddress() });
      const early = cluster.launch(["results", "--follow"]);
      const why =
        /^Waiting: cannot read the CA's certificate at .*\(start the coordinator, which makes it on /;
      await early.until("its waiting", () => early.stderr.find((line) => why.test(line)));
      await cluster.startCoordinator();
      await cluster.startWorker();
      await cluster.run("submit", inputOf(cluster, ITEMS), "--seal");
      await cluster.coordinator.event("run_completed");
      await cluster.coordinator.stop();
      const follower = cluster.launch(["results", "--follow"]);
      await follower.until("its waiting", () => follower.stderr.find((line) => line.startsWith("Waiting: ")));
      await cluster.startCoordinator();
      for (const each of [early, follower]) {
        expect(await each.ended, each.describe()).to.deep.equal({ code: 0, signal: null });
        expect(each.stdout).to.have.length(ITEMS);
      }
    });
  });

  it("watches the status of a run whose coordinator has never been up when the watch begins", async () => {
    await withCluster({}, async (cluster) => {
      await cluster.configure({ "transport.listen_addr": await restartableAddress() });
      const watchers = [
        cluster.launch(["status", "--watch"]),
        cluster.launch(["events", "--follow"]),
        cluster.launch(["worker", "list", "--watch"]),
      ];
      for (const watcher of watchers)
        await watcher.until("its waiting", () =>
          watcher.stderr.find((line) => line.startsWith("Waiting: cannot read the CA's certificate at ")),
        );
      await cluster.startCoordinator();
      await cluster.startWorker();
      for (const watcher of watchers) await watcher.until("its first line", () => watcher.stdout[0]);
      await cluster.run("submit", inputOf(cluster, 1), "--seal");
      const [status, ...others] = watchers;
      expect(await status?.ended, status?.describe()).to.deep.equal({ code: 0, signal: null });
      for (const other of others) other.send("SIGINT");
      for (const other of others)
        expect(await other.ended, other.describe()).to.deep.equal({ code: 0, signal: null });
    });
  });

  it("is told in one line what is wrong with a command", async () => {
    await withCluster({}, async (cluster) => {
      await cluster.startCoordinator();
      for (const [words, message] of [
        [["retry"], "error: say --failed, or name items (see `rollout retry --help`)\n"],
        [["retry", "nothing-like-it"], /^error: the run has no item nothing-like-it \(.*\)\n$/],
        [["explain", ""], /^error: the run has no item, worker or actor "" \(.*\)\n$/],
        [["logs", "x".repeat(300)], /^error: the run has no item x{64}… \(.*\)\n$/],
        [["explain", "abcdef"], /^error: the run has no item, worker or actor abcdef \(.*\)\n$/],
        [["logs", "line-1", "--attempt", "0"], /^error: --attempt takes a whole number from 1, not 0 \(/],
        [["worker", "drain", "W1"], /^error: W1 is no worker's id: .*\n$/],
        [["worker", "drain", cluster.runId], /^error: the run has no worker \w+ \(.*\)\n$/],
        [["results", "--format", "xml"], /^error: Expected --format=xml to be one of: jsonl, csv, openai \(/],
        [["results", "-o", "no/such/file"], /^error: cannot write no\/such\/file: it does not exist \(/],
        [["results", "-o", "x", "--errors", "./x"], /^error: -o and --errors name the same file \(/],
        [["results", "--follow", "--errors", "x"], /^error: --errors with --follow needs -o FILE/],
        [
          ["results", "--format", "openai", "--with-input"],
          /^error: --format openai has no place for --with-input \(/,
        ],
        [["results", "--json", "--format", "csv"], /^error: --json on standard output is --format jsonl \(/],
      ] as const) {
        const { code, stderr } = await cluster.run(...words);
        expect(code, words.join(" ")).to.be.oneOf([2, 3]);
        if (typeof message === "string") expect(stderr).to.equal(message);
        else
          expect(stderr)
            .to.match(message)
            .and.satisfy((text: string) => text.split("\n").length === 2);
      }
    });
  });
});

/** The lines of a growing file once there are so many. */
async function lines(cluster: Cluster, name: string, count: number): Promise<Line[]> {
  const look = (): Line[] => {
    try {
      return objects(readFileSync(cluster.file(name), "utf8"));
    } catch {
      return [];
    }
  };
  return eventually(`${count} lines in ${name}`, () => look().length >= count && look());
}

/** A file that was taken away is written once more, and whoever took it is told. */
async function expectWrittenAnew(cluster: Cluster): Promise<void> {
  const words = ["results", "--follow", "--order", "completion", "-o", "all.jsonl"];
  const before = readFileSync(cluster.file("all.jsonl"), "utf8");
  expect((await cluster.run(...words)).stderr, "it goes on").to.equal("");
  rmSync(cluster.file("all.jsonl"));
  const { code, stderr } = await cluster.run(...words);
  expect({ code, stderr }).to.deep.equal({
    code: 0,
    stderr: "all.jsonl is not there any more: it is written anew, nothing is run again\n",
  });
  // A run that is over has the last result of an item that was retried.
  const ofItem = (text: string): unknown[] => objects(text).filter(({ ok }) => ok === true);
  expect(ofItem(readFileSync(cluster.file("all.jsonl"), "utf8"))).to.deep.equal(ofItem(before));
}

/** The same results in every format, in order of input. */
async function expectFormats(cluster: Cluster): Promise<void> {
  const ids = Array.from({ length: ITEMS }, (_, at) => `line-${at + 1}`);
  const printed = await cluster.run("results", "--with-input");
  expect(printed.code).to.equal(0);
  expect(objects(printed.stdout).map(({ id }) => id)).to.deep.equal(ids);
  expect(objects(printed.stdout)[2]).to.deep.include({
    input: { id: "line-3", n: 3 },
    output: { id: "line-3", n: 3 },
  });
  const csv = await cluster.run("results", "--format", "csv", "-o", "out.csv", "--json");
  expect(object(csv)).to.deep.equal({
    results: ITEMS,
    failures: 0,
    output: "out.csv",
    errors: null,
    end: true,
  });
  expect(readFileSync(cluster.file("out.csv"), "utf8").split("\r\n")).to.have.length(ITEMS + 2);
  const openai = ["--format", "openai", "-o", "out.jsonl", "--errors", "errors.jsonl"];
  expect((await cluster.run("results", ...openai)).stdout).to.equal(
    "6 results in out.jsonl, 0 failures in errors.jsonl\n",
  );
  const batch = objects(readFileSync(cluster.file("out.jsonl"), "utf8"));
  expect(batch.map(({ custom_id }) => custom_id)).to.deep.equal(ids);
  expect(readFileSync(cluster.file("errors.jsonl"), "utf8")).to.equal("");
}
