// Numbers of 64 bits that are none of this program's, from a worker over a real listener with mutual TLS: refused, each by its
// field, and nothing of them in a row that the next leader could not read.
import { expect } from "chai";
import { AsyncQueue } from "../../../../src/base/async-queue.ts";
import { HeldPhase } from "../../../../src/gen/rollout/v1/work_pb.ts";
import { useLedCluster } from "../../../support/led-cluster.ts";
import { failureOf } from "../../../support/rejection.ts";
import { beatMessage } from "../../../support/worker-client.ts";
import type { WorkerClient } from "../../../support/worker-client.ts";

type Frame =
  Parameters<WorkerClient["work"]["session"]>[0] extends AsyncIterable<infer Request> ? Request : never;

describe("numbers beyond what is exact", () => {
  const led = useLedCluster();
  let worker: WorkerClient;
  let envelope: WorkerClient["envelope"];
  const huge = 2n ** 63n;
  const attempt = { itemId: new Uint8Array(32).fill(1), attempt: 1 };
  const held = [{ attempt, epoch: huge, phase: HeldPhase.UNSTARTED }];

  beforeEach(async () => {
    worker = await led.join();
    ({ envelope } = worker);
    await worker.beats.beat({ beat: beatMessage(worker.worker) });
  });

  async function reasonOf(call: Promise<unknown>): Promise<string | undefined> {
    const { code, params } = await failureOf(call);
    expect(code).to.equal("request_invalid");
    return params["reason"];
  }

  /** Says these frames and reads until the stream ends. */
  async function converse(...frames: Omit<Frame & object, "worker">[]): Promise<void> {
    const requests = new AsyncQueue<Frame>(10);
    for (const frame of frames) requests.push({ worker: envelope, ...frame } as Frame);
    for await (const answer of worker.work.session(requests)) if (answer.frame.case === undefined) continue;
  }

  const hello = { ackedAssignment: 0n, frame: { case: "hello", value: {} } } as const;
  const inSession: Readonly<Record<string, readonly Omit<Frame & object, "worker">[]>> = {
    acked_assignment: [{ ...hello, ackedAssignment: huge }],
    session_number: [{ ...hello, frame: { case: "hello", value: { sessionNumber: huge } } }],
    epoch: [{ ...hello, frame: { case: "hello", value: { held } } }],
    number: [hello, { frame: { case: "results", value: { number: 2n ** 64n - 1n, results: [] } } }],
  };
  for (const [field, frames] of Object.entries(inSession))
    it(`are refused as ${field} of a session`, async () => {
      expect(await reasonOf(converse(...frames))).to.match(new RegExp(`^${field} is over`));
    });

  it("are refused in a frame that says nothing else", async () => {
    expect(await reasonOf(converse(hello, { ackedAssignment: huge }))).to.match(/^acked_assignment is over/);
  });

  it("are refused in calls", async () => {
    const { work } = worker;
    const requestId = new Uint8Array(16);
    const calls: Readonly<Record<string, Promise<unknown>>> = {
      acked_assignment: work.pull({ worker: envelope, requestId, ackedAssignment: huge }),
      epoch: work.pull({ worker: envelope, requestId, held }),
      epoch_seen: work.pull({ worker: { ...envelope, epochSeen: huge }, requestId }),
    };
    for (const [field, call] of Object.entries(calls))
      expect(await reasonOf(call)).to.match(new RegExp(`^${field} is over`));
    const reported = work.reportResults({ worker: envelope, ackedAssignment: huge, results: [] });
    expect(await reasonOf(reported)).to.match(/^acked_assignment is over/);
  });

  it("are refused in beats, and the next leader reads what there is", async () => {
    const { beats, worker: named } = worker;
    const parts = [{ sequence: huge }, { ackedAssignment: huge }, { sentAtMs: 2n ** 63n - 1n }];
    for (const part of parts) {
      const call = beats.beat({ beat: beatMessage(named, { sequence: 2n, ...part }) });
      expect(await reasonOf(call)).to.match(/ is over 4503599627370496$/);
    }
    await led.restart();
    const { workers } = await led.operator.run.listWorkers({});
    expect(workers).to.have.length(1);
  });

  it("are refused from an operator", async () => {
    const request = { submissionId: new Uint8Array(16), taskDigest: new Uint8Array(32), batchNumber: huge };
    expect(await reasonOf(led.operator.run.submit(request))).to.match(/^batch_number is over/);
  });
});
