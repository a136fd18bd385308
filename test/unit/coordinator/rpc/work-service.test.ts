// The service over a real listener with mutual TLS, a real coordinator behind it, and workers of nothing but generated code.
import { expect } from "chai";
import type { MessageInitShape } from "@bufbuild/protobuf";
import { AsyncQueue } from "../../../../src/base/async-queue.ts";
import { ulidToBytes } from "../../../../src/base/ids.ts";
import { createClient } from "@connectrpc/connect";
import { systemClock } from "../../../../src/base/clock.ts";
import { DONE_PREFIX } from "../../../../src/storage/keys.ts";
import { prefixRange } from "../../../../src/storage/store.ts";
import { decodeRecord, okOrFailure } from "../../../../src/storage/codec.ts";
import { doneRecord } from "../../../../src/coordinator/ledger/records.ts";
import { RunState } from "../../../../src/gen/rollout/v1/run_pb.ts";
import { HeldPhase, HeldVerdict, OutcomeClass, WorkService } from "../../../../src/gen/rollout/v1/work_pb.ts";
import type { SessionRequestSchema, SessionResponse } from "../../../../src/gen/rollout/v1/work_pb.ts";
import { silentLogger } from "../../../../src/observe/log.ts";
import { openClient } from "../../../../src/transport/client.ts";
import { newWorkerId } from "../../../support/certificates.ts";
import { useClosers } from "../../../support/closers.ts";
import { eventually } from "../../../support/eventually.ts";
import { workInSession } from "../../../support/ledger-session-client.ts";
import { incarnationId } from "../../../support/reactor-harness.ts";
import { failureOf } from "../../../support/rejection.ts";
import type { ListeningCoordinator } from "../../../support/test-coordinator.ts";
import { newTestCluster, startListeningCoordinator } from "../../../support/test-coordinator.ts";
import { beatMessage, workerClient } from "../../../support/worker-client.ts";
import type { WorkerClient } from "../../../support/worker-client.ts";

type Request = Exclude<MessageInitShape<typeof SessionRequestSchema>, { readonly $typeName: string }>;

describe("work over the wire", () => {
  const closeLater = useClosers();
  let listening: ListeningCoordinator;
  let operator: WorkerClient;

  beforeEach(async () => {
    listening = await startListeningCoordinator(await newTestCluster(), { inboxMax: 1_000 });
    closeLater(() => listening.stop());
    operator = await workerClient(listening, { role: "operator" });
    closeLater(operator.close);
  });

  const taskDigest = new Uint8Array(32).fill(3);
  const submissionId = new Uint8Array(16).fill(4);

  async function submit(texts: readonly string[], batchNumber = 1n): Promise<void> {
    const items = texts.map((text) => ({ payload: Buffer.from(text) }));
    await operator.run.submit({ submissionId, batchNumber, taskDigest, items });
  }

  it("a whole run of 500 items: each is executed and its result is recorded once", async () => {
    const texts = Array.from({ length: 500 }, (_, at) => `item ${at}`);
    await submit(texts.slice(0, 100));
    const ended = new AbortController();
    const executed: string[] = [];
    const { ca, runId, server } = listening;
    const working = [1, 2].map(async (number) => {
      const id = newWorkerId();
      const { certificatePem: cert, keyPem: key, caPem } = await ca.issue({ runId, role: "worker", id });
      const worker = { workerId: ulidToBytes(id), incarnation: ulidToBytes(incarnationId(number)) };
      const tls = { cert, key, ca: caPem };
      const onExecuted = (payload: string): void => void executed.push(payload);
      const options = { address: server.address, tls, worker, room: 16, onExecuted };
      return workInSession(options, ended.signal);
    });
    for (let batch = 1; batch < 5; batch++)
      await submit(texts.slice(batch * 100, batch * 100 + 100), BigInt(batch) + 1n);
    await operator.run.seal({});
    const isComplete = async (): Promise<boolean> =>
      (await operator.run.getRun({})).state === RunState.COMPLETE;
    await eventually("the run completes", isComplete);
    ended.abort();
    const acknowledged = await Promise.all(working);
    expect(acknowledged.reduce((sum, count) => sum + count, 0)).to.equal(500);
    expect(await operator.run.getRun({})).to.deep.include({
      done: 500n,
      failed: 0n,
      pending: 0n,
      running: 0n,
    });
    expect([...executed].sort()).to.deep.equal([...texts].sort());
    const rows = await listening.store.scan({ ...prefixRange(DONE_PREFIX), limit: 1_000 });
    const outputs = rows.map(({ key, value }) => okOrFailure("memory", decodeRecord(doneRecord, key, value)));
    expect(outputs.map(({ output }) => Buffer.from(output).toString())).to.deep.equal(
      texts.map((text) => text.toUpperCase()),
    );
  });

  describe("refuses", () => {
    const refusal = async (request: Parameters<typeof operator.run.submit>[0]): Promise<unknown> => {
      const { code, params } = await failureOf(operator.run.submit(request));
      expect(code).to.equal("request_invalid");
      return params["reason"];
    };
    const good = { submissionId, batchNumber: 1n, taskDigest };

    it("a submission beyond a limit, which it names", async () => {
      const payload = new Uint8Array(2 ** 20 + 1);
      expect(await refusal({ ...good, items: [{ payload }] })).to.equal(
        "a payload of 1048577 bytes; the limit is 1048576 (limits.payload)",
      );
      expect(await refusal({ ...good, items: [{ key: "é".repeat(129) }] })).to.equal(
        "a key is longer than 256 bytes",
      );
      expect(await refusal({ ...good, items: [{ priority: 101 }] })).to.equal(
        "priority 101 is not between -100 and 100",
      );
      expect(await refusal({ ...good, items: Array.from({ length: 10_001 }, () => ({})) })).to.equal(
        "more than 10000 items in one batch",
      );
    });

    it("a submission that does not say what it is", async () => {
      expect(await refusal({ ...good, submissionId: new Uint8Array(3) })).to.equal(
        "submission_id is not 16 bytes",
      );
      expect(await refusal({ ...good, taskDigest: new Uint8Array(3) })).to.equal(
        "task_digest is not 32 bytes",
      );
      expect(await refusal({ ...good, batchNumber: 0n })).to.equal("batch_number is not counted from 1");
      expect(await refusal({ ...good, batchNumber: 3n })).to.equal("batch 3 came before batch 2");
    });

    it("a submission after the run was sealed", async () => {
      await operator.run.seal({});
      const error = await failureOf(operator.run.submit({ ...good, items: [{}] }));
      expect(error.code).to.equal("run_sealed");
    });
  });

  it("answers a batch that is sent twice at once as one", async () => {
    const request = { submissionId, batchNumber: 1n, taskDigest, items: [{}, {}] };
    const answers = await Promise.all([operator.run.submit(request), operator.run.submit(request)]);
    expect(answers.map(({ added, known }) => [added, known])).to.deep.equal([
      [2n, 0n],
      [2n, 0n],
    ]);
    expect((await operator.run.getRun({})).pending).to.equal(2n);
  });

  describe("in a session", () => {
    let worker: WorkerClient["worker"];
    let beats: WorkerClient["beats"];
    let requests: AsyncQueue<Request>;
    let answers: AsyncIterator<SessionResponse>;

    beforeEach(async () => {
      const joined = await workerClient(listening);
      closeLater(joined.close);
      ({ worker, beats } = joined);
      await beats.beat({ beat: beatMessage(worker) });
      await openSession();
    });

    async function openSession(): Promise<void> {
      const { runId, ca, server } = listening;
      const credentials = await ca.issue({ runId, role: "worker", id: worker.id });
      const { address } = server;
      const client = openClient({ address, runId, credentials, clock: systemClock, log: silentLogger });
      closeLater(() => client.close());
      requests = new AsyncQueue<Request>(100);
      answers = createClient(WorkService, client.transport).session(requests)[Symbol.asyncIterator]();
    }

    const envelope = () => ({
      workerId: ulidToBytes(worker.id),
      incarnation: ulidToBytes(worker.incarnation),
    });

    function say(frame: NonNullable<Request["frame"]>, parts: Request = {}): void {
      requests.push({ worker: envelope(), ackedAssignment: 0n, frame, ...parts });
    }

    const next = async (): Promise<SessionResponse> => {
      const answer = await answers.next();
      if (answer.done === true) throw new Error("the stream has ended");
      return answer.value;
    };

    it("answers a hello with a verdict, in its order", async () => {
      const attempt = { itemId: new Uint8Array(32).fill(1), attempt: 1 };
      const held = [HeldPhase.RUNNING, HeldPhase.FINISHED].map((phase) => ({ attempt, phase, epoch: 0n }));
      say({ case: "hello", value: { held } });
      const { frame, coordinator } = await next();
      expect(coordinator?.coordEpoch).to.equal(0n);
      expect(frame.case === "verdict" && frame.value.verdicts).to.deep.equal([
        HeldVerdict.DROP,
        HeldVerdict.KEEP,
      ]);
    });

    it("gives what was asked for, acknowledges its results, and fails an item whose output is too large", async () => {
      await submit(["a"]);
      say({ case: "hello", value: {} });
      await next();
      say({ case: "credit", value: { more: 5 } });
      const { frame } = await next();
      if (frame.case !== "assignments") throw new Error("no assignments");
      const [assignment] = frame.value.assignments;
      expect(Buffer.from(assignment?.payload ?? []).toString()).to.equal("a");
      const output = new Uint8Array(2 ** 20 + 1);
      const outcome = OutcomeClass.SUCCESS;
      const result = {
        ...(assignment?.attempt && { attempt: assignment.attempt }),
        epoch: 0n,
        outcome,
        output,
      };
      say({ case: "results", value: { number: 1n, results: [result] } });
      expect((await next()).ackedResults).to.equal(1n);
      expect(await operator.run.getRun({})).to.deep.include({ failed: 1n, done: 0n });
    });

    it("ends when the worker opens another one", async () => {
      say({ case: "hello", value: {} });
      await next();
      const first = answers;
      await openSession();
      say({ case: "hello", value: {} });
      await next();
      expect((await first.next()).done).to.equal(true);
    });

    it("ends when nobody has heard of the process", async () => {
      say(
        { case: "hello", value: {} },
        { worker: { ...envelope(), incarnation: ulidToBytes(incarnationId(7)) } },
      );
      expect((await answers.next()).done).to.equal(true);
    });

    it("ends when the coordinator stops", async () => {
      say({ case: "hello", value: {} });
      await next();
      listening.coordinator.endStreams();
      expect((await answers.next()).done).to.equal(true);
    });

    const attempt = { itemId: new Uint8Array(32), attempt: 1 };
    const result = { attempt, epoch: 0n, outcome: OutcomeClass.ERROR };
    const bad: Readonly<Record<string, readonly NonNullable<Request["frame"]>[]>> = {
      "hello is the first frame of a session, and no other": [{ case: "credit", value: { more: 1 } }],
      "item_id is not 32 bytes": [
        { case: "hello", value: { held: [{ attempt: { itemId: new Uint8Array(3), attempt: 1 } }] } },
      ],
      "epoch is missing": [{ case: "hello", value: { held: [{ attempt }] } }],
      "output_digest is not the SHA-256 of the output": [
        { case: "hello", value: {} },
        { case: "results", value: { number: 1n, results: [{ ...result, outcome: OutcomeClass.SUCCESS }] } },
      ],
      "outcome is not one that a worker reports": [
        { case: "hello", value: {} },
        { case: "results", value: { number: 1n, results: [{ ...result, outcome: OutcomeClass.LOST }] } },
      ],
      "outcome is not known to this version": [
        { case: "hello", value: {} },
        { case: "results", value: { number: 1n, results: [{ ...result, outcome: 99 as OutcomeClass }] } },
      ],
      "a result's incarnation is not 16 bytes": [
        { case: "hello", value: {} },
        { case: "results", value: { number: 1n, results: [{ ...result, incarnation: new Uint8Array(2) }] } },
      ],
    };
    for (const [reason, frames] of Object.entries(bad)) {
      it(`ends it with what is wrong: ${reason}`, async () => {
        for (const frame of frames) say(frame);
        const ending = (async () => {
          for (;;) await next();
        })();
        const error = await failureOf(ending);
        expect([error.code, error.params["reason"]]).to.deep.equal(["request_invalid", reason]);
      });
    }

    it("is for the worker itself, and leaves a line in the audit of anybody else", async () => {
      say({ case: "hello", value: {} }, { worker: { ...envelope(), workerId: ulidToBytes(newWorkerId()) } });
      const error = await failureOf(next());
      expect(error.code).to.equal("permission_denied");
      expect(listening.audit.map(({ reason }) => reason)).to.deep.equal(["speaks_as_another"]);
    });
  });
});
