import { spawn } from "node:child_process";
import { once } from "node:events";
import {
  mkdirSync,
  readdirSync,
  readFileSync,
  renameSync,
  rmSync,
  statSync,
  symlinkSync,
  truncateSync,
  writeFileSync,
} from "node:fs";
import { fileURLToPath } from "node:url";
import { expect } from "chai";
import { sleep, systemClock } from "../../../../src/base/clock.ts";
import { cursorFileOf } from "../../../../src/cli/results/cursor-file.ts";
import { FORMAT_NAMES, formatOf } from "../../../../src/cli/results/format.ts";
import type { FormatName } from "../../../../src/cli/results/format.ts";
import { checkResultTarget, openResultSink } from "../../../../src/cli/results/result-sink.ts";
import type { ResultSink, ResultTarget } from "../../../../src/cli/results/result-sink.ts";
import { madePages } from "../../../support/made-results.ts";
import { failureOf } from "../../../support/rejection.ts";
import { useTemporaryDirectory } from "../../../support/temporary-directory.ts";

const WRITER = fileURLToPath(new URL("./results-writer-program.ts", import.meta.url));

/** The contents of results and errors files of `count` results. */
function expected(count: number, format: FormatName): { output: string; errors: string } {
  const { header, line } = formatOf(format);
  const results = [...madePages(count, count)].flatMap((page) => page.results);
  const lines = (ok: boolean): string =>
    results
      .filter((result) => result.ok === ok)
      .map(line)
      .join("");
  return { output: header + lines(true), errors: header + lines(false) };
}

async function writeAll(sink: ResultSink, count: number, size: number): Promise<void> {
  for (const page of madePages(count, size, sink.cursor)) await sink.write(page);
  await sink.close();
}

describe("a sink of results", () => {
  const directory = useTemporaryDirectory();
  const read = (name: string): string => readFileSync(directory.file(name), "utf8");
  const target = (change: Partial<ResultTarget> = {}): ResultTarget => ({
    output: directory.file("out"),
    format: "jsonl",
    mode: "grow",
    runId: "a run",
    order: "completion",
    ...change,
  });

  for (const format of FORMAT_NAMES) {
    for (const mode of ["replace", "grow"] as const) {
      it(`writes results and failures as ${format} into files of their own (${mode})`, async () => {
        const sink = await openResultSink(target({ format, mode, errors: directory.file("errors") }));
        await writeAll(sink, 20, 7);
        expect({ output: read("out"), errors: read("errors") }).to.deep.equal(expected(20, format));
        expect(sink).to.include({ results: 20, failures: 6, cursor: "20" });
      });
    }
  }

  it("knows an item that has failed, also when the next sink goes on with the file", async () => {
    const sink = await openResultSink(target());
    const [page] = madePages(20, 4);
    if (page === undefined) throw new Error("there is a page");
    const results = page.results.map((result, at) => (at === 2 ? { ...result, id: "p-3" } : result));
    expect(sink.failedItem).to.equal(undefined);
    await sink.write({ ...page, results });
    await sink.abandon();
    for (const [anew, known] of [
      [false, "p-3"],
      [true, undefined],
    ] as const) {
      const next = await openResultSink(target({ anew }));
      expect(next.failedItem).to.equal(known);
      await next.close();
    }
  });

  it("names an item by the digits of its id when its label cannot be typed", async () => {
    const [page] = madePages(3, 3);
    if (page === undefined) throw new Error("there is a page");
    for (const id of [undefined, "--all", "two words", ""]) {
      const sink = await openResultSink(target({ anew: true }));
      await sink.write({ ...page, results: page.results.map((result) => ({ ...result, id })) });
      expect(sink.failedItem).to.match(/^[0-9a-f]{12}$/);
      await sink.close();
    }
  });

  it("writes failures among the results when there is no file for them", async () => {
    await writeAll(await openResultSink(target()), 20, 7);
    expect(
      read("out")
        .split("\n")
        .map((line) => line.includes('"ok":false'))
        .slice(0, 6),
    ).to.deep.equal([false, false, true, false, false, true]);
  });

  describe("into a file that is replaced", () => {
    it("removes temporary files of a dead writer, and none of a live one", async () => {
      const [ofDead, ofAlive] = [".out.4194304.partial", `.out.${process.ppid}.partial`];
      for (const name of [ofDead, ofAlive]) writeFileSync(directory.file(name), "half a li");
      await writeAll(await openResultSink(target({ mode: "replace" })), 3, 3);
      expect(readdirSync(directory.path)).to.have.members([ofAlive, "out"]);
    });

    it("shows the old file until the new one is whole, and leaves nothing else", async () => {
      writeFileSync(directory.file("out"), "before");
      const sink = await openResultSink(target({ mode: "replace" }));
      for (const page of madePages(20, 7)) await sink.write(page);
      expect(read("out")).to.equal("before");
      await sink.close();
      expect(read("out").split("\n")).to.have.length(21);
      expect(readdirSync(directory.path)).to.deep.equal(["out"]);
    });

    it("leaves the old file when the writing is given up, and nothing beside it", async () => {
      writeFileSync(directory.file("out"), "before");
      const sink = await openResultSink(target({ mode: "replace" }));
      for (const page of madePages(20, 7)) await sink.write(page);
      await sink.abandon();
      expect(read("out")).to.equal("before");
      expect(readdirSync(directory.path)).to.deep.equal(["out"]);
    });

    it("writes to the target of a link, and forgets the progress of an earlier file that grew there", async () => {
      await writeAll(await openResultSink(target()), 3, 3);
      symlinkSync(directory.file("out"), directory.file("link"));
      await writeAll(
        await openResultSink(target({ mode: "replace", output: directory.file("link") })),
        20,
        20,
      );
      expect(read("out").split("\n")).to.have.length(21);
      await writeAll(await openResultSink(target({ mode: "replace" })), 20, 20);
      expect(readdirSync(directory.path)).to.have.members(["out", "link"]);
    });

    it("replaces regular files only", async () => {
      await writeAll(await openResultSink(target({ mode: "replace", output: "/dev/null" })), 3, 3);
      expect(statSync("/dev/null").isCharacterDevice()).to.equal(true);
    });
  });

  describe("into a file that grows", () => {
    it("goes on where the last sink ended, and cuts off the half line of a crash", async () => {
      const errors = directory.file("errors");
      const first = await openResultSink(target({ errors }));
      for (const page of madePages(12, 4)) await first.write(page);
      // As if it was killed while it wrote: it was neither closed nor abandoned.
      writeFileSync(directory.file("out"), '{"item":"00'.repeat(1_000), { flag: "a" });
      writeFileSync(errors, "\u0000\u0000", { flag: "a" });
      const second = await openResultSink(target({ errors }));
      expect(second).to.include({ cursor: "12", results: 12, failures: 4 });
      await writeAll(second, 20, 7);
      expect(await failureOf(first.close()), "who was not dead").to.include({ code: "output_not_continued" });
      expect({ output: read("out"), errors: read("errors") }).to.deep.equal(expected(20, "jsonl"));
    });

    const TROUBLES: readonly [what: string, make: (file: string) => void][] = [
      ["taken away", (file) => rmSync(file)],
      ["moved", (file) => renameSync(file, `${file}.moved`)],
      ["emptied", (file) => truncateSync(file)],
      ["replaced", (file) => (rmSync(file), writeFileSync(file, "mine\n"))],
      ["written to", (file) => writeFileSync(file, "mine\n", { flag: "a" })],
    ];
    for (const [what, make] of TROUBLES)
      for (const name of ["out", "errors"])
        for (const when of ["before the last page", "at the end"])
          it(`is not said to be complete when ${name} was ${what} meanwhile, ${when}`, async () => {
            const sink = await openResultSink(target({ errors: directory.file("errors") }));
            const pages = [...madePages(20, 7)];
            for (const page of pages.slice(0, -1)) await sink.write(page);
            if (when !== "at the end") make(directory.file(name));
            for (const page of pages.slice(-1)) await sink.write(page);
            if (when === "at the end") make(directory.file(name));
            expect(await sink.lostFile()).to.equal(directory.file(name));
            const failed = await failureOf(sink.close());
            expect(failed).to.include({ code: "output_not_continued" });
            expect(failed.message).to.include(directory.file(name));
          });

    it("writes nothing when there are no new results", async () => {
      await writeAll(await openResultSink(target({ format: "csv" })), 20, 7);
      const before = read("out");
      await (await openResultSink(target({ format: "csv" }))).close();
      expect(read("out")).to.equal(before);
    });

    it("can be moved together with its errors file", async () => {
      await writeAll(await openResultSink(target({ errors: directory.file("errors") })), 3, 3);
      const moved = directory.file("moved");
      mkdirSync(moved);
      for (const name of ["out", "errors", "out.cursor"]) writeFileSync(`${moved}/${name}`, read(name));
      const sink = await openResultSink(target({ output: `${moved}/out`, errors: `${moved}/errors` }));
      await writeAll(sink, 20, 7);
      expect(read("moved/out")).to.equal(expected(20, "jsonl").output);
    });

    for (const [what, spoil, reason] of [
      [
        "is somebody else's",
        () => writeFileSync(directory.file("out"), "mine"),
        "it has lines that this run did not write",
      ],
      ["was shortened", () => truncateSync(directory.file("out"), 10), "it is shorter than"],
      ["has a damaged cursor", () => writeFileSync(cursorFileOf(directory.file("out")), "{}"), "is damaged"],
    ] as const) {
      it(`is refused when it ${what}, and not touched`, async () => {
        if (what !== "is somebody else's") await writeAll(await openResultSink(target()), 20, 7);
        spoil();
        const before = read("out");
        const error = await failureOf(openResultSink(target()));
        expect(error.code).to.equal("output_not_continued");
        expect(error.message).to.contain(reason);
        expect(read("out")).to.equal(before);
      });
    }

    for (const name of ["out", "errors"]) {
      it(`is refused when a byte of ${name} was changed, and is not touched; a file that 0.1 has begun is accepted`, async () => {
        const wanted = target({ errors: directory.file("errors") });
        await writeAll(await openResultSink(wanted), 20, 7);
        const cursor = read("out.cursor");
        const changed = read(name).replace('"attempt":1', '"attempt":7');
        expect(changed).to.not.equal(read(name));
        writeFileSync(directory.file(name), changed);
        const error = await failureOf(openResultSink(wanted));
        expect(error).to.include({ code: "output_not_continued" });
        expect(error.message).to.contain(directory.file(name));
        expect(read(name)).to.equal(changed);
        const of01 = cursor.replace(/,"(checksum|errorsChecksum)":\d+/g, "").replace('"output":"out",', "");
        expect(of01).to.match(
          /^\{"version":1,"begun":\{[^}]*\},"progress":\{"cursor":"20","bytes":\d+,"errorsBytes":\d+,"res/,
        );
        writeFileSync(directory.file("out.cursor"), of01);
        await (await openResultSink(wanted)).close();
        expect(read(name)).to.equal(changed);
      });
    }

    it("is refused when its errors file is not rollout's", async () => {
      writeFileSync(directory.file("errors"), "mine");
      const error = await failureOf(openResultSink(target({ errors: directory.file("errors") })));
      expect(error).to.include({ code: "output_not_continued" });
      expect(error.message, "the one that is in the way").to.contain(
        `cannot go on writing ${directory.file("errors")}: `,
      );
      expect(error.hint).to.match(/^choose another file with --errors, or move .*errors away$/);
      expect(read("errors")).to.equal("mine");
      expect(readdirSync(directory.path), "nothing was made").to.deep.equal(["errors"]);
    });

    for (const format of FORMAT_NAMES) {
      it(`goes on when its errors file, in which no failure stood, was removed (${format})`, async () => {
        const both = target({ format, errors: directory.file("errors") });
        const sink = await openResultSink(both);
        const [page] = madePages(2, 2);
        if (page === undefined) throw new Error("there is a page");
        await sink.write(page);
        await sink.close();
        expect(sink.failures).to.equal(0);
        rmSync(directory.file("errors"));
        const again = await openResultSink(both);
        expect(again).to.include({ cursor: "2", missing: undefined });
        await writeAll(again, 20, 7);
        expect({ output: read("out"), errors: read("errors") }).to.deep.equal(expected(20, format));
      });

      for (const gone of ["out", "errors"]) {
        it(`is written anew when the user has removed ${gone}, which is reported (${format})`, async () => {
          const both = target({ format, errors: directory.file("errors") });
          await writeAll(await openResultSink(both), 20, 7);
          rmSync(directory.file(gone));
          const again = await openResultSink(both);
          expect(again).to.include({ cursor: "", results: 0, failures: 0, missing: directory.file(gone) });
          await writeAll(again, 20, 7);
          expect({ output: read("out"), errors: read("errors") }).to.deep.equal(expected(20, format));
        });
      }
    }

    it("may be begun with other options once it was removed", async () => {
      await writeAll(await openResultSink(target()), 20, 7);
      rmSync(directory.file("out"));
      await writeAll(
        await openResultSink(target({ format: "csv", errors: directory.file("errors") })),
        20,
        7,
      );
      expect({ output: read("out"), errors: read("errors") }).to.deep.equal(expected(20, "csv"));
    });

    it("is refused when it was removed and its errors file is not rollout's", async () => {
      await writeAll(await openResultSink(target()), 20, 7);
      rmSync(directory.file("out"));
      writeFileSync(directory.file("errors"), "mine");
      const error = await failureOf(openResultSink(target({ errors: directory.file("errors") })));
      expect(error.message).to.contain("it has lines that this run did not write");
      expect(read("errors")).to.equal("mine");
    });

    it("can be begun anew over the present content", async () => {
      await writeAll(await openResultSink(target()), 20, 7);
      await writeAll(await openResultSink(target({ anew: true })), 20, 7);
      expect(read("out").split("\n")).to.have.length(21);
    });

    it("can be checked beforehand: the check refuses what the sink would refuse, and makes no file", async () => {
      await checkResultTarget(target());
      expect(readdirSync(directory.path)).to.deep.equal([]);
      writeFileSync(directory.file("out"), "mine");
      const error = await failureOf(checkResultTarget(target()));
      expect(error.hint).to.match(/^choose another file with -o, or move .*out away$/);
      expect(readdirSync(directory.path)).to.deep.equal(["out"]);
    });

    for (const [what, change] of [
      ["another run", { runId: "another" }],
      ["another format", { format: "csv" }],
      ["another order", { order: "input" }],
      ["inputs", { withInput: true }],
      ["results of one plugin version", { pluginVersion: "2" }],
      ["an errors file", { errors: "errors" }],
    ] as const) {
      it(`is refused to a sink with ${what}`, async () => {
        await writeAll(await openResultSink(target()), 20, 7);
        const error = await failureOf(openResultSink(target(change)));
        expect(error.code).to.equal("output_not_continued");
        expect(error.message).to.contain("it was begun with");
      });
    }
  });

  it("leaves no file behind when one of its files cannot be written", async () => {
    for (const mode of ["replace", "grow"] as const) {
      const cannot = target({ mode, output: directory.file("no/out"), errors: directory.file("errors") });
      expect((await failureOf(openResultSink(cannot))).code).to.equal("file_unwritable");
      expect(readdirSync(directory.path)).to.deep.equal([]);
    }
  });

  it("names the file that it cannot write, and the one for which there is no space", async () => {
    const nowhere = await failureOf(openResultSink(target({ output: directory.file("no/out") })));
    expect(nowhere.code).to.equal("file_unwritable");
    for (const mode of ["replace", "grow"] as const) {
      const full = await openResultSink(target({ mode, output: "/dev/full" }));
      const [page] = madePages(3, 3);
      if (page === undefined) throw new Error("there is a page");
      const error = await failureOf(full.write(page));
      expect(error.code).to.equal("output_unwritten");
      expect(error.message).to.equal("cannot write /dev/full: no space left on the disk");
      await full.abandon();
    }
  });

  describe("that is killed at random moments", () => {
    const COUNT = 3_000;
    const KILLS = 12;

    for (const format of ["jsonl", "csv"] as const) {
      it(`has written the same in the end as a sink that was not killed (${format})`, async () => {
        const files = [directory.file("out"), directory.file("errors")];
        let kills = 0;
        for (let start = 0; ; start++) {
          const args = [WRITER, ...files, format, String(COUNT), "11"];
          const child = spawn(process.execPath, args, { stdio: ["ignore", "pipe", "inherit"] });
          const closed = new Promise<number | null>((resolve) => child.once("close", resolve));
          child.stdout.once("data", () => {
            if (start < KILLS) void sleep(systemClock, (start * 7) % 40).then(() => child.kill("SIGKILL"));
          });
          if ((await closed) === 0) break;
          kills++;
        }
        expect(kills, "times it was killed").to.be.above(2);
        expect({ output: read("out"), errors: read("errors") }).to.deep.equal(expected(COUNT, format));
        expect(readdirSync(directory.path)).to.include.members(["out", "errors", "out.cursor"]);
      });
    }
  });

  // So many take 200 MB as objects and 120 MB as lines: a writer that keeps either ends for want of memory.
  it("holds at most a page of 400,000 results in memory", async () => {
    const args = [
      "--max-old-space-size=64",
      WRITER,
      directory.file("out"),
      directory.file("errors"),
      "jsonl",
      "400000",
      "2000",
    ];
    const child = spawn(process.execPath, args, { stdio: ["ignore", "ignore", "inherit"] });
    const [code] = (await once(child, "close")) as [number | null];
    expect(code).to.equal(0);
    expect(statSync(directory.file("out")).size + statSync(directory.file("errors")).size).to.be.above(
      60_000_000,
    );
  });
});
