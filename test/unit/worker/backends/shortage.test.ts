import { expect } from "chai";
import { mkdir } from "node:fs/promises";
import type { ChildStart } from "../../../../src/worker/children/child.ts";
import { Shortage, startPatiently, writePatiently } from "../../../../src/worker/backends/shortage.ts";
import type { Patience } from "../../../../src/worker/backends/shortage.ts";
import { RecordingLogger } from "../../../support/recording-logger.ts";
import { VirtualClock } from "../../../support/virtual-clock.ts";

describe("patience with a machine", () => {
  let clock: VirtualClock;
  let log: RecordingLogger;
  let waited: string[];
  let patience: Patience;
  let ending: AbortController;
  beforeEach(() => {
    clock = new VirtualClock();
    log = new RecordingLogger();
    waited = [];
    patience = { clock, log, shortage: new Shortage(clock), onWait: (reason) => void waited.push(reason) };
    ending = new AbortController();
  });

  const full = (): Promise<never> =>
    Promise.reject(Object.assign(new Error("ENOSPC: no space left on device, mkdir"), { code: "ENOSPC" }));

  it("that has no space writes when there is some, and says once that it waits", async () => {
    let tries = 0;
    const written = writePatiently(
      () => (++tries < 10 ? full() : Promise.resolve("written")),
      ending.signal,
      patience,
    );
    await clock.advance(60_000);
    expect([await written, tries, waited]).to.deep.equal(["written", 10, ["no space left on the disk"]]);
  });

  it("reports trouble when the shortage lasts", async () => {
    void writePatiently(full, ending.signal, patience);
    await clock.advance(60_000);
    expect(log.lines[0]).to.deep.include({
      message: "the files of an attempt cannot be written for now",
      fields: { reason: "no space left on the disk" },
    });
    ending.abort();
  });

  it("is over when nothing at all was to be had for two minutes; then it says for what", async () => {
    const exhausted: ChildStart = { kind: "failed", failure: { kind: "exhausted", reason: "EAGAIN" } };
    const children = { spawn: () => Promise.resolve(exhausted) };
    const request = { command: ["x"], cwd: "/", env: {} };
    const started = startPatiently(children, request, ending.signal, patience);
    const written = writePatiently(full, ending.signal, patience).catch((error: unknown) => error);
    await clock.advance(60_000);
    expect(patience.shortage.trouble()).to.equal("waiting, for 60 s: EAGAIN");
    await clock.advance(70_000);
    const reason = "there was no room for 2 min: EAGAIN";
    expect(await started).to.deep.equal({ kind: "failed", failure: { kind: "exhausted", reason } });
    expect(await written).to.include({ code: "ENOSPC" });
    expect(patience.shortage.trouble()).to.equal(undefined);
  });

  it("waits on while others get what they ask for", async () => {
    const scarce = writePatiently(full, ending.signal, patience);
    for (let minute = 0; minute < 5; minute++) {
      await clock.advance(60_000);
      await writePatiently(() => Promise.resolve("written"), ending.signal, patience);
    }
    ending.abort();
    expect(await scarce).to.equal(undefined);
  });

  it("ends when it is not wanted any more", async () => {
    const written = writePatiently(full, ending.signal, patience);
    await clock.advance(60_000);
    ending.abort();
    expect(await written).to.equal(undefined);
  });

  it("has none with what does not pass", async () => {
    const error: unknown = await writePatiently(() => mkdir("/dev/null/x"), ending.signal, patience).catch(
      (thrown: unknown) => thrown,
    );
    expect(waited).to.deep.equal([]);
    expect(error).to.include({ code: "ENOTDIR" });
  });

  it("that has no room for a process starts it when there is, and a program that is missing not at all", async () => {
    const exhausted: ChildStart = { kind: "failed", failure: { kind: "exhausted", reason: "EAGAIN" } };
    const missing: ChildStart = { kind: "failed", failure: { kind: "unusable", reason: "it is not there" } };
    const answers = [exhausted, exhausted, missing];
    const children = { spawn: () => Promise.resolve(answers.shift() ?? missing) };
    const request = { command: ["x"], cwd: "/", env: {} };
    const started = startPatiently(children, request, ending.signal, patience);
    await clock.advance(1_000);
    expect(await started).to.deep.equal(missing);
    expect([waited, answers.length]).to.deep.equal([["EAGAIN"], 0]);
  });
});
