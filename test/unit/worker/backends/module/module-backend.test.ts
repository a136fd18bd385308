import { expect } from "chai";
import { readFile, writeFile } from "node:fs/promises";
import { executeText, useCodeRig } from "../../../../support/code-rig.ts";
import { eventually } from "../../../../support/eventually.ts";
import { VirtualClock } from "../../../../support/virtual-clock.ts";
import { AT_ONCE } from "../../../../../src/worker/backends/backend.ts";

/** One function, which does what its item says. */
const OBEDIENT = `
export default async function obey(item: any, context: any): Promise<unknown> {
  if (item === "throw") throw new RangeError("no way");
  if (item === "throw text") throw "only words";
  if (item === "exit") process.exit(3);
  if (item === "segfault") process.kill(process.pid, "SIGSEGV");
  if (item === "throw later") { setTimeout(() => { throw new Error("too late") }, 1); await new Promise(() => {}); }
  if (item === "loop") { console.log("looping"); for (;;); }
  if (item === "wait") { console.log("waiting"); await new Promise((resolve) => context.signal.addEventListener("abort", resolve)); return "ended"; }
  if (item === "give up") { console.log("waiting"); await new Promise((_, reject) => context.signal.addEventListener("abort", () => reject(context.signal.reason))); }
  if (item === "print") { console.log("to output"); console.error("to error"); process.stdout.write("half a line"); return null; }
  if (item === "nothing") return;
  if (item === "text") return "a text";
  if (item === "bytes") return new Uint8Array([0xff, 0x00, 0x41]);
  if (item === "function") return () => 1;
  if (item === "large") return "x".repeat(100_000);
  if (item === "circle") { const circle: any = {}; circle.circle = circle; return circle; }
  if (item === "pid") return process.pid;
  if (item === "save bytes") { context.saveCheckpoint(new Uint8Array([1, 2])); return; }
  if (item === "save too much") { context.saveCheckpoint("x".repeat(50_000)); return; }
  if (item === "save") { context.saveCheckpoint({ step: 1 }); context.saveCheckpoint({ step: 2 }); return; }
  if (item === "checkpoint") return context.checkpoint instanceof Uint8Array ? [...context.checkpoint] : (context.checkpoint ?? "none");
  if (item === "context") return { itemId: context.itemId, attempt: context.attempt, parameters: context.parameters, env: context.env, inEnvironment: process.env.ROLLOUT_ITEM_ID, directory: process.cwd() };
  return { item, payload: Buffer.from(context.payload).toString() };
}
`;

/** Prints so many times a letter, by JavaScript's own stream and past it. */
const TALKATIVE = `
import { writeSync } from "node:fs";
export default (item: string) => {
  const [letter = "", bytes] = item.split(" ");
  const text = letter.repeat(Number(bytes));
  process.stdout.write(text);
  for (let left = text.length; left > 0;) try { left -= writeSync(2, text.slice(0, left)); } catch {}
};
`;

describe("the module backend", () => {
  const rig = useCodeRig();

  it("gives a function the item, and its result back as JSON", async () => {
    const backend = await rig().module(OBEDIENT);
    const { output } = await executeText(backend, `{"n": 12345678901234567890}`);
    expect(output).to.equal(
      `{"item":{"n":12345678901234567000},"payload":"{\\"n\\": 12345678901234567890}"}`,
    );
  });

  it("tells its trouble while the code loads, once that takes almost as long as it may", async () => {
    const slow = `import { existsSync } from "node:fs";
      while (!existsSync("weights")) await new Promise((resolve) => setTimeout(resolve, 20));\n`;
    const clock = new VirtualClock();
    const patient = await rig().module(slow + OBEDIENT, { clock, loadTimeoutMs: 1_000_000 });
    const prepared = patient.prepare();
    const backend = await rig().module(slow + OBEDIENT, { clock, loadTimeoutMs: 100_000 });
    const loading = backend.prepare();
    expect(backend.trouble()).to.equal(undefined);
    const trouble = await eventually("the trouble", async () => {
      await clock.advance(1_000);
      return backend.trouble();
    });
    expect(trouble).to.match(/^loading, for \d+ s$/);
    expect(patient.trouble(), "it has time").to.equal(undefined);
    await writeFile(rig().directory.file("weights"), "");
    expect(await Promise.all([loading, prepared])).to.deep.equal([undefined, undefined]);
  });

  const OUTPUTS: readonly [item: string, output: string][] = [
    [`"nothing"`, "null"],
    [`"text"`, `"a text"`],
    ["a line that is no JSON", `{"item":"a line that is no JSON","payload":"a line that is no JSON"}`],
  ];
  for (const [item, output] of OUTPUTS) {
    it(`has ${output} as the output of ${item}`, async () => {
      expect((await executeText(await rig().module(OBEDIENT), item)).output).to.equal(output);
    });
  }

  it("takes bytes as they are", async () => {
    const { outcome } = await executeText(await rig().module(OBEDIENT), "bytes");
    expect(outcome.kind === "success" && [...outcome.output]).to.deep.equal([0xff, 0x00, 0x41]);
  });

  it("tells the function which attempt of which item it is, and what the manifest says", async () => {
    const backend = await rig().module(OBEDIENT, { parameters: { width: 64 } });
    const env = { ROLLOUT_ITEM_ID: "abc" };
    const { output } = await executeText(backend, "context", { number: 7, attempt: 3, env });
    expect(JSON.parse(output ?? "")).to.deep.equal({
      itemId: `07${"00".repeat(31)}`,
      attempt: 3,
      parameters: { width: 64 },
      env,
      inEnvironment: "abc",
      directory: rig().directory.path,
    });
  });

  const ERRORS: readonly [item: string, message: string][] = [
    ["throw", "no way"],
    ["throw text", "only words"],
    ["function", "it returned a function, which JSON cannot hold"],
    ["circle", "Converting circular structure to JSON"],
  ];
  for (const [item, message] of ERRORS) {
    it(`ends in an error that says "${message}"`, async () => {
      const { outcome } = await executeText(await rig().module(OBEDIENT), item);
      expect(outcome.kind === "error" && outcome.message).to.include(message);
    });
  }

  it("executes one item after the other in one process, whatever they throw", async () => {
    const backend = await rig().module(OBEDIENT);
    const { output: before } = await executeText(backend, "pid");
    await executeText(backend, "throw");
    expect((await executeText(backend, "pid")).output).to.equal(before);
  });

  it("executes at once what comes at once, each in a process of its own", async () => {
    const backend = await rig().module(OBEDIENT);
    const pids = await Promise.all([1, 2, 3].map((number) => executeText(backend, "pid", { number })));
    expect(new Set(pids.map(({ output }) => output)).size).to.equal(3);
  });

  const DEATHS: readonly [item: string, message: string][] = [
    ["exit", "exit code 3"],
    ["segfault", "SIGSEGV"],
    ["throw later", "an error that nothing caught: too late"],
  ];
  for (const [item, message] of DEATHS) {
    it(`ends in a crash that says "${message}", and goes on with another process`, async () => {
      const backend = await rig().module(OBEDIENT);
      const { outcome } = await executeText(backend, item);
      expect(outcome.kind === "crash" && outcome.message).to.include(message);
      expect((await executeText(backend, "1")).outcome.kind).to.equal("success");
    });
  }

  it("outlives a function that takes all the memory that it may have", async () => {
    const source = `export default () => { const all = []; for (;;) all.push(new Array(1e5).fill(Math.PI)); };`;
    const backend = await rig().module(source, { memoryLimitBytes: 32 * 2 ** 20 });
    expect((await executeText(backend, "1")).outcome.kind).to.equal("crash");
  });

  it("kills a function that loops for ever when it is to end, and goes on with another process", async () => {
    const backend = await rig().module(OBEDIENT);
    const controller = new AbortController();
    const { outcome, log } = await executeText(backend, "loop", {
      signal: controller.signal,
      onLog: () => controller.abort(),
    });
    expect([outcome.kind, log]).to.deep.equal(["preempted", "looping\n"]);
    expect((await executeText(backend, "1")).outcome.kind).to.equal("success");
  });

  it("lets a function end by itself when it is to end", async () => {
    const backend = await rig().module(OBEDIENT, { abortGraceMs: 20_000 });
    const controller = new AbortController();
    const abort = (): void => controller.abort();
    const { output } = await executeText(backend, "wait", { signal: controller.signal, onLog: abort });
    expect(output).to.equal(`"ended"`);
  });

  it("ends preempted, uncharged, when the function throws after its signal has aborted", async () => {
    const backend = await rig().module(OBEDIENT, { abortGraceMs: 20_000 });
    const controller = new AbortController();
    const abort = (): void => controller.abort();
    const { outcome } = await executeText(backend, "give up", { signal: controller.signal, onLog: abort });
    expect(outcome.kind).to.equal("preempted");
  });

  it("gives no grace where there is none", async () => {
    const backend = await rig().module(OBEDIENT, { abortGraceMs: 3_600_000 });
    const controller = new AbortController();
    const { outcome } = await executeText(backend, "loop", {
      signal: controller.signal,
      onLog: () => controller.abort(AT_ONCE),
    });
    expect(outcome.kind).to.equal("preempted");
  });

  it("starts nothing of an attempt that is not wanted any more", async () => {
    const backend = await rig().module(OBEDIENT);
    const { outcome, log } = await executeText(backend, "print", { signal: AbortSignal.abort() });
    expect([outcome.kind, log]).to.deep.equal(["preempted", ""]);
  });

  it("keeps what an attempt prints with that attempt", async () => {
    const backend = await rig().module(OBEDIENT);
    const printed = await executeText(backend, "print");
    expect(printed.log).to.equal("to output\nto error\nhalf a line");
    expect((await executeText(backend, "pid")).log).to.equal("");
  });

  it("has of each attempt all that it has printed, also past JavaScript and more than a pipe holds, and nothing of another", async () => {
    const backend = await rig().module(TALKATIVE);
    const talk = async (letter: string): Promise<void> => {
      for (const bytes of [1, 0, 300_000, 0, 70, 66_000, 1, 150_000, 100_000, 0, 95_000, 0, 80_000, 0]) {
        const { log } = await executeText(backend, `${letter} ${bytes}`);
        expect(log === letter.repeat(2 * bytes), `${log.length} bytes, of twice ${bytes}`).to.equal(true);
      }
    };
    await Promise.all(["a", "b", "c"].map(talk));
  });

  it("has the stack of what was thrown in the log", async () => {
    const { log } = await executeText(await rig().module(OBEDIENT), "throw");
    expect(log).to.match(/^RangeError: no way\n.*obey.*module\.ts:3/s);
  });

  it("keeps checkpoints, and gives the last one to the next attempt", async () => {
    const backend = await rig().module(OBEDIENT);
    const { checkpoints } = await executeText(backend, "save");
    expect(checkpoints.map((bytes) => Buffer.from(bytes).toString())).to.deep.equal([
      `{"step":1}`,
      `{"step":2}`,
    ]);
    const resumed = await executeText(backend, "checkpoint", { checkpoint: checkpoints[1] ?? Buffer.of() });
    expect(resumed.output).to.equal(`{"step":2}`);
  });

  it("gives bytes in a checkpoint back as bytes, and says when there is none", async () => {
    const backend = await rig().module(OBEDIENT);
    const { checkpoints } = await executeText(backend, "save bytes");
    const resumed = await executeText(backend, "checkpoint", { checkpoint: checkpoints[0] ?? Buffer.of() });
    expect(resumed.output).to.equal("[1,2]");
    expect((await executeText(backend, "checkpoint")).output).to.equal(`"none"`);
  });

  it("leaves out a checkpoint over the limit, and says so in the log", async () => {
    const { checkpoints, log } = await executeText(await rig().module(OBEDIENT), "save too much");
    expect([checkpoints.length, log]).to.deep.equal([
      0,
      "a checkpoint of 50002 bytes is left out: 32768 are allowed\n",
    ]);
  });

  it("does not send an output over the limit", async () => {
    const { outcome } = await executeText(await rig().module(OBEDIENT), "large");
    expect(outcome).to.deep.equal({
      kind: "too_large",
      message: "the output is 100002 bytes; 65536 are allowed",
    });
  });

  it("takes a named export of a JavaScript file", async () => {
    const source = `exports.double = (item) => item * 2;`;
    const backend = await rig().module(source, { export: "double" }, "double.cjs");
    expect((await executeText(backend, "21")).output).to.equal("42");
  });

  const UNUSABLE: readonly [what: string, source: string, reason: string | RegExp][] = [
    ["does not parse", "export default function {", /SyntaxError|Expected|Unexpected|expected/],
    ["throws when it is loaded", `throw new Error("not today");`, "not today"],
    ["exits when it is loaded", `process.exit(9);`, "exit code 9"],
    ["exports nothing of that name", `export const other = 1;`, "it has no export default, only other"],
    ["exports no function", `export default 3;`, "its export is a number, not a function"],
    [
      "exports what cannot save",
      `export default () => 1; export const saveTrainState = 5;`,
      "its export saveTrainState is a number, not a function",
    ],
    ["imports what is not there", `import "./nowhere.js"; export default () => 1;`, "nowhere.js"],
  ];
  for (const [what, source, reason] of UNUSABLE) {
    it(`says of a file that ${what} why it cannot be executed, before there is an item`, async () => {
      const backend = await rig().module(source);
      expect(await backend.prepare()).to.match(reason instanceof RegExp ? reason : new RegExp(reason));
      expect(rig().broken).to.deep.equal([]);
    });
  }

  it("says once that its file cannot be executed, and charges no item for it", async () => {
    const backend = await rig().module(`throw new Error("not today");`);
    const outcomes = await Promise.all([1, 2].map((number) => executeText(backend, "1", { number })));
    expect(outcomes.map(({ outcome }) => outcome.kind)).to.deep.equal(["preempted", "preempted"]);
    expect(rig().broken).to.have.length(1);
    expect(rig().broken[0]).to.include("not today").and.include("module.ts");
  });

  const COUNTED = `import { appendFileSync, readFileSync } from "node:fs"; appendFileSync("starts", "x");\n`;
  const starts = async (): Promise<number> => (await readFile(rig().directory.file("starts"))).length;

  it("starts its process again when it is killed while it loads, and charges nobody for that", async () => {
    const dying = `if (readFileSync("starts").length < 3) process.kill(process.pid, "SIGKILL");\n`;
    const backend = await rig().module(COUNTED + dying + OBEDIENT);
    expect((await executeText(backend, `"text"`)).output).to.equal(`"a text"`);
    expect([await starts(), rig().broken]).to.deep.equal([3, []]);
  });

  it("says that it cannot be executed after three that were killed while they loaded, side by side or not", async () => {
    const backend = await rig().module(COUNTED + `process.kill(process.pid, "SIGKILL");\n` + OBEDIENT);
    const outcomes = await Promise.all([1, 2].map((number) => executeText(backend, "1", { number })));
    expect(outcomes.map(({ outcome }) => outcome.kind)).to.deep.equal(["preempted", "preempted"]);
    expect(rig().broken).to.have.length(1);
    expect(rig().broken[0]).to.include("its process has ended: killed by SIGKILL");
    expect(await starts()).to.be.within(3, 6);
  });

  it("has a mistake in its file found by the first process", async () => {
    const backend = await rig().module(COUNTED + `throw new Error("not today");`);
    expect(await backend.prepare()).to.include("not today");
    expect(await starts()).to.equal(1);
  });

  it("gives up a file that does not load in time", async () => {
    const backend = await rig().module(`await new Promise(() => setInterval(() => 1, 1_000));`, {
      loadTimeoutMs: 300,
    });
    expect(await backend.prepare()).to.equal("it has not loaded within 300ms");
  });

  it("leaves no process behind when it is closed, not even one that runs", async () => {
    const source = `import { writeFileSync } from "node:fs"; export default () => { writeFileSync("pid", String(process.pid)); for (;;); };`;
    const backend = await rig().module(source);
    const running = executeText(backend, "1");
    // A file that is made is empty for a moment.
    const pid = await eventually(
      "the function runs",
      async () => Number(await readFile(rig().directory.file("pid"), "utf8").catch(() => "")) || undefined,
    );
    await backend.close();
    await running;
    expect(() => process.kill(pid, 0)).to.throw("ESRCH");
  });
});
