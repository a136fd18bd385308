// The worker's fence against the coordinator's judgement, on one clock: what a worker kills is dead before it can be somebody
// else's. A beat that takes no time at all is the worst case: the coordinator then counts from the same moment as the worker.
import { expect } from "chai";
import { SETTINGS } from "../../../../src/config/schema.ts";
import { parseDurationMs } from "../../../../src/config/duration.ts";
import { WorkerState } from "../../../../src/gen/rollout/v1/common_pb.ts";
import { EpochGuard } from "../../../../src/worker/link/epoch-guard.ts";
import { Heartbeat } from "../../../../src/worker/life/heartbeat.ts";
import { HeldBackend } from "../../../support/held-backend.ts";
import { World } from "../../../support/world.ts";
import { workerId } from "../../../support/world-worker.ts";
import { RecordingLogger } from "../../../support/recording-logger.ts";
import { ScriptedBeats } from "./scripted-beats.ts";
import { VirtualClock } from "../../../support/virtual-clock.ts";
import { executorOf, give } from "../work/held-executor.ts";

const of = (
  key: "heartbeat_interval" | "worker_self_fence_timeout" | "coordinator_failure_timeout",
): number => parseDurationMs(SETTINGS[`liveness.${key}`].default) ?? NaN;
const INTERVAL_MS = of("heartbeat_interval");
const SELF_FENCE_MS = of("worker_self_fence_timeout");
const FAILURE_MS = of("coordinator_failure_timeout");

describe("a worker that aborts when it is fenced", () => {
  /** From the last beat that was answered: when its running item was killed, and when the coordinator gave it up. */
  async function silence(phaseMs: number): Promise<{ readonly killedMs: number; readonly failedMs: number }> {
    const clock = new VirtualClock();
    const [backend, beats, log] = [new HeldBackend(), new ScriptedBeats(), new RecordingLogger()];
    const executor = executorOf(backend, clock, { slots: 1, log });
    const heart = new Heartbeat({
      client: beats,
      clock,
      random: { unit: () => 0.5, bytes: (count) => new Uint8Array(count) },
      log,
      address: "127.0.0.1:1",
      guard: new EpochGuard([], async () => undefined),
      heartbeatIntervalMs: INTERVAL_MS,
      selfFenceTimeoutMs: SELF_FENCE_MS,
      answerTimeoutMs: FAILURE_MS,
      describe: () => ({ state: WorkerState.READY }),
      onAccepted: () => undefined,
      onFenced: () => executor.fence(),
      onFailed: () => undefined,
      onSuperseded: () => undefined,
    });
    give(executor, 1);
    const coordinator = await World.start();
    await coordinator.watch(phaseMs);
    heart.start();
    await clock.advance();
    const sentMs = clock.monotonicMs();
    beats.latest.answerAll();
    await coordinator.beat();
    const heardMs = coordinator.nowMs;

    let killedMs = NaN;
    backend.of(1).signal.addEventListener("abort", () => (killedMs = clock.monotonicMs() - sentMs));
    await clock.advance(2 * FAILURE_MS);
    await heart.stop();
    while (coordinator.stateOf(workerId(1)) !== "Ready+Failed") await coordinator.watch(1);
    return { killedMs, failedMs: coordinator.nowMs - heardMs };
  }

  for (const phaseMs of [0, 1, 100, 249])
    it(`kills before the coordinator gives the item away (its scans ${phaseMs} ms apart from the beats)`, async () => {
      const { killedMs, failedMs } = await silence(phaseMs);
      expect(killedMs).to.equal(SELF_FENCE_MS + 1);
      expect(killedMs).to.be.lessThan(failedMs - INTERVAL_MS);
      expect(failedMs).to.be.greaterThan(FAILURE_MS + INTERVAL_MS);
    });
});
