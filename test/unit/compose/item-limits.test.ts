// Limits of payloads and outputs from one end to the other: a real coordinator, a real worker, mutual TLS between them.
import { expect } from "chai";
import { LIMITS } from "../../../src/config/limits.ts";
import { doneRecord, failedRecord } from "../../../src/coordinator/ledger/records.ts";
import { RunState } from "../../../src/gen/rollout/v1/run_pb.ts";
import type { RecordType } from "../../../src/storage/codec.ts";
import { decodeRecord, okOrFailure } from "../../../src/storage/codec.ts";
import { DONE_PREFIX, FAILED_PREFIX } from "../../../src/storage/keys.ts";
import { prefixRange } from "../../../src/storage/store.ts";
import { messageLimits, TRANSPORT_LIMITS } from "../../../src/transport/limits.ts";
import type { Backend } from "../../../src/worker/backends/backend.ts";
import { useClosers } from "../../support/closers.ts";
import { eventually } from "../../support/eventually.ts";
import { fixedPlugins } from "../../support/fixed-plugins.ts";
import { failureOf } from "../../support/rejection.ts";
import type { ListeningCoordinator } from "../../support/test-coordinator.ts";
import { newTestCluster, startListeningCoordinator } from "../../support/test-coordinator.ts";
import { startWorker } from "../../support/test-worker.ts";
import { workerClient, seenRun } from "../../support/worker-client.ts";
import { LIVENESS } from "../../support/world.ts";

const MIB = 2 ** 20;
const LARGE = Buffer.from("large");
/** Both ends are in this process: on a busy machine neither is heard while it carries some of the largest payloads. */
const PATIENT = { selfFenceTimeoutMs: 60_000, failureTimeoutMs: 70_000 };
const LARGEST = { payloadBytes: 16 * MIB, outputBytes: 16 * MIB, stateBytes: MIB };

describe("limits of payloads and outputs", () => {
  const closeLater = useClosers();
  let listening: ListeningCoordinator;

  async function lead(limits = { ...LARGEST }): Promise<void> {
    const liveness = { ...LIVENESS, coordinatorFailureTimeoutMs: PATIENT.failureTimeoutMs };
    listening = await startListeningCoordinator(await newTestCluster(), { limits, liveness });
    closeLater(() => listening.stop());
  }

  async function operator() {
    const { run, close } = await workerClient(listening, { role: "operator" });
    closeLater(close);
    return run;
  }

  async function submit(...payloads: Uint8Array[]): Promise<void> {
    const run = await operator();
    const [submissionId, taskDigest] = [new Uint8Array(16).fill(4), new Uint8Array(32)];
    for (const [at, payload] of payloads.entries())
      await run.submit({ submissionId, batchNumber: BigInt(at + 1), taskDigest, items: [{ payload }] });
    await run.seal({});
  }

  /** Gives back what it is given, and 6 MiB for what is `large`. */
  async function work(maxOutputBytes = LARGEST.outputBytes, slots = 4): Promise<void> {
    const backend: Backend = {
      execute: async ({ payload }) => ({
        kind: "success",
        output: Buffer.compare(payload, LARGE) === 0 ? new Uint8Array(6 * MIB) : payload,
      }),
      close: async () => undefined,
    };
    const settings = { plugins: fixedPlugins(backend), limits: { maxOutputBytes } };
    const { address } = listening.server;
    const { worker } = await startWorker(listening, { address, slots, work: settings, ...PATIENT });
    closeLater(() => worker.stop());
  }

  async function complete(): Promise<void> {
    const run = await operator();
    const isComplete = async (): Promise<boolean> => (await seenRun(run)).state === RunState.COMPLETE;
    await eventually("the run completes", isComplete);
  }

  async function rows<Row>(prefix: string, type: RecordType<Row>): Promise<Row[]> {
    const found = await listening.store.scan({ ...prefixRange(prefix), limit: 100 });
    return found.map(({ key, value }) => okOrFailure("memory", decodeRecord(type, key, value)));
  }

  it("payloads and outputs of 16 MiB pass, several at a time", async () => {
    await lead();
    const payloads = [1, 2, 3].map((seed) => new Uint8Array(16 * MIB).fill(seed));
    await submit(...payloads);
    await work();
    await complete();
    const outputs = (await rows(DONE_PREFIX, doneRecord)).map(({ output }) => output);
    expect(
      outputs.map((output, at) => Buffer.compare(output, payloads[at] ?? Buffer.alloc(0))),
    ).to.deep.equal([0, 0, 0]);
  });

  it("a payload over the limit is refused with the limit and its setting, whatever the client allows", async () => {
    await lead({ ...LARGEST, payloadBytes: MIB });
    const error = await failureOf(submit(new Uint8Array(16 * MIB)));
    expect([error.code, error.params["reason"]]).to.deep.equal([
      "request_invalid",
      "a payload of 16777216 bytes; the limit is 1048576 (limits.payload)",
    ]);
  });

  const mismatches = [
    { who: "coordinator", coordinator: MIB, worker: 16 * MIB, limit: MIB },
    { who: "worker", coordinator: 16 * MIB, worker: 2_048, limit: 2_048 },
  ];
  for (const { who, coordinator, worker, limit } of mismatches)
    it(`an output over the limit of the ${who} makes the item fail, and the others go on`, async () => {
      // With a payload that is as small, the output would not even fit into a message.
      await lead({ payloadBytes: MIB, outputBytes: coordinator, stateBytes: MIB });
      await submit(LARGE, Buffer.from("small"));
      await work(worker, 1);
      await complete();
      expect(await rows(DONE_PREFIX, doneRecord)).to.have.length(1);
      const [failed] = await rows(FAILED_PREFIX, failedRecord);
      expect([failed?.class, failed?.message]).to.deep.equal([
        "too_large",
        `the output is ${6 * MIB} bytes; the limit is ${limit} (limits.output of the ${who})`,
      ]);
    });

  it("a server's messages are no larger than its run needs", () => {
    expect(messageLimits(LIMITS)).to.deep.equal({
      maxMessageBytes: TRANSPORT_LIMITS.maxMessageBytes,
      maxSessionMemoryMb: TRANSPORT_LIMITS.maxSessionMemoryMb,
    });
    expect(TRANSPORT_LIMITS.maxMessageBytes).to.equal(5 * MIB);
    expect(messageLimits({ payloadBytes: 1_024, outputBytes: 1_024 }).maxMessageBytes).to.equal(5 * MIB);
    expect(messageLimits(LARGEST).maxMessageBytes).to.equal(TRANSPORT_LIMITS.maxTrustedMessageBytes);
  });
});
