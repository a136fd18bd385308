import { spawn } from "node:child_process";
import type { ChildProcessByStdio } from "node:child_process";
import { once } from "node:events";
import { closeSync, openSync, readFileSync } from "node:fs";
import type { Readable } from "node:stream";
import { text } from "node:stream/consumers";
import { fileURLToPath } from "node:url";
import { expect } from "chai";
import { systemClock } from "../../../src/base/clock.ts";
import { newUlid } from "../../../src/base/ids.ts";
import type { RunId } from "../../../src/base/ids.ts";
import { systemRandom } from "../../../src/base/random.ts";
import { silentLogger } from "../../../src/observe/log.ts";
import { StdoutJsonEmitter } from "../../../src/observe/stdout-emitter.ts";
import { HeldStream } from "./held-stream.ts";
import { useTemporaryDirectory } from "../../support/temporary-directory.ts";

const turn = (): Promise<void> => new Promise((resolve) => systemClock.nextTurn(resolve));
const runId = newUlid<RunId>(systemClock, systemRandom);

function emitterTo(stream: HeldStream, hide: readonly string[] = [], fd = -1): StdoutJsonEmitter {
  return new StdoutJsonEmitter({
    stream,
    fd,
    runId,
    clock: { ...systemClock, wallMs: () => 0 },
    log: silentLogger,
    hide,
    limitBytes: 65_536,
  });
}

/** A process that writes events to a pipe of which this test holds the other end. */
function emitterProcess(...args: string[]): ChildProcessByStdio<null, Readable, Readable> {
  const script = fileURLToPath(new URL("./emitter-process.ts", import.meta.url));
  return spawn(process.execPath, ["--expose-gc", script, ...args], { stdio: ["ignore", "pipe", "pipe"] });
}

function parsedLines(output: string): Record<string, unknown>[] {
  return output
    .split("\n")
    .filter((line) => line !== "")
    .map((line) => JSON.parse(line) as Record<string, unknown>);
}

function messagesOf(log: string): unknown[] {
  return parsedLines(log).map((line) => line["message"]);
}

describe("events on standard output", () => {
  const directory = useTemporaryDirectory();

  it("are one object a line, with the envelope first", async () => {
    const stream = new HeldStream();
    emitterTo(stream).emit("worker_failed", { worker_id: "W", due_at_ms: 12.5, late_ms: 5_001 });
    await turn();
    expect(stream.text).to.equal(
      `{"ts":"1970-01-01T00:00:00.000Z","run_id":"${runId}","kind":"domain","topic":"worker_failed",` +
        `"level":"warn","worker_id":"W","due_at_ms":12.5,"late_ms":5001}\n`,
    );
  });

  it("leave out the topics that are hidden", async () => {
    const stream = new HeldStream();
    const emitter = emitterTo(stream, ["worker_removed"]);
    emitter.emit("worker_removed", { worker_id: "A" });
    emitter.emit("coordinator_stopped", { epoch: 3 });
    await turn();
    expect(parsedLines(stream.text).map((event) => event["topic"])).to.deep.equal(["coordinator_stopped"]);
  });

  it("that cannot wait leave at once, after those that waited, and are the last", async () => {
    const file = directory.file("events");
    const fd = openSync(file, "a");
    try {
      const emitter = emitterTo(new HeldStream(), [], fd);
      emitter.emit("worker_removed", { worker_id: "A" });
      emitter.emitNow("coordinator_fenced", {
        epoch: 1,
        seen_epoch: 2,
        reason: "a test",
        refused_writes: 0,
        refused_replies: 0,
      });
      const written = parsedLines(readFileSync(file, "utf8"));
      expect(written.map((event) => event["topic"])).to.deep.equal(["worker_removed", "coordinator_fenced"]);
      emitter.emit("worker_removed", { worker_id: "B" });
      await turn();
      expect(parsedLines(readFileSync(file, "utf8"))).to.have.length(2);
    } finally {
      closeSync(fd);
    }
  });

  it("all arrive through a pipe that is read late, although the process ends", async () => {
    const child = emitterProcess("5000", "1000000");
    const stderr = text(child.stderr);
    await once(child.stderr, "data");
    const events = parsedLines(await text(child.stdout));
    expect(events.map((event) => event["worker_id"])).to.deep.equal(
      Array.from({ length: 5_000 }, (_, at) => `w${at}`),
    );
    expect(messagesOf(await stderr)).to.deep.equal(["emitted", "ended"]);
  });

  it("are dropped and counted, in bounded memory, while nobody reads", async () => {
    const child = emitterProcess("200000", "100000");
    const stderr = text(child.stderr);
    // Says that all were emitted, which it can only because none of them waits for this end to read.
    await once(child.stderr, "data");
    const events = parsedLines(await text(child.stdout));
    const kept = events.filter((event) => event["topic"] === "worker_removed").length;
    const gaps = events.filter((event) => event["topic"] === "events_dropped");
    expect(gaps.map((event) => event["count"])).to.deep.equal([200_000 - kept]);
    expect(events.at(-1)).to.equal(gaps[0]);
    expect(parsedLines(await stderr).at(-1)?.["heapMiB"]).to.be.below(40);
  });

  it("stop when the reader leaves, and the process goes on", async () => {
    const child = emitterProcess("200000", "100000");
    child.stdout.destroy();
    expect(messagesOf(await text(child.stderr))).to.deep.equal([
      "nobody reads the events any more; going on without them",
      "emitted",
      "ended",
    ]);
  });

  it("that cannot wait arrive whole, in a line of their own, through a pipe", async () => {
    const child = emitterProcess("1000", "10000000", "now");
    const lines = (await text(child.stdout)).split("\n");
    const fenced = lines.filter((line) => line.includes('"coordinator_fenced"'));
    expect(fenced).to.have.length(1);
    expect(JSON.parse(fenced[0] ?? "")).to.deep.include({ epoch: 1, seen_epoch: 2 });
  });
});
