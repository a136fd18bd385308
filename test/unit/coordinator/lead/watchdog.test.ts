import { expect } from "chai";
import { systemClock } from "../../../../src/base/clock.ts";
import { epoch } from "../../../../src/base/ids.ts";
import {
  WatchdogWorker,
  guardCells,
  newWatchCells,
  releaseCells,
  takeLastWord,
  watch,
} from "../../../../src/coordinator/lead/watchdog.ts";
import type { WatchCells } from "../../../../src/coordinator/lead/watchdog.ts";
import { newRunId } from "../../../support/certificates.ts";
import { useClosers } from "../../../support/closers.ts";

/** The main thread's doings at a moment. */
interface Deed {
  readonly atMs: number;
  readonly act: () => void;
}

/** So many waits in a row mean that the thread does not wait at all. */
const WAITS_MAX = 1_000;

describe("the watchdog", () => {
  let cells: WatchCells;

  beforeEach(() => {
    cells = newWatchCells();
  });

  /** Runs the thread's program on a clock of its own, beside a main thread that does `deeds`, until it aborts or `endMs`. */
  function run(
    deeds: readonly Deed[],
    endMs = 60_000,
  ): { abortedMs: number | undefined; said: number[]; waits: number } {
    class End extends Error {}
    let [nowMs, waits] = [0, 0];
    let abortedMs: number | undefined;
    const said: number[] = [];
    const ahead = [...deeds];
    const waitWhile = (on: WatchCells, at: number, value: bigint, forMs: number): void => {
      if (++waits > WAITS_MAX) throw new Error("the thread is busy");
      const untilMs = nowMs + forMs;
      while (Atomics.load(on, at) === value) {
        const next = ahead[0];
        if (next === undefined || next.atMs > untilMs) {
          if (untilMs > endMs) throw new End();
          nowMs = untilMs;
          return;
        }
        nowMs = Math.max(nowMs, next.atMs);
        ahead.shift();
        next.act();
      }
    };
    const abort = (): void => void (abortedMs = nowMs);
    try {
      watch(cells, { nowMs: () => nowMs, waitWhile, speak: (of) => void said.push(of), abort });
    } catch (error) {
      if (!(error instanceof End)) throw error;
    }
    return { abortedMs, said, waits };
  }

  const guards = (atMs: number, deadlineMs: number): Deed => ({
    atMs,
    act: () => guardCells(cells, epoch(7), deadlineMs),
  });

  it("sleeps as long as nobody leads", () => {
    expect(run([])).to.deep.equal({ abortedMs: undefined, said: [], waits: 1 });
  });

  it("sleeps while the deadline is moved on in time", () => {
    const deeds = Array.from({ length: 30 }, (_, second) => guards(second * 1_000, second * 1_000 + 4_000));
    const { abortedMs, said } = run(deeds, 30_000);
    expect([abortedMs, said]).to.deep.equal([undefined, []]);
  });

  it("speaks and aborts when the main thread does nothing, under 5 s from the last renewal", () => {
    expect(run([guards(0, 4_000), guards(1_000, 5_000)])).to.deep.include({ abortedMs: 5_500, said: [7] });
  });

  it("leaves the last word to the main thread if that says it in time, and aborts if it does nothing more", () => {
    const speaks = { atMs: 4_200, act: () => void expect(takeLastWord(cells)).to.equal(true) };
    expect(run([guards(0, 4_000), speaks])).to.deep.include({ abortedMs: 5_700, said: [] });
  });

  it("lets a process that was stopped for long end by itself first", () => {
    // Its deadline was over long before the thread runs again.
    guardCells(cells, epoch(7), -100_000);
    const speaks = { atMs: 300, act: () => void takeLastWord(cells) };
    expect(run([speaks]).said).to.deep.equal([]);
  });

  it("does not end a process that has let go of its lease, even at the last moment", () => {
    const releases = { atMs: 4_400, act: () => releaseCells(cells) };
    expect(run([guards(0, 4_000), releases])).to.deep.include({ abortedMs: undefined, said: [] });
  });

  it("believes a renewal that was in time and is told late", () => {
    expect(run([guards(0, 4_000), guards(4_100, 60_000)], 50_000)).to.deep.include({
      abortedMs: undefined,
      said: [],
    });
  });

  it("gives the last word to one of the two threads", () => {
    expect([takeLastWord(cells), takeLastWord(cells)]).to.deep.equal([true, false]);
  });

  describe("as a thread", () => {
    const closeLater = useClosers();

    it("starts, watches, and is no reason to stay", async () => {
      const watchdog = await WatchdogWorker.start({ runId: newRunId(), fd: 1 });
      closeLater(() => watchdog.close());
      watchdog.guard(epoch(0), systemClock.monotonicMs() + 60_000);
      watchdog.release();
      expect([watchdog.takeLastWord(), watchdog.takeLastWord()]).to.deep.equal([true, false]);
    });
  });
});
