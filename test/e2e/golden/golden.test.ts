// The shapes that programs and people rely on, against golden files: pages of help, objects of `--json`, fields of events, types
// of the library, files. `npm run golden` writes the golden files anew, and the difference then stands in the commit.
//
// Not here, because a test holds it already:
// - settings, their flags, variables and defaults, and the file of `rollout init`: docs/CONFIGURATION.md; codes of errors with
//   their exit codes: docs/errors.md; topics of events with their levels: docs/EVENTS.md; manifests of plugins: docs/plugins.md
//   (all in test/unit/cli/generated-docs.test.ts)
// - lines of results in JSONL, CSV and OpenAI's form, byte for byte: test/unit/cli/results/formats.test.ts
// - what the completion of shells offers: test/e2e/completion.test.ts
// - messages on the wire: scripts/check-breaking.ts; charts and their snapshots: test/machines/golden.test.ts, structure.json
// - the files that are in the package: test/e2e/package.test.ts; the directory of a run of 0.1: test/e2e/upgrade.test.ts
import { mkdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { stripVTControlCharacters } from "node:util";
import { expect } from "chai";
import { repositoryFile } from "../../../scripts/generate-docs.ts";
import { RolloutHelp, SETTINGS_PAGE } from "../../../src/cli/help.ts";
import { Config } from "../../../src/cli/oclif.ts";
import { EVENTS, TOPICS } from "../../../src/observe/events.ts";
import { withCluster } from "../../support/cluster.ts";
import type { Cluster } from "../../support/cluster.ts";
import { concurrentTests } from "../../support/concurrent.ts";
import { withLocalRun } from "../../support/local-run.ts";
import { runProgram } from "../../support/run-program.ts";
import { withDirectory } from "../../support/temporary-directory.ts";
import type { CommandLine, Recorded } from "./commands-program.ts";
import { Declarations } from "./declarations.ts";
import { fileShapes } from "./file-shapes.ts";
import { expectGolden, sectionsText } from "./golden-file.ts";
import { jsonLines, shapeOf } from "./shape.ts";

/** Pages of help are not wider on any terminal. */
const COLUMNS = 110;
const LIBRARY = "dist/src/index.d.ts";
const EVENT_TYPES = "dist/src/observe/events.d.ts";
/** Commands whose output is events, and the one that ends by SIGABRT. */
const WITHOUT_OBJECT = ["coordinator:run", "coordinator:test-fence", "worker:run"];

/** Items by name: `done`, `fails` again and again, `sleeps`, and `large`, which fails for good; and one without a name. */
const ITEMS = `{"id":"done"}\n{"id":"fails"}\n{"id":"sleeps"}\n{"id":"large"}\n{"n":1}\n`;
/** A key that goes on, and one that its first item parks. */
const KEYED = `{"id":"goes","k":"on"}\n{"id":"large too","k":"parks"}\n{"id":"waits","k":"parks"}\n`;
const WORK = `item=$(cat); echo said >&2; echo kept > "\${ROLLOUT_STATE:-/dev/null}"; case $item in
*fails*) exit 3;; *sleeps*) sleep 600;; *large*) head -c 3000 /dev/zero;; *) echo "$item";; esac`;
const MANIFEST = `name = "work"\nversion = "1"\nbackend = "command"\n[command]\ncommand = ["sh", "work.sh"]\n`;
/** Files that a test has made. */
const OWN_FILES = new Set([
  "rollout.toml",
  "items.jsonl",
  "keyed.jsonl",
  "in.jsonl",
  "work.sh",
  "work.toml",
  "broken.toml",
  "broken.js",
  "go",
]);
/** A worker with it says what is wrong, and leaves, once there is a file `go`. */
const BROKEN = `name = "broken"\nversion = "1"\nbackend = "module"\n[module]\nmodule = "./broken.js"\n`;
const BREAK = `import { existsSync } from "node:fs";
while (!existsSync(import.meta.dirname + "/go")) await new Promise((done) => setTimeout(done, 20));
throw new Error("broken");`;

function command(id: string, ...words: string[]): CommandLine {
  return { id, words: [...words, "--json"] };
}

/** The commands, in an order in which each has its objects; fields that may be null are null in one of them, and are not in another. */
function scenario(workerId: string, brokenId: string): CommandLine[] {
  const explain = (item: string, state: string): CommandLine => ({
    ...{ ...command("explain", item), kind: "ITEM", until: `"state":"${state}"` },
  });
  const exported = (...words: string[]): CommandLine => ({
    ...command("results", "--order", "completion", ...words),
    kind: "-o FILE",
  });
  return [
    { ...command("worker:list"), until: '"trouble":"' },
    ...[workerId, brokenId].map((id) => ({ ...command("explain", id), kind: "WORKER" })),
    command("doctor"),
    // No worker has had an item yet, so there is no pace.
    command("status"),
    command("submit", "items.jsonl", "--plugin", "work.toml", "--dry-run"),
    command("pause", "--reason", "to look"),
    command("submit", "keyed.jsonl", "--plugin", "work.toml", "--key-field", "k"),
    command("submit", "items.jsonl", "--plugin", "work.toml", "--seal"),
    command("key:list", "--waiting"),
    command("key:pause", "on"),
    command("key:resume", "on"),
    command("status"),
    explain("done", "fresh"),
    command("logs", "done"),
    command("resume"),
    explain("done", "done"),
    { ...command("status"), until: '"finished_per_second":[0-9]' },
    explain("fails", "delayed"),
    explain("large", "failed"),
    explain("sleeps", "running"),
    { ...command("explain", workerId), kind: "WORKER" },
    { ...command("key:list"), until: '"phase":"parked".*"error":{' },
    explain("waits", "fresh"),
    command("status"),
    command("key:skip", "parks"),
    { ...command("key:get", "parks", "--state"), until: '"phase":"idle"' },
    { ...command("key:get", "on"), until: '"phase":"idle"' },
    command("key:retire", "on"),
    command("partitions"),
    command("logs", "fails"),
    command("status"),
    command("retry", "--failed", "--dry-run"),
    { ...command("results", "--order", "completion", "--with-input"), until: '"id":null' },
    exported("-o", "out.jsonl"),
    exported("-o", "done.csv", "--errors", "failed.csv", "--format", "csv"),
    exported("-o", "batch.jsonl", "--errors", "batch-errors.jsonl", "--format", "openai"),
    command("cancel", "--yes"),
    command("worker:drain", workerId, "--wait"),
    command("status"),
    command("events"),
    command("machines:list"),
    command("machines:export", "--all"),
    { ...command("machines:export", "run", "--format", "mermaid"), kind: "--format mermaid" },
    command("completion", "bash"),
    command("init", "--dir", "made"),
    command("init", "--dir", "made"),
    command("ca:issue", "-o", "enrolment.pem"),
    command("ca:revoke", "enrolment.pem"),
  ];
}

async function record(cluster: Cluster, lines: readonly CommandLine[]): Promise<Recorded[]> {
  const options = { cwd: cluster.directory, input: JSON.stringify(lines) };
  const { stdout, stderr } = await runProgram("test/e2e/golden/commands-program.ts", [], options);
  expect(stdout, stderr).to.not.equal("");
  const recorded = JSON.parse(stdout) as Recorded[];
  const failed = recorded.filter(({ error }) => error !== undefined);
  expect(failed, stderr).to.deep.equal([]);
  return recorded;
}

/** While the coordinator leads. The backup is no file of the cluster. */
function backedUp(cluster: Cluster): Promise<Recorded> {
  return withDirectory(async (directory) => {
    const words = ["store", "backup", join(directory, "backup"), "--json"];
    return { id: "store:backup", ...(await cluster.run(...words)) };
  });
}

/** It goes on until it is told to end, and no coordinator has to be there. */
async function inspected(cluster: Cluster): Promise<Recorded> {
  const process = cluster.launch(["inspect", "--json"]);
  const stdout = await process.until("its object", () => process.stdout[0]);
  await process.stop();
  return { id: "inspect", stdout };
}

/** Nobody has the database open. The copy is no file of the cluster. */
function copied(cluster: Cluster): Promise<Recorded> {
  return withDirectory(async (directory) => {
    const to = ["--storage-path", join(directory, "copy.db")];
    const words = ["store", "copy", "--from", "data/rollout.db", ...to, "--json"];
    return { id: "store:copy", ...(await cluster.run(...words)) };
  });
}

function withoutOwn(shapes: Readonly<Record<string, string>>): Record<string, string> {
  return Object.fromEntries(Object.entries(shapes).filter(([path]) => !OWN_FILES.has(path)));
}

/** The objects that a command prints, without parts that have a test of their own: the fields of a topic. */
function objectsOf({ id, stdout }: Recorded): unknown[] {
  const objects = jsonLines(stdout) as Record<string, unknown>[];
  // Whether a worker's last words are still shown depends on how soon it is asked: lines, or none.
  if (id === "status")
    return objects.map((object) => {
      const trouble = object["trouble"];
      expect(trouble).to.satisfy(
        (lines: unknown) => Array.isArray(lines) && lines.every((line) => typeof line === "string"),
      );
      return { ...object, trouble: ["a line"] };
    });
  if (id !== "events") return objects;
  return objects.map(({ ts, run_id, kind, topic, level, ...fields }) => {
    const known = TOPICS.find((each) => each === topic);
    expect(Object.keys(fields), String(topic)).to.deep.equal(
      known === undefined ? [] : Object.keys(EVENTS[known].fields),
    );
    return { ts, run_id, kind, topic, level };
  });
}

describe("what programs and people rely on is what it was:", () => {
  // Help changes the one that it has.
  const configuration = (): Promise<Config> =>
    Config.load({ root: repositoryFile(""), userPlugins: false, devPlugins: false });

  const it = concurrentTests(2);

  it("the help of every command and topic", async () => {
    const config = await configuration();
    const { columns } = process.stdout;
    process.stdout.columns = COLUMNS;
    const pages: Record<string, string> = {};
    class PrintedHelp extends RolloutHelp {
      page = "";
      protected override log(...lines: string[]): void {
        this.page += `${lines.join("\n")}\n`;
      }
    }
    const shown = [...config.commands, ...config.topics].filter(({ hidden }) => hidden !== true);
    for (const name of ["", SETTINGS_PAGE, ...shown.map((each) => ("id" in each ? each.id : each.name))]) {
      const help = new PrintedHelp(config);
      await help.show(name);
      const text = stripVTControlCharacters(help.page).replaceAll(/ +$/gm, "");
      const words = name === SETTINGS_PAGE ? ["help", name] : [...name.split(":"), "--help"];
      pages[["rollout", ...words].join(" ").replace("  ", " ")] = text;
    }
    process.stdout.columns = columns;
    const linesOfRun = pages["rollout run --help"]?.split("\n").length;
    expect(linesOfRun, "the page of `rollout run` fits a screen of 50 lines").to.be.within(30, 51);
    expectGolden("help.txt", sectionsText(pages));
  });

  it("the types of the library, and of the fields of events", async () => {
    const declarations = new Declarations(LIBRARY, EVENT_TYPES);
    expectGolden("library.txt", sectionsText(declarations.ofModule(LIBRARY)));
    const fields = declarations.fieldsOf(EVENT_TYPES, "EventPayloads");
    expect(Object.keys(fields)).to.have.members(TOPICS);
    const texts = Object.entries(fields).map(([topic, types]) => [
      topic,
      Object.entries(types)
        .map(([name, type]) => `${name}: ${type}\n`)
        .join(""),
    ]);
    expectGolden("events.txt", sectionsText(Object.fromEntries(texts) as Record<string, string>));
  });

  it("the objects that commands print with --json, and the files of a cluster", () =>
    withCluster({ "run.max_attempts": 1_000, "limits.output": "1KiB" }, async (cluster) => {
      writeFileSync(cluster.file("items.jsonl"), ITEMS);
      writeFileSync(cluster.file("keyed.jsonl"), KEYED);
      writeFileSync(cluster.file("work.sh"), WORK);
      writeFileSync(cluster.file("work.toml"), MANIFEST);
      writeFileSync(cluster.file("broken.toml"), BROKEN);
      writeFileSync(cluster.file("broken.js"), BREAK);
      await cluster.startCoordinator();
      const [worker, broken] = await Promise.all([
        cluster.startWorker({ args: ["--plugin", "work.toml", "--slots", "4"] }),
        cluster.startWorker({ args: ["--plugin", "broken.toml"] }),
      ]);
      writeFileSync(cluster.file("go"), "");
      const recorded = await record(cluster, scenario(await worker.id(), await broken.id()));
      recorded.push(await backedUp(cluster));
      await cluster.coordinator.stop();
      const alone = [["doctor"], ["--version"], ["--help"], ["nonsense"]].map(async (words) => ({
        ...{ id: words.join(), ...(await cluster.run(...words, "--json")) },
      }));
      const walked = {
        id: "machines:simulate",
        ...(await cluster.run("machines", "simulate", "run", "--json")),
      };
      const all = [
        ...recorded,
        ...(await Promise.all(alone)),
        walked,
        await copied(cluster),
        await inspected(cluster),
      ];
      const titleOf = ({ id, kind = "" }: Recorded): string => `rollout ${id.replaceAll(":", " ")} ${kind}`;
      const shapes = [...Map.groupBy(all, titleOf)].map(([title, each]) => [
        title.trim(),
        shapeOf(each.flatMap(objectsOf)),
      ]);
      const seen = new Set([...WITHOUT_OBJECT, ...all.map(({ id }) => id)]);
      const { commandIDs } = await configuration();
      expect(
        commandIDs.filter((id) => !seen.has(id)),
        "it has a test of its own",
      ).to.deep.equal([
        ...[
          "actor:check",
          "actor:export",
          "actor:get",
          "actor:history",
          "actor:list",
          "actor:pause",
          "actor:resume",
        ],
        ...[
          "actor:retire",
          "actor:send",
          "actor:skip",
          "actor:timers",
          "actor:watch",
          "coordinator:step-down",
        ],
        ...["fleet:check", "fleet:end", "fleet:explain", "fleet:list"],
        ...["fleet:logs", "fleet:pause", "fleet:resume", "fleet:scale"],
        ...["key:export", "key:import"],
        ...[
          "release:abort",
          "release:create",
          "release:list",
          "release:pause",
          "release:promote",
          "release:resume",
          "release:status",
        ],
        "run",
      ]);
      expectGolden("json.txt", sectionsText(Object.fromEntries(shapes) as Record<string, string>));
      expectGolden("cluster-files.txt", sectionsText(withoutOwn(fileShapes(cluster.directory))));
    }));

  it("the object of a local run, and the files of its directory while it goes on and when it is over", () =>
    withLocalRun({ items: 2 }, async (place) => {
      mkdirSync(place.file("meanwhile"));
      const state = "out.jsonl.rollout";
      const copied = [`${state}/crew.json`, `${state}/*.lock`, `${state}/state/workers/*.lock`];
      writeFileSync(
        place.file("work.sh"),
        `until [ -e ${state}/crew.json ]; do sleep 0.05; done
         cp ${copied.join(" ")} meanwhile; case $(cat) in *n1*) exit 3;; *) echo '{}';; esac`,
      );
      const { code, stdout, stderr } = await place.run("--max-attempts", "1", "--json");
      expect(code, stderr).to.equal(1);
      const object = { "rollout run": shapeOf(jsonLines(stdout)) };
      expectGolden("local-run.txt", sectionsText({ ...object, ...withoutOwn(fileShapes(place.directory)) }));
    }));
});
