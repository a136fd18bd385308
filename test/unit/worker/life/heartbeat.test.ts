import { expect } from "chai";
import { failure } from "../../../../src/base/errors.ts";
import type { RolloutError } from "../../../../src/base/errors.ts";
import type { Random } from "../../../../src/base/random.ts";
import { WorkerState } from "../../../../src/gen/rollout/v1/common_pb.ts";
import { BeatVerdict } from "../../../../src/gen/rollout/v1/heartbeat_pb.ts";
import { EpochGuard } from "../../../../src/worker/link/epoch-guard.ts";
import { Heartbeat } from "../../../../src/worker/life/heartbeat.ts";
import { RecordingLogger } from "../../../support/recording-logger.ts";
import { ScriptedBeats } from "./scripted-beats.ts";
import { VirtualClock } from "../../../support/virtual-clock.ts";

const INTERVAL_MS = 500;
const SELF_FENCE_MS = 4_000;
const ANSWER_TIMEOUT_MS = 5_000;
const address = "127.0.0.1:1";

describe("the heartbeat of a worker", () => {
  let clock: VirtualClock;
  let log: RecordingLogger;
  let coordinator: ScriptedBeats;
  let heart: Heartbeat;
  let accepted: { sequence: number }[];
  let failed: RolloutError[];
  let superseded: number;
  /** How often a self-fence ended, and how many answers had been passed on by then. */
  let lifted: number[];
  /** When it fenced itself. */
  let fencedAtMs: number[];
  /** How often the coordinator was doubted, and whether there is another one. */
  let doubted: number;
  let hasOthers: boolean;
  /** Where in the range of a backoff the wait is. */
  let jitter: number;

  beforeEach(async () => {
    clock = new VirtualClock();
    log = new RecordingLogger();
    coordinator = new ScriptedBeats();
    [accepted, failed, superseded, lifted, fencedAtMs, jitter] = [[], [], 0, [], [], 0.5];
    [doubted, hasOthers] = [0, false];
    const random: Random = { unit: () => jitter, bytes: (count) => new Uint8Array(count) };
    heart = new Heartbeat({
      client: coordinator,
      clock,
      random,
      log,
      address: "127.0.0.1:1",
      guard: new EpochGuard([], async () => undefined),
      heartbeatIntervalMs: INTERVAL_MS,
      selfFenceTimeoutMs: SELF_FENCE_MS,
      answerTimeoutMs: ANSWER_TIMEOUT_MS,
      describe: () => ({ state: WorkerState.READY }),
      onAccepted: (answer) => void accepted.push(answer),
      onFenced: () => void fencedAtMs.push(clock.monotonicMs()),
      onFenceLifted: () => void lifted.push(accepted.length),
      onDoubt: () => {
        doubted++;
        return hasOthers;
      },
      onFailed: (error) => void failed.push(error),
      onSuperseded: () => superseded++,
    });
    heart.start();
    await clock.advance();
  });

  afterEach(() => heart.stop());

  /** Time passes with every beat answered at once. */
  async function beatFor(durationMs: number): Promise<void> {
    for (let passedMs = 0; passedMs < durationMs; passedMs += INTERVAL_MS) {
      coordinator.latest.answerAll();
      await clock.advance(INTERVAL_MS);
    }
  }

  const said = (level?: string): string[] =>
    log.lines.filter((line) => level === undefined || line.level === level).map(({ message }) => message);

  describe("beats", () => {
    it("as soon as there is a stream, and then once in an interval", async () => {
      expect(coordinator.latest.received).to.deep.equal([1]);
      await beatFor(3 * INTERVAL_MS);
      expect(coordinator.latest.received).to.deep.equal([1, 2, 3, 4]);
      expect(coordinator.streams).to.have.length(1);
    });

    it("at once when there is news", async () => {
      heart.beatNow();
      await clock.advance();
      expect(coordinator.latest.received).to.deep.equal([1, 2]);
      expect(heart.lastSequence).to.equal(2);
    });

    it("and tells of each answer", async () => {
      await beatFor(2 * INTERVAL_MS);
      expect(accepted).to.deep.equal([1, 2].map((sequence) => ({ sequence, assignmentEpoch: undefined })));
    });

    it("no more once it is stopped", async () => {
      await heart.stop();
      await clock.advance(60_000);
      expect(coordinator.latest.received).to.deep.equal([1]);
      expect([coordinator.streams.length, clock.armed, said()]).to.deep.equal([1, 0, []]);
    });

    it("no more once it is stopped between two streams", async () => {
      coordinator.latest.close();
      await clock.advance();
      await heart.stop();
      await clock.advance(60_000);
      expect(coordinator.streams).to.have.length(1);
    });
  });

  describe("with other coordinators", () => {
    beforeEach(() => {
      hasOthers = true;
    });

    it("leaves one that is silent, and opens a stream to another soon", async () => {
      await clock.advance(ANSWER_TIMEOUT_MS + 2 * INTERVAL_MS);
      expect([doubted, coordinator.streams.length]).to.deep.equal([1, 2]);
    });

    it("leaves one whose epoch is lower than it has seen, and does not wait as after a refusal", async () => {
      const { latest } = coordinator;
      const storeId = new Uint8Array(16).fill(1);
      latest.answer(1, { coordinator: { coordEpoch: 5n, storeId } });
      await clock.advance(INTERVAL_MS);
      latest.answer(2, { coordinator: { coordEpoch: 0n, storeId } });
      await clock.advance(50);
      expect([doubted, coordinator.streams.length]).to.deep.equal([1, 2]);
    });
  });

  describe("connects again", () => {
    it("after a jittered wait, and goes on counting its beats", async () => {
      coordinator.latest.close();
      await clock.advance(99);
      expect(coordinator.streams).to.have.length(1);
      await clock.advance(1);
      expect(coordinator.streams).to.have.length(2);
      expect(coordinator.latest.received).to.deep.equal([2]);
    });

    it("not at the same time as every other worker", async () => {
      jitter = 0.9;
      coordinator.latest.close();
      await clock.advance(179);
      expect(coordinator.streams).to.have.length(1);
      await clock.advance(1);
      expect(coordinator.streams).to.have.length(2);
    });

    it("waiting longer the more often it failed, and as at first once it was heard", async () => {
      const waitMs = async (): Promise<number> => {
        const { length } = coordinator.streams;
        coordinator.latest.fail(failure("coordinator_refused_connection", { address }));
        for (let passedMs = 0; ; passedMs += 50) {
          await clock.advance(passedMs === 0 ? 0 : 50);
          if (coordinator.streams.length > length) return passedMs;
        }
      };
      expect([await waitMs(), await waitMs(), await waitMs()]).to.deep.equal([100, 200, 400]);
      coordinator.latest.answerAll();
      await clock.advance();
      expect(await waitMs()).to.equal(100);
    });

    it("for as long as it takes, with one line for the trouble, one for its end, and ever rarer ones between", async () => {
      for (let time = 0; time < 50; time++) {
        coordinator.latest.fail(failure("coordinator_refused_connection", { address }));
        await clock.advance(5_000);
      }
      coordinator.latest.answerAll();
      await clock.advance();
      const lines = said().filter((line) => !line.startsWith("self-fence"));
      expect([lines[0], lines.at(-1)]).to.deep.equal([
        `nothing listens at ${address}; trying again`,
        "connected again",
      ]);
      const stranded = lines
        .slice(1, -1)
        .map((line) => /^no coordinator was reached at .* for (.*?):/.exec(line)?.[1]);
      expect(stranded).to.deep.equal(["20 s", "40 s", "80 s", "160 s"]);
      expect(failed).to.have.length(50);
    });
  });

  describe("gives up a stream on which nothing is answered", () => {
    it("after the answer timeout, says so once, and opens another", async () => {
      await beatFor(INTERVAL_MS);
      const [first] = coordinator.streams;
      await clock.advance(ANSWER_TIMEOUT_MS);
      expect(coordinator.streams).to.have.length(1);
      await clock.advance(INTERVAL_MS + 100);
      expect(coordinator.streams).to.have.length(2);
      expect(first?.received.length).to.be.greaterThan(5);
      expect(said("warn").filter((line) => !line.startsWith("self-fenced"))).to.deep.equal([
        "the coordinator does not answer; trying again",
      ]);
    });

    it("and not one on which answers come, however late", async () => {
      for (let beats = 0; beats < 60; beats++) {
        await clock.advance(INTERVAL_MS);
        if (beats >= 8) coordinator.latest.answer(beats - 7);
      }
      expect(coordinator.streams).to.have.length(1);
    });
  });

  describe("fences itself", () => {
    it("when the last beat that was answered was sent too long ago", async () => {
      await clock.advance(SELF_FENCE_MS);
      expect(heart.isFenced()).to.equal(false);
      await clock.advance(1);
      expect(heart.isFenced()).to.equal(true);
    });

    it("by when that beat was sent, not by when it was answered", async () => {
      await clock.advance(1_000);
      coordinator.latest.answer(1);
      await clock.advance(SELF_FENCE_MS - 1_000);
      expect(heart.isFenced()).to.equal(false);
      await clock.advance(1);
      expect(heart.isFenced()).to.equal(true);
    });

    it("the moment that its time is up, whatever its timers do", () => {
      const late = clock.monotonicMs() + SELF_FENCE_MS + 1;
      clock.monotonicMs = () => late;
      expect(heart.isFenced()).to.equal(true);
    });

    it("not because of the wall clock", () => {
      clock.jumpWall(86_400_000);
      expect(heart.isFenced()).to.equal(false);
    });

    it("not again by answers of a stream that is gone", async () => {
      await clock.advance(3_000);
      coordinator.latest.close();
      await clock.advance(100);
      coordinator.latest.answer(1);
      await clock.advance(1_000);
      expect(heart.isFenced()).to.equal(true);
    });

    it("until it is heard again, and says both once", async () => {
      await clock.advance(SELF_FENCE_MS + 2 * INTERVAL_MS);
      coordinator.latest.answerAll();
      await clock.advance();
      expect(heart.isFenced()).to.equal(false);
      await beatFor(2_000);
      expect(said()).to.deep.equal([
        "self-fenced: no answer from a coordinator",
        "self-fence lifted: a coordinator answers again",
      ]);
    });

    it("and says that it ends before the answer that ends it is passed on, also when no timer ran meanwhile", async () => {
      await beatFor(1_000);
      const before = accepted.length;
      expect(lifted).to.deep.equal([]);
      const nowMs = clock.monotonicMs() + SELF_FENCE_MS;
      clock.monotonicMs = () => nowMs;
      heart.beatNow();
      await clock.advance();
      coordinator.latest.answerAll();
      await clock.advance();
      expect([lifted, accepted.length]).to.deep.equal([[before], before + 1]);
    });
  });

  describe("says that it is fenced", () => {
    it("a millisecond after its time is up, wherever its ticks fall, and once", async () => {
      await beatFor(1_500);
      const lastSentMs = clock.monotonicMs();
      coordinator.latest.answerAll();
      await clock.advance(137);
      await clock.advance(3 * SELF_FENCE_MS);
      expect(fencedAtMs).to.deep.equal([lastSentMs + SELF_FENCE_MS + 1]);
    });

    it("again when it is fenced again", async () => {
      await clock.advance(SELF_FENCE_MS + INTERVAL_MS);
      coordinator.latest.answerAll();
      await clock.advance(INTERVAL_MS);
      expect(fencedAtMs).to.have.length(1);
      await clock.advance(2 * SELF_FENCE_MS);
      expect(fencedAtMs).to.have.length(2);
    });

    it("not while it is answered, and not when it has stopped", async () => {
      await beatFor(3 * SELF_FENCE_MS);
      coordinator.latest.answerAll();
      await clock.advance(SELF_FENCE_MS - INTERVAL_MS / 2);
      await heart.stop();
      await clock.advance(2 * SELF_FENCE_MS);
      expect(fencedAtMs).to.deep.equal([]);
    });
  });

  describe("does not obey", () => {
    const lower = { coordinator: { coordEpoch: 0n, storeId: new Uint8Array(16).fill(1) } };
    const higher = { coordinator: { coordEpoch: 5n, storeId: new Uint8Array(16).fill(1) } };

    beforeEach(async () => {
      coordinator.latest.answer(1, higher);
      await clock.advance(3_000);
      accepted = [];
    });

    it("an answer of a lower epoch: it proves nothing, and ends the stream", async () => {
      coordinator.latest.answer(7, lower);
      await clock.advance(1_001);
      expect(accepted).to.deep.equal([]);
      expect(heart.isFenced()).to.equal(true);
      await clock.advance(2_000);
      expect(coordinator.streams).to.have.length(2);
    });

    it("an answer without an epoch, or without anything", async () => {
      coordinator.latest.answer(7, { coordinator: {} });
      await clock.advance(1_000);
      expect(coordinator.streams).to.have.length(2);
      coordinator.latest.answerEmpty();
      await clock.advance(2_000);
      expect(coordinator.streams).to.have.length(3);
      expect(accepted).to.deep.equal([]);
    });

    it("and says why once, however often it is told the same", async () => {
      for (let time = 0; time < 5; time++) {
        const { length } = coordinator.streams;
        coordinator.latest.answer(heart.lastSequence, lower);
        while (coordinator.streams.length === length) await clock.advance(INTERVAL_MS);
      }
      expect(said("warn").filter((line) => line.startsWith("an answer"))).to.deep.equal([
        "an answer was refused: epoch 0 is lower than 5, which was seen; trying again",
      ]);
    });

    it("an order to end from a lower epoch", async () => {
      coordinator.latest.answer(7, { ...lower, verdict: BeatVerdict.SUPERSEDED });
      await clock.advance(1_000);
      expect(superseded).to.equal(0);
    });
  });

  it("that is superseded says so once, and ends", async () => {
    coordinator.latest.answer(1, { verdict: BeatVerdict.SUPERSEDED });
    await clock.advance(60_000);
    expect([superseded, coordinator.streams.length, clock.armed]).to.deep.equal([1, 1, 0]);
    expect(accepted).to.deep.equal([]);
  });
});
