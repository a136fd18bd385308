// Results that wait for the disk are bounded in bytes: who has more to say is not read on. Checkpoints of what runs are bounded
// beside them, and do not wait.
import { expect } from "chai";
import { createHash } from "node:crypto";
import { createHandlerContext } from "@connectrpc/connect";
import { AsyncQueue } from "../../../../src/base/async-queue.ts";
import { systemClock } from "../../../../src/base/clock.ts";
import type { StoreId } from "../../../../src/base/ids.ts";
import { epoch, newUlid, ulidToBytes } from "../../../../src/base/ids.ts";
import { systemRandom } from "../../../../src/base/random.ts";
import { LIMITS } from "../../../../src/config/limits.ts";
import type { Input } from "../../../../src/coordinator/input.ts";
import { envelopeOf } from "../../../../src/coordinator/rpc/messages.ts";
import { workService } from "../../../../src/coordinator/rpc/work-service.ts";
import { create } from "@bufbuild/protobuf";
import { OutcomeClass, SessionRequestSchema, WorkService } from "../../../../src/gen/rollout/v1/work_pb.ts";
import type { SessionRequest } from "../../../../src/gen/rollout/v1/work_pb.ts";
import { scopeValues } from "../../../../src/transport/caller.ts";
import type { CallScope } from "../../../../src/transport/caller.ts";
import { newRunId, newWorkerId } from "../../../support/certificates.ts";
import { eventually } from "../../../support/eventually.ts";
import { incarnationId } from "../../../support/reactor-harness.ts";
import { settle } from "../../../support/settle.ts";

const MIB = 2 ** 20;
const limits = { payloadBytes: 16 * MIB, outputBytes: 16 * MIB };

const attempt = { itemId: new Uint8Array(32), attempt: 1 };

describe("results on their way to the disk", () => {
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
        stopping: new AbortController().signal,
        push: (input) => inputs.push(input) > 0,
      },
      systemClock,
    );
  });

  /** A session that has said hello and then these many batches of one result each. */
  function deliver(batches: number, outputBytes: number): { readonly end: () => void } {
    const output = new Uint8Array(outputBytes);
    const result = {
      attempt,
      epoch: 0n,
      outcome: OutcomeClass.SUCCESS,
      output,
      outputDigest: createHash("sha256").update(output).digest(),
    };
    return say(
      Array.from({ length: batches }, (_, at) => ({
        case: "results",
        value: { number: BigInt(at + 1), results: [result] },
      })),
    );
  }

  /** A session that has said hello and then this. */
  function say(frames: readonly object[]): { readonly end: () => void } {
    const id = newWorkerId();
    const requests = new AsyncQueue<SessionRequest>(100);
    const worker = { workerId: ulidToBytes(id), incarnation: ulidToBytes(incarnationId(1)) };
    for (const frame of [{ case: "hello", value: {} }, ...frames])
      requests.push(create(SessionRequestSchema, { worker, frame: frame as never }));
    const over = new AbortController();
    const scope = {
      peer: { identity: { runId: newRunId(), role: "worker", id }, remoteAddress: "nowhere" },
      answered: () => undefined,
    } as unknown as CallScope;
    const context = createHandlerContext({
      service: WorkService,
      method: WorkService.method.session,
      protocolName: "connect",
      requestMethod: "POST",
      url: "https://nowhere",
      requestSignal: over.signal,
      contextValues: scopeValues(scope),
    });
    void drain(service.session(requests, context));
    return { end: () => over.abort() };
  }

  async function drain(frames: AsyncIterable<unknown>): Promise<void> {
    const reader = frames[Symbol.asyncIterator]();
    while ((await reader.next()).done !== true);
  }

  const batches = (): Extract<Input, { kind: "results" }>[] =>
    inputs.filter((input) => input.kind === "results");

  it("are read on only as the disk takes them", async () => {
    deliver(6, 15 * MIB);
    await eventually("four batches", () => batches().length === 4);
    await settle();
    expect(batches()).to.have.length(4);
    batches()[0]?.port.send({ kind: "resultsAcknowledged", number: 2 });
    await eventually("two more", () => batches().length === 6);
  });

  it("are bounded over all workers, and one that leaves makes room", async () => {
    const first = deliver(4, 15 * MIB);
    await eventually("four batches", () => batches().length === 4);
    deliver(1, 15 * MIB);
    await settle();
    expect(batches()).to.have.length(4);
    first.end();
    await eventually("the other's", () => batches().length === 5);
  });

  it("do not keep small ones waiting", async () => {
    deliver(90, 100);
    await eventually("all of them", () => batches().length === 90);
  });

  describe("and checkpoints", () => {
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
      for (const { answer } of checkpointsOf().slice(0, 2)) answer();
      say([frame(MIB), frame(MIB), frame(MIB), { case: "credit", value: { more: 2 } }]);
      await eventually("the others", () =>
        inputs.some((input) => input.kind === "credit" && input.more === 2),
      );
      expect(checkpointsOf()).to.have.length(18);
    });

    it("are left out that are over their limit, and not those beside them", async () => {
      say([frame(MIB + 1), frame(7)]);
      await eventually("both", () => checkpointsOf().length === 2);
      expect(checkpointsOf().map(({ checkpoints }) => checkpoints.length)).to.deep.equal([0, 1]);
    });
  });
});
