import { expect } from "chai";
import { failure } from "../../../../src/base/errors.ts";
import { seededRandom } from "../../../../src/base/random.ts";
import type { Ending, Setback } from "../../../../src/worker/link/reconnect.ts";
import { retryDelayMs, stayConnected, Trouble } from "../../../../src/worker/link/reconnect.ts";
import { VirtualClock } from "../../../support/virtual-clock.ts";
import { RecordingLogger } from "../../../support/recording-logger.ts";

const address = "127.0.0.1:1";
const unreachable: Setback = {
  kind: "failed",
  error: failure("coordinator_refused_connection", { address }),
};
const refused: Setback = {
  kind: "failed",
  error: failure("certificate_refused", { address, subject: "worker 1" }),
};

describe("trouble with the coordinator", () => {
  let log: RecordingLogger;
  let trouble: Trouble;

  beforeEach(() => {
    log = new RecordingLogger();
    trouble = new Trouble(log);
  });

  const said = (): string[] => log.lines.splice(0).map(({ message }) => message);

  it("is one line, with what to do about it, however often it is met", () => {
    for (let time = 0; time < 100; time++) trouble.report(unreachable);
    expect(log.lines).to.deep.equal([
      {
        level: "warn",
        message: "nothing listens at 127.0.0.1:1; trying again",
        fields: { code: unreachable.error.code, hint: unreachable.error.hint },
      },
    ]);
  });

  it("is one line more when it becomes another", () => {
    trouble.report(unreachable);
    trouble.report(refused);
    trouble.report(refused);
    trouble.report({ kind: "closed" });
    trouble.report({ kind: "silent" });
    trouble.report({ kind: "refused", reason: "epoch 1 is lower than 2, which was seen" });
    expect(said()).to.deep.equal([
      "nothing listens at 127.0.0.1:1; trying again",
      "the coordinator at 127.0.0.1:1 refused this certificate (worker 1); trying again",
      "the coordinator closed the stream; trying again",
      "the coordinator does not answer; trying again",
      "an answer was refused: epoch 1 is lower than 2, which was seen; trying again",
    ]);
  });

  it("is over in one line, and then it is news again", () => {
    trouble.report(unreachable);
    trouble.over();
    trouble.over();
    trouble.report(unreachable);
    expect(said().slice(1)).to.deep.equal([
      "connected again",
      "nothing listens at 127.0.0.1:1; trying again",
    ]);
  });

  it("that never was is never said to be over", () => {
    trouble.over();
    expect(said()).to.deep.equal([]);
  });

  describe("that lasts", () => {
    const clock = new VirtualClock();
    let absences: number[];

    beforeEach(() => {
      absences = [];
      const onAbsent = (forMs: number): void => void absences.push(forMs);
      trouble = new Trouble(log, { clock, address, afterMs: 20_000, onAbsent });
    });

    /** It is met again and again. */
    async function last(forMs: number, setback: Setback = unreachable): Promise<void> {
      trouble.report(setback);
      for (let passedMs = 0; passedMs < forMs; passedMs += 1_000) {
        await clock.advance(1_000);
        trouble.report(setback);
      }
    }

    it("is said again with the address that is tried, for how long, and what to set", async () => {
      await last(19_000);
      expect(said()).to.have.length(1);
      await last(1_000);
      const [line = "", ...more] = said();
      expect(line).to.contain("no coordinator was reached at 127.0.0.1:1 for 20 s");
      expect(line).to.contain("worker.coordinator_addr (--coordinator-addr)");
      expect([more, absences]).to.deep.equal([[], [20_000]]);
    });

    it("is said each time that it has lasted twice as long, whatever it is from try to try", async () => {
      await last(50_000);
      await last(100_000, { kind: "silent" });
      expect(absences).to.deep.equal([20_000, 40_000, 80_000]);
      trouble.over();
      await last(20_000);
      expect(absences.at(-1)).to.equal(20_000);
    });

    it("is another thing while a coordinator answers, if only to refuse", async () => {
      await last(60_000, refused);
      expect(absences).to.deep.equal([]);
    });
  });

  describe("ends a stream, and the next one begins", () => {
    const leaderless: Ending = { kind: "failed", error: failure("no_leader_found", { said: "" }) };

    /** The waits after streams that ended so, with no jitter. */
    async function waitsAfter(...endings: readonly Ending[]): Promise<number[]> {
      const clock = new VirtualClock();
      const [ending, waits] = [new AbortController(), [] as number[]];
      let endedMs: number | undefined;
      const left = [...endings];
      const staying = stayConnected({
        converse: async () => {
          const nowMs = clock.monotonicMs();
          if (endedMs !== undefined) waits.push(nowMs - endedMs);
          endedMs = nowMs;
          const next = left.shift();
          if (next === undefined) ending.abort();
          return { heard: false, ending: next ?? { kind: "closed" } };
        },
        onSetback: () => undefined,
        random: { ...seededRandom(1), unit: () => 1 - Number.EPSILON },
        ...{ clock, signal: ending.signal },
      });
      await clock.advance(600_000);
      expect(await staying).to.equal("stopped");
      return waits.map((ms) => Math.ceil(ms));
    }

    it("at once where this side has ended it to state anew what it has, whatever was before", async () => {
      const anew: Ending = { kind: "anew" };
      expect(await waitsAfter(anew, unreachable, unreachable, anew, unreachable)).to.deep.equal([
        ...[0, 200, 400],
        ...[0, 200],
      ]);
    });

    it("soon after the leader was found, however often nobody led before", async () => {
      const waits = await waitsAfter(...Array<Ending>(8).fill(leaderless), unreachable, unreachable);
      expect(waits.slice(-3)).to.deep.equal([250, 200, 400]);
    });
  });

  describe("is waited out", () => {
    const highest = { unit: () => 1, bytes: (count: number) => new Uint8Array(count) };
    const delays = (setback: Setback): number[] =>
      [1, 2, 3, 10, 1_000].map((failures) => retryDelayMs(setback, failures, highest));

    it("for longer each time, up to a few seconds", () => {
      for (const setback of [unreachable, { kind: "closed" }, { kind: "silent" }] as const)
        expect(delays(setback)).to.deep.equal([200, 400, 800, 5_000, 5_000]);
    });

    it("for no longer than the caller can afford", () => {
      expect(retryDelayMs(unreachable, 10, highest, 750)).to.equal(750);
      expect(retryDelayMs(unreachable, 1, highest, 750)).to.equal(200);
      expect(retryDelayMs(unreachable, 10, highest, 60_000)).to.equal(5_000);
      expect(retryDelayMs(refused, 1, highest, 750)).to.equal(2_000);
    });

    it("for much longer where asking again does not help", () => {
      for (const setback of [refused, { kind: "refused", reason: "" }] as const)
        expect(delays(setback)).to.deep.equal([2_000, 4_000, 8_000, 30_000, 30_000]);
    });

    it("not for long where another coordinator is to lead soon", () => {
      const leaderless: Setback = { kind: "failed", error: failure("no_leader_found", { said: "" }) };
      expect(delays(leaderless)).to.deep.equal([50, 100, 200, 250, 250]);
    });

    it("with jitter over the whole time", () => {
      const random = seededRandom(1);
      const drawn = Array.from({ length: 200 }, () => retryDelayMs(unreachable, 1, random));
      expect(Math.min(...drawn)).to.be.lessThan(20);
      expect(Math.max(...drawn)).to.be.within(180, 200);
    });
  });
});
