import { resolve } from "node:path";
import { expect } from "chai";
import { outcomeOf } from "../../../../src/compose/local-run/outcome.ts";
import type { Outcome } from "../../../../src/compose/local-run/outcome.ts";
import type { LocalRunSummary } from "../../../../src/compose/local-run/request.ts";
import type { ResultFiles } from "../../../../src/compose/local-run/result-files.ts";

const FILES: ResultFiles = {
  output: "out.jsonl",
  errors: "out.errors.jsonl",
  format: "jsonl",
  order: "completion",
};

function counts(
  done: number,
  failed = 0,
  pending = 0,
  failedByClass: Record<string, number> = { error: failed },
) {
  return { pending, running: 0, done, failed, failedByClass, failureMessages: [] };
}

function outcome(change: Partial<LocalRunSummary>, files = FILES): Outcome {
  const summary: LocalRunSummary = {
    end: { kind: "complete" },
    directory: "out.jsonl.rollout",
    items: 10,
    counts: counts(10),
    failedItem: undefined,
    submitted: { added: 10, known: 0, duplicates: 0 },
    reassigned: 0,
    elapsedMs: 3_000,
    ...change,
  };
  return outcomeOf(summary, files, (...words) => ["rollout run in", ...words].join(" "));
}

describe("what a local run has come to", () => {
  it("says how to look into one that failed, by commands that can be typed as they stand", () => {
    const { lines, exit } = outcome({ counts: counts(8, 2), failedItem: "p-3" });
    expect(exit).to.equal(1);
    expect(lines).to.deep.equal([
      "8 of 10 done in 3s: out.jsonl",
      "2 failed (2 error): out.errors.jsonl",
      "to look into one: rollout coordinator run -c out.jsonl.rollout, and in another terminal: " +
        "rollout explain p-3 -c out.jsonl.rollout",
      "to try them again: rollout run in --retry-failed",
    ]);
  });

  it("is none of success where something failed between actors of which none of them was told", () => {
    const { lines, exit, object } = outcome({ failedInside: { failed: 3, unheard: 1 } });
    expect(exit).to.equal(1);
    expect(object).to.include({ failed: 0, failed_inside: 3, errors: "out.errors.jsonl" });
    expect(lines).to.deep.equal([
      "10 of 10 done in 3s: out.jsonl",
      "3 failed inside, between actors: out.errors.jsonl",
      "to try them again: rollout run in --retry-failed",
    ]);
    const told = outcome({ failedInside: { failed: 2, unheard: 0 } });
    expect([told.exit, told.lines.at(-1)]).to.deep.equal([
      0,
      "2 failed inside, between actors: out.errors.jsonl",
    ]);
  });

  it("names what waits behind failed items of its keys, and both ways to go on", () => {
    const { lines, exit, object } = outcome({
      end: { kind: "parked", items: 7, keys: 2 },
      counts: counts(1, 2, 7),
    });
    expect(exit).to.equal(1);
    expect(object).to.include({ state: "parked", pending: 7 });
    expect(lines).to.deep.equal([
      "not complete: 1 of 10 done: out.jsonl",
      "2 failed (2 error): out.errors.jsonl",
      "7 items wait behind 2 keys that are parked, by a failed item or by `rollout key pause`; to see which: " +
        "rollout coordinator run -c out.jsonl.rollout, and in another terminal: rollout key list --parked -c out.jsonl.rollout",
      "to try the failed items again: rollout run in --retry-failed",
      "to go on without them: rollout run in --on-failed skip",
    ]);
  });

  it("names classes and messages, also of a run that is paused, and how to go on", () => {
    const item = "0123456789ab".padEnd(64, "0");
    const failureMessages = [
      { failureClass: "error", message: "exit code 3: no\u001b", items: 50, attempts: 0, item },
    ];
    const { lines, object, exit } = outcome({
      end: { kind: "paused", reason: "the first 50 items to end have all failed" },
      counts: { ...counts(0, 50, 10), failureMessages },
    });
    expect(exit).to.equal(5);
    expect(lines.slice(1)).to.deep.equal([
      "50 failed (50 error): out.errors.jsonl",
      "  50 error, such as item 0123456789ab: exit code 3: no\\u001b",
      "to go on and try them again: rollout run in --retry-failed",
      "to go on: rollout run in",
    ]);
    expect(object).to.deep.include({
      failure_messages: [{ class: "error", message: "exit code 3: no\u001b", items: 50, attempts: 0, item }],
    });
  });

  it("names no reason where none is known", () => {
    expect(outcome({ counts: counts(8, 2) }).lines.slice(1)).to.deep.equal([
      "2 failed (2 error): out.errors.jsonl",
      "to try them again: rollout run in --retry-failed",
    ]);
  });

  it("counts for a cancelled run what was done and what never ran, and suggests no command that cannot work", () => {
    const change = {
      end: { kind: "cancelled" },
      items: 78,
      counts: counts(60, 6, 0, { cancelled: 6 }),
    } as const;
    expect(outcome(change)).to.deep.include({
      exit: 1,
      lines: [
        "cancelled: 60 of 78 done, 12 never ran: out.jsonl",
        "6 failed (6 cancelled): out.errors.jsonl",
        "a cancelled run does not go on; for more work choose another -o, or remove out.jsonl.rollout out.jsonl " +
          "out.errors.jsonl",
      ],
    });
    expect(outcome(change).object).to.include({ state: "cancelled" });
    const nowhere = { ...FILES, output: undefined, errors: undefined };
    expect(outcome({ ...change, directory: ".rollout/1" }, nowhere).lines.at(-1)).to.contain(
      "name one with -o, or remove .rollout/1",
    );
  });

  it("says of a paused run why it ends, with which code, and how it goes on", () => {
    const { lines, exit } = outcome({
      end: { kind: "paused", reason: "by an operator" },
      counts: counts(3, 0, 7),
    });
    expect(exit).to.equal(5);
    expect(lines).to.deep.equal([
      "paused (by an operator), so this ends with code 5: 3 of 10 done: out.jsonl",
      "to go on: rollout run in",
    ]);
  });

  it("counts the items of this input where the output has more", () => {
    expect(outcome({ counts: counts(5_000) }).lines).to.deep.equal([
      "10 of this input's 10 done in 3s: out.jsonl, with those before 5,000",
    ]);
    expect(outcome({ end: { kind: "already" }, counts: counts(5_000) }).lines).to.deep.equal([
      "nothing to do: 10 of this input's 10 were done before: out.jsonl, with those before 5,000",
    ]);
    expect(outcome({ counts: counts(4_990, 10) }).lines[0]).to.equal(
      "this input's 10 all tried in 3s: out.jsonl, with those before 4,990 of 5,000 done",
    );
    expect(outcome({ end: { kind: "interrupted" }, counts: counts(5_000, 0, 4) }).lines[0]).to.equal(
      "interrupted: 5,000 of 5,004 done (10 of them are of this input): out.jsonl",
    );
  });

  it("is one object for a program where results go to a file, and an object unlike any result behind printed results", () => {
    const fields = ["state", "total", "done", "failed", "failed_by_class", "failure_messages"];
    const others = [
      "failed_inside",
      "pending",
      "running",
      "set_aside",
      "added",
      "known",
      "started_again",
      "pause_reason",
      "output",
      "errors",
      "directory",
    ];
    const all = [...fields, ...others, "duration_ms"];
    expect(outcome({}).object).to.have.all.keys(all);
    const printed = { ...FILES, output: undefined, errors: undefined };
    const { object } = outcome({}, printed);
    expect(object).to.have.all.keys("summary").and.nested.property("summary.output", null);
    expect(object).to.have.nested.property("summary.directory", resolve("out.jsonl.rollout"));
    expect((object as { summary: object }).summary).to.have.all.keys(all);

    const error = { code: "listen_failed", message: "it cannot listen", hint: "choose another" };
    const end = { kind: "given-up", reason: { who: "the coordinator", error, exit: 3 } } as const;
    expect(outcome({ end }, printed).object, "where every command has it")
      .to.have.all.keys("summary", "error")
      .and.deep.include({ error })
      .and.nested.property("summary.state", "given-up");
  });

  it("gives the hint for a user who runs a command, not the hint for a user who starts workers", () => {
    const error = { code: "backend_broken", message: "it does not start", hint: "start the worker again" };
    const end = { kind: "given-up", reason: { who: "worker 1", error, exit: 2 } } as const;
    const broken = outcome({ end });
    expect(broken.exit).to.equal(2);
    expect(broken.error).to.equal(
      "error: it does not start (correct the command or what it needs and run it again; no item was charged)",
    );
    expect(broken.object).to.have.deep.nested.property("error.hint", broken.error?.match(/\((.*)\)$/)?.[1]);
  });

  it("suggests the same command where it may get further, and not where something has to be corrected first", () => {
    const linesOf = (code: string, exit: number | undefined): readonly string[] => {
      const error = { code, message: "it has ended", hint: "do something" };
      return outcome({ end: { kind: "given-up", reason: { who: "worker 1", error, exit } } }).lines;
    };
    for (const [code, exit] of [
      ["backend_broken", 2],
      ["store_corrupt", 6],
      ["internal", 70],
    ] as const)
      expect(linesOf(code, exit), code).to.deep.equal([]);
    for (const [code, exit] of [
      ["process_given_up", undefined],
      ["listen_failed", 3],
      ["store_write_failed", 6],
    ] as const)
      expect(linesOf(code, exit), code).to.deep.equal(["to go on: rollout run in"]);
  });
});
