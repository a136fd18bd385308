import { expect } from "chai";
import { duplexPair, PassThrough } from "node:stream";
import type { Duplex } from "node:stream";
import type { Outcome } from "../../../../../src/worker/backends/backend.ts";
import type { Child, ChildEnd } from "../../../../../src/worker/children/child.ts";
import { Shortage } from "../../../../../src/worker/backends/shortage.ts";
import { CodeProcess } from "../../../../../src/worker/backends/code/code-process.ts";
import { FrameReader, frameOf } from "../../../../../src/worker/backends/code/code-messages.ts";
import type { FromCode, ToCode } from "../../../../../src/worker/backends/code/code-messages.ts";
import { eventually } from "../../../../support/eventually.ts";
import { RecordingLogger } from "../../../../support/recording-logger.ts";
import { settle } from "../../../../support/settle.ts";
import { VirtualClock } from "../../../../support/virtual-clock.ts";

/** The process, played by the test. */
class Played {
  readonly stderr = new PassThrough();
  readonly heard: ToCode[] = [];
  readonly kills: number[] = [];
  readonly #exited = Promise.withResolvers<ChildEnd>();
  readonly #channel: Duplex;
  readonly child: Child;

  constructor() {
    const [ours, theirs] = duplexPair();
    this.#channel = ours;
    const reader = new FrameReader<ToCode>();
    ours.on("data", (chunk: Buffer) => this.heard.push(...reader.take(chunk)));
    this.child = {
      pid: 1,
      stdin: new PassThrough(),
      stdout: new PassThrough(),
      stderr: this.stderr,
      channel: theirs,
      exited: this.#exited.promise,
      kill: (graceMs) => {
        this.kills.push(graceMs);
        this.dies(null);
        return Promise.resolve();
      },
    };
  }

  says(message: FromCode): void {
    this.#channel.write(frameOf(message));
  }

  writes(bytes: Buffer): void {
    this.#channel.write(bytes);
  }

  dies(code: number | null): void {
    this.#exited.resolve({ code, signal: code === null ? "SIGKILL" : null });
    this.stderr.end();
  }

  async mark(): Promise<string> {
    const execute = await eventually("it is asked to execute", () =>
      this.heard.find((message) => message.kind === "execute"),
    );
    return execute.mark;
  }
}

describe("a process of a user's code, seen from the worker", () => {
  let clock: VirtualClock;
  let played: Played;
  let log: string;
  let outcome: Outcome | undefined;

  async function executing(signal = new AbortController().signal): Promise<Outcome> {
    const process = new CodeProcess({
      request: { command: ["node"], cwd: "/", env: {}, channel: true },
      load: {
        ...{ kind: "load", module: "/m.js", export: "default", options: {} },
        ...{ maxOutputBytes: 1_024, maxCheckpointBytes: 1_024, maxStateBytes: 1_024 },
      },
      ...{ loadTimeoutMs: 1_000, abortGraceMs: 300, clock, log: new RecordingLogger() },
      shortage: new Shortage(clock),
      children: { spawn: () => Promise.resolve({ kind: "started", child: played.child }) },
    });
    played.says({ kind: "ready" });
    expect(await process.started).to.deep.equal({ kind: "ready" });
    const attempt = {
      ...{ itemId: new Uint8Array(32), attempt: 1, payload: Buffer.from("1") },
      ...{ checkpoint: new Uint8Array(0), alone: false, env: {} },
    };
    const ending = process.execute(attempt, signal, (report) => {
      if (report.kind === "log") log += Buffer.from(report.chunk).toString();
    });
    void ending.then((one) => (outcome = one));
    return ending;
  }

  beforeEach(() => {
    [clock, played, log, outcome] = [new VirtualClock(), new Played(), "", undefined];
  });

  it("has all that an attempt wrote before it says how it ended, however late that comes", async () => {
    const ending = executing();
    const mark = await played.mark();
    played.stderr.write("early, ");
    played.says({ kind: "ended", outcome: { kind: "error", message: "no" } });
    await settle();
    expect(outcome, "the mark has not come").to.equal(undefined);
    played.stderr.write(`late${mark.slice(0, 5)}`);
    played.stderr.write(`${mark.slice(5)}of nobody`);
    expect(await ending).to.deep.equal({ kind: "error", message: "no" });
    expect(log).to.equal("early, late");
  });

  it("does not wait for ever for output that another process holds back", async () => {
    const ending = executing();
    await played.mark();
    played.says({ kind: "ended", outcome: { kind: "success", output: Buffer.from("1") } });
    await settle();
    await clock.advance(1_000);
    expect((await ending).kind).to.equal("success");
  });

  it("takes what only looks like the beginning of a mark for words", async () => {
    const ending = executing();
    const mark = await played.mark();
    played.stderr.write(`\0end of`);
    await settle();
    played.stderr.write(` the story${mark}`);
    played.says({ kind: "ended", outcome: { kind: "error", message: "no" } });
    await ending;
    expect(log).to.equal("\0end of the story");
  });

  it("asks for the end first, and kills after the grace", async () => {
    const controller = new AbortController();
    const ending = executing(controller.signal);
    await played.mark();
    controller.abort();
    await settle();
    expect(played.heard.at(-1)).to.deep.equal({ kind: "abort" });
    await clock.advance(299);
    expect(played.kills).to.deep.equal([]);
    await clock.advance(1);
    expect((await ending).kind).to.equal("preempted");
    expect(new Set(played.kills)).to.deep.equal(new Set([0]));
  });

  it("kills a process that says what cannot be understood, and says why", async () => {
    const ending = executing();
    await played.mark();
    played.writes(Buffer.from("ffffffff00", "hex"));
    const ended = await ending;
    expect(ended.kind === "crash" && ended.message).to.include("cannot be understood");
  });
});
