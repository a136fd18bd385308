import { expect } from "chai";
import { existsSync, readFileSync, writeFileSync } from "node:fs";
import { systemClock } from "../../../../../src/base/clock.ts";
import { ProcessBackend } from "../../../../../src/worker/backends/process/process-backend.ts";
import type { ProcessBackendOptions } from "../../../../../src/worker/backends/process/process-backend.ts";
import type { Finished } from "../../../../../src/worker/work/execution.ts";
import { BackendRig, isRunning, pidsIn } from "../../../../support/backend-rig.ts";
import { eventually } from "../../../../support/eventually.ts";
import { pace } from "../../../../support/pace.ts";
import { protocolChild } from "./protocol-child.ts";
import { useTemporaryDirectory } from "../../../../support/temporary-directory.ts";
import { VirtualClock } from "../../../../support/virtual-clock.ts";

describe("the process backend", () => {
  const rigs: BackendRig[] = [];
  afterEach(async () => {
    for (const rig of rigs.splice(0)) await rig.close();
  });
  const directory = useTemporaryDirectory();

  async function open(source: string, parts: Partial<ProcessBackendOptions> = {}): Promise<BackendRig> {
    const rig = await BackendRig.open(
      {
        open: (around) =>
          new ProcessBackend({
            ...around,
            // Waits are there, and short.
            random: { unit: () => 0.01, bytes: (count) => new Uint8Array(count) },
            command: protocolChild(source),
            cwd: directory.path,
            concurrency: 1,
            readyTimeoutMs: 15_000,
            killGraceMs: 5_000,
            maxOutputBytes: 10_000,
            maxCheckpointBytes: 1_000,
            maxStateBytes: 1_000,
            ...parts,
          }),
      },
      directory.path,
    );
    rigs.push(rig);
    return rig;
  }

  const READY = `say({ type: "ready" });`;
  /** Answers each item with what `expression` makes of its `line`. */
  const answering = (expression: string, before = READY): string =>
    `${before} onLine((line) => { if (line.type === "item") say({ type: "result", id: line.id, output: ${expression} }); });`;
  /** Does this with each item. */
  const doing = (statements: string): string =>
    `${READY} onLine((line) => { if (line.type === "item") { ${statements} } });`;

  const said = ({ outcome }: Finished): string => {
    if (outcome.kind === "success") return Buffer.from(outcome.output).toString();
    return "message" in outcome ? `${outcome.kind}: ${outcome.message ?? ""}` : outcome.kind;
  };
  const run = async (rig: BackendRig, payload = "1"): Promise<string> =>
    said(await rig.run(Buffer.from(payload)));

  describe("tells a child", () => {
    it("who it is talking to, and of an item all that there is", async () => {
      const source = `let hello; ${READY} onLine((line) => {
        if (line.type === "hello") hello = line; else say({ type: "result", id: line.id, output: [hello, line] });
      });`;
      const rig = await open(source, { concurrency: 2 });
      const checkpoint = Buffer.from("there");
      const given = rig.give(Buffer.from('{"a": 1}'), { attempt: 3, checkpoint });
      expect(JSON.parse(said(await rig.end(given)))).to.deep.equal([
        { type: "hello", protocol: 1, concurrency: 2, max_output_bytes: 10_000 },
        {
          ...{ type: "item", id: 1, item: `01${"00".repeat(31)}`, attempt: 3, run: "the run", slot: 0 },
          ...{ checkpoint: "dGhlcmU=", payload: { a: 1 } },
        },
      ]);
    });

    it("a payload as what its JSON means, or as its text, or as bytes that are none", async () => {
      const source = answering("line.payload ?? line.payload_base64");
      const rig = await open(source);
      expect(await run(rig, "[1,\n 2]")).to.equal("[1,2]");
      expect(await run(rig, "no JSON\n")).to.equal('"no JSON\\n"');
      expect((await rig.run(Uint8Array.of(0xff))).outcome.kind).to.equal("success");
      const texts = await open(answering("line.payload", `say({ type: "ready", payload: "text" });`));
      expect(await run(texts, "12")).to.equal('"12"');
    });

    it("numbers as they are, and takes them so", async () => {
      const source = `${READY} process.stdin.on("data", (data) => {
        const [, id, payload] = /"id":(\\d+).*"payload":(.*)}/.exec(String(data)) ?? [];
        if (id) raw(\`{"type":"result","id":\${id},"output":\${payload}}\\n\`);
      });`;
      expect(await run(await open(source), "12345678901234567890")).to.equal("12345678901234567890");
    });
  });

  it("waits for a child until it is ready, and its items take no time meanwhile", async () => {
    const lateMs = 1_500 * pace();
    const rig = await open(`setTimeout(() => { ${answering("1")} }, ${lateMs});`);
    const givenMs = systemClock.monotonicMs();
    const { outcome, durationMs } = await rig.run(Buffer.from("1"), { timeoutMs: 0.8 * lateMs });
    expect(outcome.kind).to.equal("success");
    // A timer may come a millisecond early.
    expect(durationMs).to.be.at.most(systemClock.monotonicMs() - givenMs - lateMs + 1);
  });

  it("gives one child one item after the other", async () => {
    const rig = await open(answering("process.pid"));
    const first = await run(rig);
    expect([await run(rig), await run(rig)]).to.deep.equal([first, first]);
  });

  it("gives one child several at once, if it takes them", async () => {
    const meeting = `${READY} const ids = []; onLine((line) => {
      if (line.type === "item" && ids.push(line.id) === 4) for (const id of ids) say({ type: "result", id, output: process.pid });
    });`;
    const rig = await open(meeting, { concurrency: 4 });
    const given = ["1", "2", "3", "4"].map((payload) => rig.give(Buffer.from(payload)));
    const pids = await Promise.all(given.map(async (one) => said(await rig.end(one))));
    expect(new Set(pids).size).to.equal(1);
  });

  it("keeps what a child says of an item in its log, and an item's standard error with it", async () => {
    const rig = await open(
      doing(`complain("oh\\n"); say({ type: "log", id: line.id, message: "well" });
        say({ type: "progress", id: line.id, done: 1 }); say({ type: "result", id: line.id, output: 1 });`),
    );
    const { log } = await rig.run(Buffer.from("1"));
    const lines = Buffer.from(log).toString().trim().split("\n").sort();
    expect(lines).to.deep.equal(["oh", "well", '{"type":"progress","id":1,"done":1}'].sort());
  });

  describe("says of an item whose child", () => {
    it("dies that it crashed, with the last that it said, and goes on with another child", async () => {
      const rig = await open(
        doing(`if (line.attempt === 1) { complain("alas\\n"); exit(3); }
        say({ type: "result", id: line.id, output: 1 });`),
      );
      expect(await run(rig)).to.equal("crash: exit code 3: alas");
      expect(said(await rig.run(Buffer.from("1"), { attempt: 2 }))).to.equal("1");
    });

    it("dies with others beside it that nobody can tell whose doing that was", async () => {
      const rig = await open(
        `${READY} let items = 0; onLine((line) => { if (line.type === "item" && ++items === 2) exit(1); });`,
        {
          concurrency: 2,
        },
      );
      const given = [rig.give(Buffer.from("1")), rig.give(Buffer.from("2"))];
      const ends = await Promise.all(given.map(async (one) => said(await rig.end(one))));
      expect(ends).to.deep.equal(Array(2).fill("crash_shared: with other items beside it: exit code 1"));
    });

    it("writes something else to standard output that it did, and takes another child", async () => {
      const rig = await open(
        doing(`if (line.attempt === 1) raw("Hello!\\n");
        else say({ type: "result", id: line.id, output: process.pid });`),
      );
      expect(await run(rig)).to.equal(
        "error: it wrote a line to standard output that is not of the protocol (print to standard error instead): Hello!",
      );
      expect(said(await rig.run(Buffer.from("1"), { attempt: 2 }))).to.match(/^\d+$/);
    });

    for (const [what, line] of [
      ["bytes that are no text", `process.stdout.write(Buffer.from([0xff, 10]));`],
      ["an answer about nothing", `say({ type: "result", id: 99, output: 1 });`],
      ["a result without output", `say({ type: "result", id: line.id });`],
    ] as const)
      it(`writes ${what} that it is an error`, async () => {
        expect(await run(await open(doing(line)))).to.match(/^error: it wrote a line/);
      });

    it("writes a line that never ends that it is too large", async () => {
      const rig = await open(doing(`raw("x".repeat(200000));`));
      expect(await run(rig)).to.match(/^too_large/);
    });

    it("does not answer a request to cancel that it timed out, and ends the child", async () => {
      const rig = await open(doing(`complain(process.pid + "\\n");`), { killGraceMs: 50 });
      const { outcome, log } = await rig.run(Buffer.from("1"), { timeoutMs: 300 });
      expect([outcome.kind, isRunning(Number(Buffer.from(log)))]).to.deep.equal(["timeout", false]);
    });

    it("answers a request to cancel that it timed out, and goes on with that child", async () => {
      const rig = await open(`${READY} onLine((line) => {
        if (line.type === "cancel") say({ type: "cancelled", id: line.id });
        else if (line.type !== "item") return;
        else if (line.attempt === 2) say({ type: "result", id: line.id, output: process.pid });
        else complain(process.pid + "\\n");
      });`);
      const { outcome, log } = await rig.run(Buffer.from("1"), { timeoutMs: 300 });
      const next = said(await rig.run(Buffer.from("1"), { attempt: 2 }));
      expect([outcome.kind, `${next}\n`]).to.deep.equal(["timeout", Buffer.from(log).toString()]);
    });
  });

  it("ends a child at once that has an item which may be running elsewhere soon", async () => {
    const hang = `process.getBuiltinModule("fs").writeFileSync("pids", process.pid + "\\n");`;
    const rig = await open(doing(hang), { killGraceMs: 600_000 });
    const given = rig.give(Buffer.from("1"));
    const pids = await pidsIn(directory.file("pids"));
    rig.executor.fence();
    const { outcome } = await rig.end(given);
    expect([outcome.kind, pids.map(isRunning)]).to.deep.equal(["fenced", [false]]);
  });

  it("tells its trouble: a child that loads, or that ended before it was ready", async () => {
    const clock = new VirtualClock();
    const isReady = `process.getBuiltinModule("fs").existsSync("ready")`;
    const rig = await open(
      `const look = setInterval(() => { if (${isReady}) { clearInterval(look); ${answering("1")} } }, 20);`,
      { clock, readyTimeoutMs: 100_000_000 },
    );
    const trouble = (one: BackendRig): string | undefined => one.backend.trouble?.();
    expect(trouble(rig)).to.equal(undefined);
    const given = rig.give(Buffer.from("1"));
    const said: (string | undefined)[] = [];
    await eventually("it takes almost too long", async () => {
      await clock.advance(5_000_000);
      said.push(trouble(rig));
      return said.at(-1);
    });
    expect(said.at(-1)).to.match(/^loading, for 2\d h$/);
    expect(said.length, "that it loads is no trouble at first").to.be.above(14);
    writeFileSync(directory.file("ready"), "");
    await eventually("the end", async () => {
      await clock.advance(1);
      return rig.finished.length > 0;
    });
    expect([(await rig.end(given)).outcome.kind, trouble(rig)]).to.deep.equal(["success", undefined]);

    const failing = await open(`complain("no GPU\\n"); exit(1);`, { readyTimeoutMs: 1_000_000, clock });
    failing.give(Buffer.from("1"));
    expect(await eventually("the trouble", () => trouble(failing))).to.equal(
      "starting it again, for 0 s: it ended before it was ready: exit code 1: no GPU",
    );
  });

  it("takes another child for one that wants to retire, and no item pays for it", async () => {
    const rig = await open(
      doing(`say({ type: "retire" }); say({ type: "result", id: line.id, output: process.pid });`),
    );
    const pids = [await run(rig), await run(rig), await run(rig)];
    expect(new Set(pids).size).to.equal(3);
    await eventually("they are gone", () => !pids.map(Number).slice(0, 2).some(isRunning));
  });

  it("forgives what is written to standard output before a child is ready", async () => {
    const rig = await open(`raw("welcome to my library\\n"); ${answering("1")}`);
    expect(await run(rig)).to.equal("1");
    expect(rig.log.lines.map(({ message }) => message)).to.deep.equal([
      "a process wrote to standard output before it was ready",
    ]);
  });

  describe("that is broken", () => {
    const starts = (): number =>
      existsSync(directory.file("starts")) ? readFileSync(directory.file("starts"), "utf8").length : 0;
    const COUNT = `process.getBuiltinModule("fs").appendFileSync("starts", "x");`;

    async function brokenWith(rig: BackendRig): Promise<string> {
      const given = rig.give(Buffer.from("1"));
      const reason = await eventually("it is broken", () => rig.broken[0]);
      rig.executor.drain();
      await rig.executor.abandon(5_000);
      expect((await rig.end(given)).outcome.kind).to.equal("preempted");
      return reason;
    }

    it("because no child becomes ready, after three, says why and charges no item", async () => {
      const rig = await open(`${COUNT} complain("no GPU\\n"); exit(1);`);
      expect(await brokenWith(rig)).to.equal("exit code 1: no GPU");
      expect([starts(), rig.broken.length]).to.deep.equal([3, 1]);
    });

    it("because a child takes too long to be ready says so", async () => {
      const rig = await open(`${COUNT} setInterval(() => {}, 1000);`, { readyTimeoutMs: 100 });
      expect(await brokenWith(rig)).to.equal("it was not ready within 100 ms");
    });

    it("because its program is not there says so at once", async () => {
      const rig = await open("", { command: ["nonesuch"] });
      expect(await brokenWith(rig)).to.include("nonesuch");
    });

    it("only while none works: two false starts are none", async () => {
      const rig = await open(
        `${COUNT} if (process.getBuiltinModule("fs").readFileSync("starts").length < 3) exit(1); ${answering("1")}`,
      );
      expect([await run(rig), starts(), rig.broken]).to.deep.equal(["1", 3, []]);
    });
  });

  it("gives what waited for a child that is not ready back when it is told to", async () => {
    const rig = await open(`setInterval(() => {}, 1000);`);
    const given = rig.give(Buffer.from("1"));
    rig.executor.drain();
    await rig.executor.abandon(5_000);
    expect((await rig.end(given)).outcome.kind).to.equal("preempted");
  });
});
