import { existsSync, mkdirSync, readdirSync, readFileSync, rmSync, statSync, writeFileSync } from "node:fs";
import { basename, join } from "node:path";
import { expect } from "chai";
import { concurrentTests } from "../support/concurrent.ts";
import { withLocalRun } from "../support/local-run.ts";
import type { LocalRunPlace, ResultLine } from "../support/local-run.ts";

/** Items of a run of which nothing but failures comes: more than can have begun when it pauses. */
const FAILING = 60;
/** So many have begun when the run pauses, beside those that made it pause. */
const SLOTS = 2;

function numbers(results: readonly ResultLine[]): number[] {
  return results.map(({ output }) => (output as { n: number }).n).sort((one, other) => one - other);
}

function upTo(count: number): number[] {
  return Array.from({ length: count }, (_, at) => at + 1);
}

/**
 * The command to its end, which a pause brings: its first items end, and the next ones, which have begun, once it has paused. Says what
 * was printed.
 */
async function runToPause(place: LocalRunPlace, ending: number, ...flags: string[]): Promise<string> {
  place.hold(ending);
  const run = place.start("--slots", String(SLOTS), ...flags);
  await run.until("its pause", () => run.stderr.find((line) => line.includes("; paused: ")));
  place.hold(ending + SLOTS);
  const { code } = await run.ended;
  place.letGo();
  expect(code, run.describe()).to.equal(5);
  return `${run.stderr.join("\n")}\n`;
}

/** Both commands that it names are typed as they stand. */
async function expectLookingInto(place: LocalRunPlace, look: string): Promise<void> {
  const ended = await place.wordsTo(3, ["status", "-c", "out.jsonl.rollout"]);
  expect(ended.stderr)
    .to.match(/^error: the local run in out\.jsonl\.rollout has ended, with \d+ done and \d+ failed \(/)
    .and.contain("`rollout coordinator run -c out.jsonl.rollout`")
    .and.match(/`rollout run in\.jsonl .* -- sh work\.sh` goes on with it\)\n$/);
  const doctor = await place.wordsTo(0, ["doctor", "-c", "out.jsonl.rollout"]);
  expect(doctor.stdout).to.match(
    /^ok +coordinator +the local run in out\.jsonl\.rollout has ended, with \d+ done/m,
  );
  const [, start = "", explain = ""] =
    /^to look into one: rollout (.*), and in another terminal: rollout (.*)$/.exec(look) ?? [];
  const coordinator = await place.lead(start.split(" "));
  const { stdout } = await place.wordsTo(0, explain.split(" "));
  expect(stdout).to.contain("It has failed as error").and.contain("1 of 1 allowed failures");
  coordinator.send("SIGTERM");
  await coordinator.ended;
}

describe("rollout run", () => {
  const it = concurrentTests(3);

  it("executes each line once, and nothing again; refuses another task on its output; runs the new lines of an edited input only", async () => {
    await withLocalRun({ items: 30, workers: 2 }, async (place) => {
      const first = await place.run();
      expect(first, first.stderr).to.include({ code: 0, stdout: "" });
      expect(first.stderr).to.match(/\n30 of 30 done in \d+s: out\.jsonl\n$/);
      const results = await place.results();
      expect(numbers(results)).to.deep.equal(upTo(30));
      expect(results.every(({ ok, id, output }) => ok && id === `n${(output as { n: number }).n}`)).to.be
        .true;
      expect(await place.journal()).to.have.length(30);
      expect(existsSync(place.file("out.errors.jsonl")), "no failures, no file").to.equal(false);
      expect(await place.processes()).to.deep.equal([]);

      const before = readFileSync(place.file("out.jsonl"), "utf8");
      const log = statSync(place.file("out.jsonl.rollout/coordinator.log")).size;
      const { code, stderr } = await place.run();
      expect({ code, stderr }).to.deep.equal({
        code: 0,
        stderr: "nothing to do: 30 of 30 were done before: out.jsonl\n",
      });
      expect(readFileSync(place.file("out.jsonl"), "utf8")).to.equal(before);
      expect(statSync(place.file("out.jsonl.rollout/coordinator.log")).size).to.equal(log);

      // A file that is not what was left is not believed.
      rmSync(place.file("out.jsonl"));
      const again = await place.runTo(0);
      expect(again.stderr).to.contain(
        "out.jsonl is not there any more: it is written anew, nothing is run again\n",
      );
      expect(readFileSync(place.file("out.jsonl"), "utf8")).to.equal(before);
      expect(await place.journal(), "nothing was executed again").to.have.length(30);

      const words = ["run", "in.jsonl", "-o", "out.jsonl", "--", "sh", "other.sh"];
      const other = await place.wordsTo(2, words);
      expect(other.stderr).to.match(
        /^error: out\.jsonl is of another task: of .*sh work\.sh.*, and this is .*sh other\.sh/,
      );
      const wrong = await place.runTo(2, "--slots", "0");
      expect(wrong.stderr).to.match(/^error: flag --slots: worker\.slots = /);

      place.writeInput(34);
      const text = readFileSync(place.file("in.jsonl"), "utf8");
      // A line that equals another is one more item.
      writeFileSync(place.file("in.jsonl"), `${text}{"id":"n1","n":1}\n`);
      const { stdout } = await place.runTo(0, "--json");
      const account: unknown = JSON.parse(stdout);
      expect(account).to.include({ state: "complete", total: 35, done: 35, added: 5, known: 30 });
      expect(numbers(await place.results())).to.deep.equal([1, ...upTo(34)]);
      expect(await place.journal()).to.have.length(35);
    });
  });

  it("ends with 1 when items fail, names the failures and the command that retries them, and that command works", async () => {
    await withLocalRun({ items: 6 }, async (place) => {
      writeFileSync(place.file("broken"), "");
      const failed = await place.runTo(1, "--max-attempts", "1");
      const again =
        "rollout run in.jsonl -o out.jsonl --workers 1 --max-attempts 1 --retry-failed -- sh work.sh";
      const [which, why, look = "", retry] = failed.stderr.split("\n").slice(-5, -1);
      expect(why).to.match(/^ {2}6 error, such as item [0-9a-f]{12}: exit code 3: it is broken$/);
      expect([which, retry]).to.deep.equal([
        "6 failed (6 error): out.errors.jsonl",
        `to try them again: ${again}`,
      ]);
      await expectLookingInto(place, look);
      expect(await place.results()).to.deep.equal([]);
      const errors = await place.results("out.errors.jsonl");
      expect(errors.map(({ ok, error }) => [ok, error])).to.deep.equal(
        upTo(6).map(() => [false, { class: "error", message: "exit code 3: it is broken" }]),
      );
      expect((await place.run("--max-attempts", "1")).code, "they are still failed").to.equal(1);

      rmSync(place.file("broken"));
      expect((await place.run("--max-attempts", "1", "--retry-failed")).code).to.equal(0);
      expect(numbers(await place.results())).to.deep.equal(upTo(6));
      expect(existsSync(place.file("out.errors.jsonl"))).to.equal(false);
    });
  });

  it("ends with 5 and the reason when a limit pauses it; run again without the limit it goes on", async () => {
    await withLocalRun({ items: 40 }, async (place) => {
      writeFileSync(place.file("broken"), "");
      const paused = await runToPause(place, 3, "--max-attempts", "1", "--max-fails", "3");
      expect(paused).to.match(/\npaused \(.*max_fails.*\), so this ends with code 5: .*\n/);
      expect(paused).to.contain("\nto go on: rollout run in.jsonl ");
      rmSync(place.file("broken"));
      const rest = await place.run();
      expect(rest.code, "those that failed have").to.equal(1);
      expect(rest.stderr).to.contain("it goes on");
      const failed = (await place.results("out.errors.jsonl")).length;
      expect(failed).to.be.within(3, 3 + SLOTS);
      expect(await place.results()).to.have.length(40 - failed);
    });
  });

  it("ends with 5 and says why when nothing but failures comes of it; run again it goes on and asks no more", async () => {
    await withLocalRun({ items: FAILING, secondsEach: 0 }, async (place) => {
      writeFileSync(place.file("broken"), "");
      const once = ["--slots", String(SLOTS), "--max-attempts", "1"];
      const paused = await runToPause(place, 50, "--max-attempts", "1");
      const why = "exit code 3: it is broken";
      expect(paused).to.contain(
        `\npaused (the first 50 items to end have all failed, each with error: ${why}), so this ends with code 5`,
      );
      // In the course of it, and at its end.
      expect(paused).to.match(
        /failed \(\d+ error\); .*\n {2}\d+ error, such as item [0-9a-f]{12}: exit code 3/,
      );
      const [, failed] =
        /errors\.jsonl\n {2}(\d+) error, such as item [0-9a-f]{12}: exit code 3: it is br/.exec(paused) ?? [];
      // Items that had begun fail beside the first 50.
      expect(Number(failed), paused).to.be.within(50, 50 + SLOTS);
      expect(paused).to.contain("\nto go on: rollout run in.jsonl ");
      expect(await place.results(), "none is done").to.deep.equal([]);

      const rest = await place.runTo(1, ...once, "--json");
      const account = JSON.parse(rest.stdout) as { failure_messages: unknown[] };
      expect(account).to.include({ state: "complete", failed: FAILING, done: 0 });
      const [message, ...others] = account.failure_messages;
      expect(message).to.include({ class: "error", message: why, items: FAILING });
      expect(others).to.deep.equal([]);
      // Nothing is started, and it is still known.
      expect((await place.run(...once)).stderr)
        .to.contain(`${FAILING} error, such as item`)
        .and.contain(why);
    });
  });

  it("never pauses for failures when any number of items may fail", async () => {
    await withLocalRun({ items: 60, secondsEach: 0 }, async (place) => {
      writeFileSync(place.file("broken"), "");
      const { stderr } = await place.runTo(1, "--max-attempts", "1", "--max-fails", "none");
      expect(stderr).to.contain("\n60 failed (60 error): out.errors.jsonl\n  60 error, such as item ");
    });
  });

  it("ends with the error of a process that cannot work, and accepts another command where none has ever worked", async () => {
    await withLocalRun({ items: 3 }, async (place) => {
      const words = ["run", "in.jsonl", "-o", "out.jsonl", "--workers", "1", "--", "./not-there"];
      const { code, stderr } = await place.runWords(words);
      expect(code).to.equal(2);
      expect(stderr).to.match(/\nerror: the backend of plugin command does not start: .*not-there.*\n/);
      expect(stderr).to.match(
        /\(correct the command or what it needs and run it again; no item was charged\)\n$/,
      );
      expect(await place.processes()).to.deep.equal([]);

      // It was mistyped: the output is not its own, and neither is the directory.
      const corrected = await place.runTo(0);
      expect(corrected.stderr).to.match(
        /^nothing was recorded of .*not-there.*: out\.jsonl is of this command from now on\n/,
      );
      expect(numbers(await place.results())).to.deep.equal(upTo(3));
    });
  });

  it("refuses a bad line before anything is made", async () => {
    await withLocalRun({ items: 3 }, async (place) => {
      writeFileSync(place.file("in.jsonl"), '{"n":1}\n{"n":2}\n{"n":\n');
      const { code, stderr } = await place.run();
      expect({ code, stderr }).to.deep.equal({
        code: 2,
        stderr:
          "error: in.jsonl:3: not an item: it is not JSON at column 6 (correct that line, or take lines as they are with --text; " +
          "nothing was started)\n",
      });
      expect(existsSync(place.file("out.jsonl.rollout"))).to.equal(false);
    });
  });

  it("leaves an output file alone that it has not written", async () => {
    await withLocalRun({ items: 2 }, async (place) => {
      writeFileSync(place.file("out.jsonl"), "my thesis\n");
      const { stderr } = await place.runTo(2);
      expect(stderr).to.match(
        /^error: cannot go on writing .*out\.jsonl: it has lines that this run did not write /,
      );
      expect(stderr).to.match(/\(choose another file with -o, or move .*out\.jsonl away\)\n$/);
      expect(readFileSync(place.file("out.jsonl"), "utf8")).to.equal("my thesis\n");
      expect(existsSync(place.file("out.jsonl.rollout")), "nothing was made").to.equal(false);
    });
  });

  it("takes standard input, and prints results where no output is named", async () => {
    await withLocalRun({ items: 1 }, async (place) => {
      const words = ["run", "--text", "--order", "input", "--workers", "1", "--", "tr", "a-z", "A-Z"];
      const input = "one\n  two \n\nthree\n";
      const { stdout } = await place.wordsTo(0, words, input);
      const outputs = stdout
        .trim()
        .split("\n")
        .map((line) => (JSON.parse(line) as ResultLine).output);
      expect(outputs).to.deep.equal(["ONE", "TWO", "THREE"]);
      expect((await place.runWords(words, input)).stdout, "printed, not run again").to.equal(stdout);

      const forPrograms = await place.runWords(["run", "--json", ...words.slice(1)], input);
      expect(forPrograms.stdout.startsWith(stdout), "the same lines").to.equal(true);
      const { summary, ...others } = JSON.parse(forPrograms.stdout.slice(stdout.length)) as {
        readonly summary: object;
      };
      expect(summary).to.include({ state: "complete", done: 3, known: 3, output: null });
      expect(others).to.deep.equal({});

      const once = ["run", "--text", "--workers", "1", "--max-attempts", "1"];
      const failing = await place.wordsTo(1, [...once, "--", "false"], "one\n");
      expect(failing.stderr, "with what has to come again").to.contain(
        `to try them again: ... | rollout ${once.join(" ")} --retry-failed -- false\n`,
      );
    });
  });

  it("refuses a command that would lose results or its input, before it makes anything", async () => {
    await withLocalRun({ items: 2 }, async (place) => {
      const text = readFileSync(place.file("in.jsonl"), "utf8");
      for (const [words, refusal] of [
        [["-o", "same", "--errors", "./same"], "-o and --errors name the same file"],
        [["-o", "../" + basename(place.directory) + "/in.jsonl"], "-o names the input"],
        [["-o", "."], "-o . is a directory: name a file"],
        [["-o", "/dev/null"], "-o /dev/null is no file to go on with later: say with --dir"],
        [["--json", "--format", "csv"], "--json on standard output is --format jsonl"],
      ] as const) {
        const { code, stderr } = await place.runWords(["run", "in.jsonl", ...words, "--", "cat"]);
        expect(code).to.equal(2);
        expect(stderr).to.contain(`error: ${refusal}`);
      }
      expect(readFileSync(place.file("in.jsonl"), "utf8")).to.equal(text);
      expect(readdirSync(place.directory)).to.have.members(["in.jsonl", "work.sh"]);
    });
  });

  it("goes on with csv when lines are added, though nothing had failed", async () => {
    await withLocalRun({ items: 3 }, async (place) => {
      const words = ["run", "in.jsonl", "-o", "out.csv", "--format", "csv", "--workers", "1", "--", "cat"];
      expect((await place.runWords(words)).code).to.equal(0);
      expect(existsSync(place.file("out.errors.csv"))).to.equal(false);
      place.writeInput(5);
      await place.wordsTo(0, words);
      expect(readFileSync(place.file("out.csv"), "utf8").split("\r\n")).to.have.length(1 + 5 + 1);
      expect(existsSync(place.file("out.errors.csv"))).to.equal(false);
    });
  });

  it("shows the secrets of its command line to nobody, and keeps them in files that only their owner reads", async () => {
    await withLocalRun({ items: 2 }, async (place) => {
      mkdirSync(place.file("kept"), { mode: 0o755 });
      const secret = "pa55w0rd";
      const command = [
        "env",
        `HF_TOKEN=${secret}`,
        "sh",
        "work.sh",
        "--api-key",
        secret,
        `http://bob:${secret}@h/`,
      ];
      const flags = ["--json", "--workers", "1", "--dir", "kept", "--log-level", "debug"];
      const words = ["run", "in.jsonl", ...flags, "--", ...command];
      const { stdout, stderr } = await place.wordsTo(0, words);
      expect(stdout + stderr).not.to.contain(secret);
      const files = readdirSync(place.file("kept"), { recursive: true, withFileTypes: true })
        .filter((entry) => entry.isFile())
        .map(({ parentPath, name }) => join(parentPath, name));
      const holding = files.filter((file) => readFileSync(file).includes(secret));
      expect(holding).to.deep.equal([place.file("kept/plugin.toml")]);
      expect(statSync(place.file("kept/plugin.toml")).mode & 0o777).to.equal(0o600);
      const task = JSON.parse(readFileSync(place.file("kept/task.json"), "utf8")) as { summary: string };
      expect(task.summary).to.contain(
        "env HF_TOKEN=[redacted] sh work.sh --api-key [redacted] http://bob:[redacted]@h/",
      );
    });
  });

  it("does not print a command that may have secrets in the hint on how to go on", async () => {
    await withLocalRun({ items: 40 }, async (place) => {
      writeFileSync(place.file("broken"), "");
      const command = ["sh", "work.sh", "--api-key", "pa55w0rd"];
      const begin = ["run", "in.jsonl", "-o", "out.jsonl", "--workers", "1", "--max-attempts", "1"];
      const paused = await place.wordsTo(5, [...begin, "--max-fails", "3", "--", ...command]);
      const failed = await place.wordsTo(1, [...begin, "--", ...command]);
      const why = "(it is not shown: it may have secrets)";
      expect(paused.stderr).to.contain(`\nto go on: the same command ${why}\n`);
      expect(failed.stderr).to.contain(`\nto try them again: the same command with --retry-failed ${why}\n`);
      expect(paused.stderr + failed.stderr).not.to.contain("pa55w0rd");
    });
  });

  it("keeps inputs apart whose results go to standard output", async () => {
    await withLocalRun({ items: 1 }, async (place) => {
      place.writeInput(2, "more.jsonl");
      const words = (input: string): string[] => ["run", input, "-o", "-", "--workers", "1", "--", "cat"];
      const linesOf = async (input: string, text?: string): Promise<number> => {
        const { stdout } = await place.wordsTo(0, words(input), text);
        return stdout.trim().split("\n").length;
      };
      expect([await linesOf("in.jsonl"), await linesOf("more.jsonl")]).to.deep.equal([1, 2]);
      expect([await linesOf("-", "1\n2\n3\n"), await linesOf("-", "4\n")]).to.deep.equal([3, 1]);
      const names = readdirSync(place.file(".rollout"));
      expect(names, "one for each, and nothing besides").to.have.length(4);
    });
  });

  it("reports of a cancelled run what never ran, each time", async () => {
    await withLocalRun({ items: 30, secondsEach: 0.1 }, async (place) => {
      place.hold(2);
      const first = place.start();
      await place.untilResults(2);
      await place.wordsTo(0, ["cancel", "--yes", "--config", "out.jsonl.rollout"]);
      expect((await first.ended).code, first.describe()).to.equal(1);
      const done = (await place.results()).length;
      const failed = (await place.results("out.errors.jsonl")).length;
      const words = `cancelled: ${done} of 30 done, ${30 - done - failed} never ran: out.jsonl`;
      expect(first.stderr).to.include(words);
      const { stderr: told } = await place.wordsTo(3, ["status", "-c", "out.jsonl.rollout"]);
      expect(told).to.contain(
        `.rollout was cancelled, with ${done} done and ${failed} failed (to look into it `,
      );
      expect(told).to.not.contain("goes on with it");
      for (const flags of [[], ["--retry-failed"]]) {
        const { code, stderr } = await place.run(...flags);
        expect(code).to.equal(1);
        expect(stderr.split("\n")).to.include(words);
        expect(stderr).to.contain(
          "a cancelled run does not go on; for more work choose another -o, or remove ",
        );
        expect(stderr).to.not.contain("to try them again");
      }
    });
  });

  it("ends with 5 when an operator pauses it, says so, and goes on", async () => {
    await withLocalRun({ items: 15, secondsEach: 0.1 }, async (place) => {
      place.hold(2);
      const first = place.start();
      await place.untilResults(2);
      expect((await place.runWords(["pause", "-c", "out.jsonl.rollout"])).code).to.equal(0);
      place.letGo();
      expect((await first.ended).code, first.describe()).to.equal(5);
      expect(first.stderr.at(-2)).to.match(
        /^paused \(by an operator\), so this ends with code 5: \d+ of 15 done: out\.jsonl$/,
      );
      expect(first.stderr.at(-1)).to.match(/^to go on: rollout run in\.jsonl /);
      const { stderr: told } = await place.wordsTo(3, ["status", "-c", "out.jsonl.rollout"]);
      expect(told).to.match(/\.rollout is paused \(by an operator\), with \d+ done and 0 failed \(/);
      expect(told).to.contain("`rollout run in.jsonl -o out.jsonl --workers 1 -- sh work.sh` resumes it; ");
      expect((await place.run()).code).to.equal(0);
      expect(await place.journal(), "once each").to.have.length(15);
    });
  });
});
