// The run itself: a test that fails, is skipped, never ends, or is not there makes `make test` fail, and the closing line is
// what mocha counted.
import { expect } from "chai";
import { type Ended, type Files, inHouse } from "./house.ts";

const COPIED = [
  "package.json",
  ".mocharc.json",
  "scripts",
  "test/support/listeners.ts",
  "test/support/mocha-guard.ts",
  "test/support/mocha-statistics.ts",
  "test/support/pace.ts",
  "test/support/postgres-server.ts",
  "src/base/clock.ts",
  "src/base/random.ts",
  "src/config/duration.ts",
];
const PASSES = 'it("passes", () => {});\n';

/** The output of these checks over a house with these files. */
async function runChecks(
  files: Files,
  ...checks: string[]
): Promise<Ended & { lastLine: string | undefined }> {
  const copied = checks.includes("proto-lint") ? [...COPIED, "buf.yaml", "proto"] : COPIED;
  const ended = await inHouse(copied, files, (house) => house.run("node", "scripts/test.ts", ...checks));
  return { ...ended, lastLine: ended.output.trimEnd().split("\n").at(-1) };
}

const FAILING: readonly { title: string; files: Files; lastLine: string; says: RegExp }[] = [
  {
    title: "a test that fails",
    files: { "test/unit/x.test.ts": `${PASSES}it("fails", () => { throw new Error("as planted"); });` },
    lastLine: "1 passed, 1 failed",
    says: /as planted/,
  },
  {
    title: "a test that is skipped",
    files: { "test/unit/x.test.ts": `${PASSES}it.skip("later", () => {});` },
    lastLine: "1 passed, 1 failed",
    says: /Pending test forbidden/,
  },
  {
    title: "a test without a body",
    files: { "test/unit/x.test.ts": `${PASSES}it("later");` },
    lastLine: "1 passed, 1 failed",
    says: /Pending test forbidden/,
  },
  {
    title: "a test that skips itself",
    files: { "test/unit/x.test.ts": `${PASSES}it("later", function () { this.skip(); });` },
    lastLine: "1 passed, 1 failed",
    says: /Pending test forbidden/,
  },
  {
    title: "a test that keeps the others from running",
    files: { "test/unit/x.test.ts": `${PASSES}it.only("alone", () => {});` },
    lastLine: "0 passed, 0 failed",
    says: /`\.only` forbidden/,
  },
  {
    title: "a hook that fails",
    files: { "test/unit/x.test.ts": `${PASSES}after(() => { throw new Error("as planted"); });` },
    lastLine: "1 passed, 1 failed",
    says: /as planted/,
  },
  {
    title: "a file that does not load",
    files: { "test/unit/x.test.ts": PASSES, "test/unit/y.test.ts": 'import "./nowhere.ts";' },
    lastLine: "0 passed, 0 failed",
    says: /nowhere\.ts/,
  },
  {
    title: "no test in the files",
    files: { "test/unit/x.test.ts": 'describe("x", () => {});' },
    lastLine: "0 passed, 0 failed",
    says: /0 passed/,
  },
  { title: "no files", files: {}, lastLine: "0 passed, 0 failed", says: /No test files found/ },
  {
    title: "a process that ends in the middle",
    files: { "test/unit/x.test.ts": `${PASSES}it("ends", () => process.exit(0));` },
    lastLine: "0 passed, 0 failed",
    says: /no statistics/,
  },
  {
    title: "a promise that nobody waits for and that fails",
    files: {
      "test/unit/x.test.ts": `${PASSES}it("x", () => { void Promise.reject(new Error("as planted")); });`,
    },
    lastLine: "2 passed, 1 failed",
    says: /as planted/,
  },
  {
    title: "a test that never ends",
    files: { "test/unit/x.test.ts": `${PASSES}it("waits", () => new Promise(() => {})).timeout(500);` },
    lastLine: "1 passed, 1 failed",
    says: /Timeout of 500ms exceeded/,
  },
  {
    title: "a run that is told to end, which says what failed and what is under way",
    files: {
      "test/unit/x.test.ts": `it("fails", () => { throw new Error("as planted"); });
it("hangs", () => { process.kill(process.pid, "SIGTERM"); return new Promise(() => {}); });`,
    },
    lastLine: "0 passed, 0 failed",
    says: /as planted[^]*under way: hangs/,
  },
  {
    title: "a process left behind",
    files: {
      "test/unit/x.test.ts": `import { spawn } from "node:child_process";
it("leaks", () => spawn("sleep", ["600"], { detached: true, stdio: "ignore" }).unref());`,
    },
    lastLine: "1 passed, 1 failed",
    says: /left behind by tests/,
  },
  {
    title: "a socket left open",
    files: {
      "test/unit/x.test.ts": `import { createServer } from "node:net";
it("leaks", () => void createServer().listen(0, "127.0.0.1"));`,
    },
    lastLine: "1 passed, 0 failed",
    says: /still open after the last test: .*TCPServerWrap/,
  },
];

/** Three tests of the unit run, and two that are not. */
const PASSING: Files = {
  "test/unit/deep/x.test.ts": PASSES + PASSES,
  "test/contract/x.test.ts": PASSES,
  "test/e2e/x.test.ts": PASSES,
  "test/canaries/x.test.ts": PASSES,
};

describe("canary: the run of the tests", () => {
  it("passes tests that pass, in every folder but those that have a run of their own", async () => {
    const { code, lastLine, output } = await runChecks(PASSING, "unit");
    expect(lastLine).to.equal("3 passed, 0 failed", output);
    expect(code).to.equal(0);
  });

  describe("fails on", () => {
    // Each waits more than it works, so all at once.
    const ended = new Map<string, Awaited<ReturnType<typeof runChecks>>>();
    before(async () => {
      await Promise.all(
        FAILING.map(async ({ title, files }) => ended.set(title, await runChecks(files, "unit"))),
      );
    });
    for (const { title, lastLine, says } of FAILING) {
      it(title, () => {
        const run = ended.get(title);
        expect(run?.output).to.match(says);
        expect(run?.lastLine).to.equal(lastLine);
        expect(run?.code).to.equal(1);
      });
    }
  });

  it("adds up all runs, and fails when one of them ran nothing", async () => {
    const { code, output } = await runChecks({ "test/unit/x.test.ts": PASSES }, "unit", "canaries");
    expect(output).to.match(/\nchecks that failed: canaries\n1 passed, 0 failed\n$/);
    expect(code).to.equal(1);
  });

  it("fails on a static check that fails, whatever the tests say", async () => {
    const files = { "test/unit/x.test.ts": PASSES, "proto/rollout/v1/x.proto": "no proto" };
    const { code, output } = await runChecks(files, "unit", "proto-lint");
    expect(output).to.match(/\nchecks that failed: proto-lint\n1 passed, 0 failed\n$/);
    expect(code).to.equal(1);
  });

  it("refuses the name of a check that does not exist", async () => {
    const { code, output } = await runChecks({}, "units");
    expect(output).to.include("no such check: units");
    expect(code).to.equal(1);
  });
});
