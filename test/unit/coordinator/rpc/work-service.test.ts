// The service over a real listener with mutual TLS, a real coordinator behind it, and workers of nothing but generated code.
import { expect } from "chai";
import type { MessageInitShape } from "@bufbuild/protobuf";
import { AsyncQueue } from "../../../../src/base/async-queue.ts";
import { ulidToBytes } from "../../../../src/base/ids.ts";
import { HeldPhase, HeldVerdict, OutcomeClass } from "../../../../src/gen/rollout/v1/work_pb.ts";
import type { SessionRequestSchema, SessionResponse } from "../../../../src/gen/rollout/v1/work_pb.ts";
import { newWorkerId } from "../../../support/certificates.ts";
import { useLedCluster } from "../../../support/led-cluster.ts";
import { incarnationId } from "../../../support/world-worker.ts";
import { failureOf } from "../../../support/rejection.ts";
import { beatMessage, seenRun } from "../../../support/worker-client.ts";
import type { WorkerClient } from "../../../support/worker-client.ts";

type Request = Exclude<MessageInitShape<typeof SessionRequestSchema>, { readonly $typeName: string }>;

describe("work over the wire", () => {
  const led = useLedCluster(() => ({ inboxMax: 1_000 }));
  const taskDigest = new Uint8Array(32).fill(3);
  const submissionId = new Uint8Array(16).fill(4);

  async function submit(texts: readonly string[], batchNumber = 1n): Promise<void> {
    const items = texts.map((text) => ({ payload: Buffer.from(text) }));
    await led.operator.run.submit({ submissionId, batchNumber, taskDigest, items });
  }

  describe("refuses", () => {
    const refusal = async (request: Parameters<typeof led.operator.run.submit>[0]): Promise<unknown> => {
      const { code, params } = await failureOf(led.operator.run.submit(request));
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
      await led.operator.run.seal({});
      const error = await failureOf(led.operator.run.submit({ ...good, items: [{}] }));
      expect(error.code).to.equal("run_sealed");
    });
  });

  it("answers a batch that is sent twice at once as one", async () => {
    const request = { submissionId, batchNumber: 1n, taskDigest, items: [{}, {}] };
    const answers = await Promise.all([0, 1].map(() => led.operator.run.submit(request)));
    expect(answers.map(({ added, known }) => [added, known])).to.deep.equal([
      [2n, 0n],
      [2n, 0n],
    ]);
    expect((await seenRun(led.operator.run)).pending).to.equal(2);
  });

  describe("in a session", () => {
    let joined: WorkerClient;
    let requests: AsyncQueue<Request>;
    let answers: AsyncIterator<SessionResponse>;

    beforeEach(async () => {
      joined = await led.join();
      await joined.beats.beat({ beat: beatMessage(joined.worker) });
      await openSession();
    });

    async function openSession(): Promise<void> {
      const { work } = await led.join({ id: joined.worker.id });
      requests = new AsyncQueue<Request>(100);
      answers = work.session(requests)[Symbol.asyncIterator]();
    }

    function say(frame: NonNullable<Request["frame"]>, parts: Request = {}): void {
      requests.push({ worker: joined.envelope, ackedAssignment: 0n, frame, ...parts });
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
      expect(await seenRun(led.operator.run)).to.deep.include({ failed: 1, done: 0 });
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
        { worker: { ...joined.envelope, incarnation: ulidToBytes(incarnationId(7)) } },
      );
      expect((await answers.next()).done).to.equal(true);
    });

    it("ends when the coordinator stops", async () => {
      say({ case: "hello", value: {} });
      await next();
      led.listening.coordinator.endStreams();
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
      say(
        { case: "hello", value: {} },
        { worker: { ...joined.envelope, workerId: ulidToBytes(newWorkerId()) } },
      );
      const error = await failureOf(next());
      expect(error.code).to.equal("permission_denied");
      expect(led.listening.audit.map(({ reason }) => reason)).to.deep.equal(["speaks_as_another"]);
    });
  });
});
