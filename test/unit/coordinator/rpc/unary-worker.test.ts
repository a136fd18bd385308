// Work by calls over a real listener with mutual TLS: a whole run, and what each call promises beyond what the desk does.
import { expect } from "chai";
import { createHash } from "node:crypto";
import { readFile } from "node:fs/promises";
import { Code, ConnectError, createClient } from "@connectrpc/connect";
import type { Client } from "@connectrpc/connect";
import { workByCalls } from "../../../../examples/unary-worker.ts";
import { sleep, systemClock } from "../../../../src/base/clock.ts";
import { ulidFromBytes, ulidToBytes } from "../../../../src/base/ids.ts";
import type { CoordinatorState } from "../../../../src/coordinator/turn/state.ts";
import { RunState } from "../../../../src/gen/rollout/v1/run_pb.ts";
import { WorkerState } from "../../../../src/gen/rollout/v1/common_pb.ts";
import { HeartbeatService } from "../../../../src/gen/rollout/v1/heartbeat_pb.ts";
import { OutcomeClass, WorkService } from "../../../../src/gen/rollout/v1/work_pb.ts";
import type { Assignment, PullResponse } from "../../../../src/gen/rollout/v1/work_pb.ts";
import { DONE_PREFIX } from "../../../../src/storage/keys.ts";
import { prefixRange } from "../../../../src/storage/store.ts";
import type { Backend } from "../../../../src/worker/backends/backend.ts";
import { callingIdentity } from "./calling-worker.ts";
import type { CallingIdentity } from "./calling-worker.ts";
import { newWorkerId } from "../../../support/certificates.ts";
import { eventually } from "../../../support/eventually.ts";
import { useLedCluster } from "../../../support/led-cluster.ts";
import { fixedPlugins } from "../../../support/fixed-plugins.ts";
import { rejectionOf } from "../../../support/rejection.ts";
import { LIVENESS } from "../../../support/world.ts";
import { startListeningCoordinator } from "../../../support/test-coordinator.ts";
import { startWorker } from "../../../support/test-worker.ts";
import { seenRun } from "../../../support/worker-client.ts";

const ITEMS = 500;
const EXAMPLE = new URL("../../../../examples/unary-worker.ts", import.meta.url);

describe("work by calls", () => {
  /** Workers that would be given work at once, if there were any. */
  let owed = 0;
  const led = useLedCluster(() => ({
    inboxMax: 1_000,
    inspect: ({ workers }: CoordinatorState): void => {
      owed = [...workers.values()].filter(({ session }) => (session?.credit ?? 0) > 0).length;
    },
  }));

  const taskDigest = new Uint8Array(32).fill(3);

  async function submit(texts: readonly string[], plugin = ""): Promise<void> {
    const items = texts.map((text) => ({ payload: Buffer.from(text) }));
    const submissionId = new Uint8Array(16).fill(4);
    await led.operator.run.submit({ submissionId, batchNumber: 1n, taskDigest, plugin, items });
  }

  const done = async (): Promise<number> => (await seenRun(led.operator.run)).done;

  it("the example has no more than 60 lines, and imports nothing of ours but what is generated", async () => {
    const source = await readFile(EXAMPLE, "utf8");
    expect(source.trimEnd().split("\n").length).to.be.at.most(60);
    const imported = [...source.matchAll(/ from "(\..*)"/g)].map(([, path]) => path);
    expect(imported).to.not.deep.equal([]);
    for (const path of imported) expect(path).to.match(/^\.\.\/src\/gen\//);
  });

  it("a whole run beside a worker with a stream, a restart in its middle, answers lost: each item once", async () => {
    const texts = Array.from({ length: ITEMS }, (_, at) => `item ${at}`);
    await submit(texts, "mock");
    await led.operator.run.seal({});
    const executed: string[] = [];
    const by = { calls: 0, stream: 0 };
    const toCapitals = (who: keyof typeof by, payload: Uint8Array): Uint8Array => {
      executed.push(Buffer.from(payload).toString());
      by[who]++;
      return Buffer.from(Buffer.from(payload).toString().toUpperCase());
    };
    const ended = new AbortController();
    const execute = async (payload: Uint8Array): Promise<Uint8Array> => toCapitals("calls", payload);
    const plugin = { name: "mock", version: "1" };
    const identities = [await callingIdentity(led.listening, 5), await callingIdentity(led.listening, 7)];
    const working = identities.map((who) => workByCalls({ ...who, slots: 4, plugin, execute }, ended.signal));
    const backend: Backend = {
      execute: async ({ payload }) => ({ kind: "success", output: toCapitals("stream", payload) }),
      close: async () => undefined,
    };
    const work = { plugins: fixedPlugins(backend), prefetch: 2 };
    const { address } = led.listening.server;
    const streaming = await startWorker(led.cluster, { address, work, heartbeatIntervalMs: 100 });
    led.closeLater(() => streaming.worker.stop());

    await eventually("some are done", async () => (await done()) > 100);
    await led.restart();
    const isComplete = async (): Promise<boolean> =>
      (await seenRun(led.operator.run)).state === RunState.COMPLETE;
    await eventually("the run completes", isComplete);
    ended.abort();
    await Promise.all(working);

    expect(await seenRun(led.operator.run)).to.deep.include({
      done: ITEMS,
      failed: 0,
      pending: 0,
    });
    expect(executed.toSorted()).to.deep.equal(texts.toSorted());
    expect(await led.listening.store.scan({ ...prefixRange(DONE_PREFIX), limit: 1_000 })).to.have.length(
      ITEMS,
    );
    expect(by.calls).to.be.greaterThan(0);
    expect(by.stream).to.be.greaterThan(0);
    const left = led.listening.events.events.filter(({ topic }) => topic === "worker_deregistered");
    expect(left).to.have.length(2);
  });

  it("goes to another worker when the answer was lost and its worker only beats", async () => {
    const liveness = { heartbeatIntervalMs: 200, clockSkewBudgetMs: 390, coordinatorFailureTimeoutMs: 1_000 };
    const { port } = led.listening.server;
    await led.listening.stop();
    const listening = await startListeningCoordinator(led.cluster, {
      port,
      liveness: { ...LIVENESS, ...liveness },
    });
    led.closeLater(() => listening.stop());
    const [deaf, other] = [await callingIdentity(listening), await callingIdentity(listening)];
    const over = new AbortController();
    const beat = async ({ transport, worker }: CallingIdentity): Promise<void> => {
      const heart = createClient(HeartbeatService, transport);
      for (let sequence = 1n; !over.signal.aborted; sequence++) {
        await heart.beat({
          beat: { worker, sequence, state: WorkerState.READY, slots: 1, ackedAssignment: 0n },
        });
        await sleep(systemClock, 50);
      }
    };
    const beating = [beat(deaf), beat(other)];
    await submit(["a"]);
    const ask = ({ transport, worker }: CallingIdentity, byte: number): Promise<PullResponse> => {
      const requestId = new Uint8Array(16).fill(byte);
      return createClient(WorkService, transport).pull({ worker, requestId, credit: 1, waitMs: 30_000 });
    };
    await eventually("it is given", async () => (await ask(deaf, 1)).assignments !== undefined);
    const given = await ask(other, 2);
    expect(given.assignments?.assignments.map(({ attempt }) => attempt?.attempt)).to.deep.equal([2]);
    over.abort();
    await Promise.all(beating);
  });

  describe("each call", () => {
    let who: CallingIdentity;
    let work: Client<typeof WorkService>;

    beforeEach(async () => {
      who = await callingIdentity(led.listening);
      work = createClient(WorkService, who.transport);
      await beat(who);
    });

    const beat = async ({ transport, worker }: CallingIdentity): Promise<void> => {
      const said = { worker, sequence: 1n, state: WorkerState.READY, slots: 4 };
      await createClient(HeartbeatService, transport).beat({ beat: said });
    };

    const asked = (parts: object = {}): Parameters<typeof work.pull>[0] => ({
      worker: who.worker,
      requestId: new Uint8Array(16).fill(1),
      credit: 4,
      ...parts,
    });

    const resultOf = ({ attempt }: Assignment, text: string, parts: object = {}): object => {
      const output = Buffer.from(text);
      const outputDigest = createHash("sha256").update(output).digest();
      return { attempt, epoch: 0n, outcome: OutcomeClass.SUCCESS, output, outputDigest, ...parts };
    };

    it("carries the epoch and the store, and names the first number", async () => {
      await submit(["a"]);
      const pulled = await work.pull(asked());
      expect(pulled.coordinator?.coordEpoch).to.equal(0n);
      expect(pulled.assignments?.firstNumber).to.equal(1n);
      const [assignment] = pulled.assignments?.assignments ?? [];
      const results = assignment === undefined ? [] : [resultOf(assignment, "A")];
      const reported = await work.reportResults({ worker: who.worker, results });
      expect(reported.coordinator).to.deep.equal(pulled.coordinator);
      expect(reported.coordinator?.storeId).to.have.length(16);
    });

    it("records results before it answers, once however often they come, also before the first pull of a leader", async () => {
      await submit(["a", "b"]);
      const { assignments } = await work.pull(asked());
      const [one, other] = assignments?.assignments ?? [];
      if (one === undefined || other === undefined) throw new Error("two were given");
      const report = { worker: who.worker, results: [resultOf(one, "A")] };
      await work.reportResults(report);
      expect(await done()).to.equal(1);
      await work.reportResults(report);
      expect(await done()).to.equal(1);
      await led.restart();
      await work.reportResults({ worker: who.worker, results: [resultOf(other, "B")] });
      expect(await seenRun(led.operator.run)).to.deep.include({ done: 2, pending: 0, running: 0 });
    });

    it("fails an item whose output is too large", async () => {
      await submit(["a"]);
      const [given] = (await work.pull(asked())).assignments?.assignments ?? [];
      if (given === undefined) throw new Error("one was given");
      const output = new Uint8Array(2 ** 20 + 1);
      await work.reportResults({ worker: who.worker, results: [resultOf(given, "", { output })] });
      expect(await seenRun(led.operator.run)).to.deep.include({ failed: 1, done: 0 });
    });

    it("ends when the coordinator stops, and the same request is answered by the next one", async () => {
      const waiting = rejectionOf(work.pull(asked({ waitMs: 30_000 })));
      await eventually("it waits", () => owed === 1);
      await led.restart();
      expect(ConnectError.from(await waiting).code).to.equal(Code.Unavailable);
      await submit(["a"]);
      expect((await work.pull(asked({ waitMs: 30_000 }))).assignments?.assignments).to.have.length(1);
    });

    it("that was given up is given no work", async () => {
      const gaveUp = new AbortController();
      const waiting = rejectionOf(work.pull(asked({ waitMs: 30_000 }), { signal: gaveUp.signal }));
      await eventually("it waits", () => owed === 1);
      gaveUp.abort();
      await waiting;
      await eventually("it is known", () => owed === 0);
      await submit(["a"]);
      expect(await seenRun(led.operator.run)).to.deep.include({ pending: 1, running: 0 });
    });

    it("that waits while its worker is revoked ends soon, without work, and so does each one after it", async () => {
      const waiting = rejectionOf(work.pull(asked({ waitMs: 30_000 })));
      await eventually("it waits", () => owed === 1);
      await led.operator.run.revoke({ bearerId: ulidFromBytes(who.worker.workerId) });
      await submit(["a"]);
      await waiting;
      await rejectionOf(work.pull(asked()));
      const refusals = led.listening.audit.map(({ reason }) => reason);
      expect(refusals, "the open session, and the next one").to.deep.equal([
        "certificate_revoked",
        "certificate_revoked",
      ]);
      expect(await seenRun(led.operator.run)).to.deep.include({ pending: 1, running: 0 });

      const other = await callingIdentity(led.listening);
      await beat(other);
      const given = await createClient(WorkService, other.transport).pull(asked({ worker: other.worker }));
      expect(given.assignments?.assignments).to.have.length(1);
    });

    const bad: Readonly<Record<string, object>> = {
      "worker_id is not 16 bytes": { worker: { incarnation: new Uint8Array(16) } },
      "request_id is not 16 bytes": { requestId: new Uint8Array(3) },
      "wait_ms is over 30000": { waitMs: 30_001 },
      "item_id is not 32 bytes": { held: [{ attempt: { itemId: new Uint8Array(3), attempt: 1 } }] },
      "epoch is missing": { held: [{ attempt: { itemId: new Uint8Array(32), attempt: 1 } }] },
    };
    for (const [reason, parts] of Object.entries(bad))
      it(`is refused with what is wrong: ${reason}`, async () => {
        const error = ConnectError.from(await rejectionOf(work.pull(asked(parts))));
        expect([error.code, error.rawMessage]).to.deep.equal([
          Code.InvalidArgument,
          `the coordinator did not understand what a worker says of its work: ${reason}`,
        ]);
      });

    it("is refused to a process that has not beaten", async () => {
      const other = await callingIdentity(led.listening);
      const calls = createClient(WorkService, other.transport);
      for (const refused of [
        calls.pull({ worker: other.worker, requestId: new Uint8Array(16), credit: 1 }),
        calls.reportResults({ worker: other.worker }),
      ])
        expect(ConnectError.from(await rejectionOf(refused)).code).to.equal(Code.InvalidArgument);
    });

    it("is for the worker itself, and for no other role", async () => {
      const worker = { ...who.worker, workerId: ulidToBytes(newWorkerId()) };
      for (const refused of [work.pull(asked({ worker })), work.reportResults({ worker })])
        expect(ConnectError.from(await rejectionOf(refused)).code).to.equal(Code.PermissionDenied);
      expect(led.listening.audit.map(({ reason }) => reason)).to.deep.equal([
        "speaks_as_another",
        "speaks_as_another",
      ]);
    });
  });
});
