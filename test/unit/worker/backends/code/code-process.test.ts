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

  async isAsked(): Promise<void> {
    await eventually("it is asked to execute", () => this.heard.some(({ kind }) => kind === "execute"));
  }
}

describe("a process of a user's code, seen from the worker", () => {
  let clock: VirtualClock;
  let played: Played;

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
    return process.execute(attempt, signal, () => {});
  }

  beforeEach(() => {
    [clock, played] = [new VirtualClock(), new Played()];
  });

  it("asks for the end first, and kills after the grace", async () => {
    const controller = new AbortController();
    const ending = executing(controller.signal);
    await played.isAsked();
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
    await played.isAsked();
    played.writes(Buffer.from("ffffffff00", "hex"));
    const ended = await ending;
    expect(ended.kind === "crash" && ended.message).to.include("cannot be understood");
  });
});
