// Checkpoints of what runs that wait for the disk are bounded in bytes, and nothing waits for them.
import { expect } from "chai";
import { AsyncQueue } from "../../../../src/base/async-queue.ts";
import { AwaitedValue } from "../../../../src/base/awaited-value.ts";
import { systemClock } from "../../../../src/base/clock.ts";
import type { StoreId } from "../../../../src/base/ids.ts";
import { epoch, newUlid, ulidToBytes } from "../../../../src/base/ids.ts";
import { systemRandom } from "../../../../src/base/random.ts";
import { LIMITS } from "../../../../src/config/limits.ts";
import type { Input } from "../../../../src/coordinator/turn/input.ts";
import { envelopeOf } from "../../../../src/coordinator/rpc/messages.ts";
import { FollowedKeys } from "../../../../src/coordinator/rpc/followed-keys.ts";
import { workService } from "../../../../src/coordinator/rpc/work-service.ts";
import { create } from "@bufbuild/protobuf";
import { SessionRequestSchema, WorkService } from "../../../../src/gen/rollout/v1/work_pb.ts";
import type { SessionRequest } from "../../../../src/gen/rollout/v1/work_pb.ts";
import { callWithoutServer } from "../../../support/call-scope.ts";
import { newRunId, newWorkerId } from "../../../support/certificates.ts";
import { eventually } from "../../../support/eventually.ts";
import { incarnationId } from "../../../support/world-worker.ts";

const MIB = 2 ** 20;
const limits = { payloadBytes: 16 * MIB, outputBytes: 16 * MIB, stateBytes: MIB };

const attempt = { itemId: new Uint8Array(32), attempt: 1 };

describe("checkpoints on their way to the disk", () => {
  let inputs: Input[];
  let service: ReturnType<typeof workService>;

  beforeEach(() => {
    inputs = [];
    service = workService(
      {
        envelope: envelopeOf(epoch(0), newUlid<StoreId>(systemClock, systemRandom)),
        workersMax: LIMITS.workers,
        inboxMax: 1_000,
        limits,
        address: "nowhere:1",
        onHigherEpoch: () => {},
        reach: new AwaitedValue(),
        followedKeys: new FollowedKeys(),
        stopping: new AbortController().signal,
        push: (input) => inputs.push(input) > 0,
      },
      systemClock,
    );
  });

  /** A session that has said hello and then this. */
  function say(frames: readonly object[]): { readonly end: () => void } {
    const id = newWorkerId();
    const requests = new AsyncQueue<SessionRequest>(100);
    const worker = { workerId: ulidToBytes(id), incarnation: ulidToBytes(incarnationId(1)) };
    for (const frame of [{ case: "hello", value: {} }, ...frames])
      requests.push(create(SessionRequestSchema, { worker, frame: frame as never }));
    const over = new AbortController();
    const identity = { runId: newRunId(), role: "worker", id } as const;
    const context = callWithoutServer(WorkService.method.session, identity, over.signal);
    void drain(service.session(requests, context));
    return { end: () => over.abort() };
  }

  async function drain(frames: AsyncIterable<unknown>): Promise<void> {
    const reader = frames[Symbol.asyncIterator]();
    while ((await reader.next()).done !== true);
  }

  const checkpointsOf = (): Extract<Input, { kind: "checkpoints" }>[] =>
    inputs.filter((input) => input.kind === "checkpoints");
  const frame = (bytes: number): object => ({
    case: "checkpoints",
    value: { checkpoints: [{ attempt, epoch: 0n, checkpoint: new Uint8Array(bytes) }] },
  });

  it("are left out when there is no room, and results behind them come all the same", async () => {
    say([...Array.from({ length: 20 }, () => frame(MIB)), { case: "credit", value: { more: 1 } }]);
    await eventually("what is behind them", () => inputs.some(({ kind }) => kind === "credit"));
    expect(checkpointsOf()).to.have.length(16);
    for (const { settled } of checkpointsOf().slice(0, 2)) settled?.();
    say([frame(MIB), frame(MIB), frame(MIB), { case: "credit", value: { more: 2 } }]);
    await eventually("the others", () => inputs.some((input) => input.kind === "credit" && input.more === 2));
    expect(checkpointsOf()).to.have.length(18);
  });

  it("are left out that are over their limit, and not those beside them", async () => {
    say([frame(MIB + 1), frame(7)]);
    await eventually("both", () => checkpointsOf().length === 2);
    expect(checkpointsOf().map(({ checkpoints }) => checkpoints.length)).to.deep.equal([0, 1]);
  });
});
