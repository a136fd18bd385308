// The service over a real listener with mutual TLS, and a real coordinator behind it.
import { expect } from "chai";
import { AsyncQueue } from "../../../../src/base/async-queue.ts";
import { ulidToBytes } from "../../../../src/base/ids.ts";
import { WorkerState } from "../../../../src/gen/rollout/v1/common_pb.ts";
import type { BeatAck, BeatStreamResponse } from "../../../../src/gen/rollout/v1/heartbeat_pb.ts";
import { BeatVerdict } from "../../../../src/gen/rollout/v1/heartbeat_pb.ts";
import { StorageLease } from "../../../../src/coordinator/lead/lease.ts";
import { heartbeatKey, workerKey } from "../../../../src/storage/keys.ts";
import { newWorkerId } from "../../../support/certificates.ts";
import { eventually } from "../../../support/eventually.ts";
import { useLedCluster } from "../../../support/led-cluster.ts";
import { incarnationId } from "../../../support/world-worker.ts";
import { failureOf } from "../../../support/rejection.ts";
import { beatMessage } from "../../../support/worker-client.ts";
import type { NamedWorker, WorkerClient } from "../../../support/worker-client.ts";

type BeatRequest = { readonly beat: ReturnType<typeof beatMessage> };

describe("the service of heartbeats", () => {
  const led = useLedCluster(() => ({ workersMax: 2 }));
  let client: WorkerClient;
  let worker: NamedWorker;

  beforeEach(async () => {
    client = await led.join();
    ({ worker } = client);
  });

  interface Stream {
    send(parts?: Parameters<typeof beatMessage>[1]): void;
    next(): Promise<BeatAck | undefined>;
    end(): void;
  }

  function openStream({ beats, worker: who }: WorkerClient = client): Stream {
    const requests = new AsyncQueue<BeatRequest>(100);
    const answers = beats.beatStream(requests)[Symbol.asyncIterator]();
    return {
      send: (parts) => void requests.push({ beat: beatMessage(who, parts) }),
      next: async () => {
        const answer: IteratorResult<BeatStreamResponse, undefined> = await answers.next();
        return answer.value?.ack;
      },
      end: () => requests.end(),
    };
  }

  describe("answers on a stream", () => {
    it("each beat once, in order, with the envelope of the leader", async () => {
      const stream = openStream();
      for (let sequence = 1n; sequence <= 20n; sequence++) stream.send({ sequence });
      const { epoch, storeId } = led.listening.coordinator;
      for (let sequence = 1n; sequence <= 20n; sequence++)
        expect(await stream.next()).to.deep.include({ sequence, verdict: BeatVerdict.ACCEPTED });
      stream.send({ sequence: 21n });
      expect((await stream.next())?.coordinator).to.deep.include({
        coordEpoch: BigInt(epoch),
        storeId: ulidToBytes(storeId),
      });
    });

    it("once the beat is in the store", async () => {
      const stream = openStream();
      stream.send();
      await stream.next();
      expect(await led.listening.store.get(workerKey(worker.id))).to.not.equal(undefined);
      expect(await led.listening.store.get(heartbeatKey(worker.id))).to.not.equal(undefined);
    });

    it("until the worker ends it", async () => {
      const stream = openStream();
      stream.send();
      await stream.next();
      stream.end();
      expect(await stream.next()).to.equal(undefined);
    });

    it("until the coordinator stops", async () => {
      const stream = openStream();
      stream.send();
      await stream.next();
      led.listening.coordinator.endStreams();
      expect(await stream.next()).to.equal(undefined);
    });

    it("nothing on one that begins when the coordinator stops already", async () => {
      led.listening.coordinator.endStreams();
      const stream = openStream();
      stream.send();
      expect(await stream.next()).to.equal(undefined);
    });

    it("with an error that names the field when a beat cannot be read, and ends it", async () => {
      const stream = openStream();
      stream.send({ load: 2 });
      const error = await failureOf(stream.next());
      expect(error.code).to.equal("request_invalid");
      expect(error.params["reason"]).to.equal("load is not between 0 and 1");
    });
  });

  describe("answers a single beat", () => {
    it("as it does on a stream", async () => {
      const { ack } = await client.beats.beat({ beat: beatMessage(worker, { sequence: 3n }) });
      expect(ack).to.deep.include({ sequence: 3n, verdict: BeatVerdict.ACCEPTED });
      expect(ack?.coordinator?.coordEpoch).to.equal(0n);
      expect(await led.listening.store.get(heartbeatKey(worker.id))).to.not.equal(undefined);
    });

    it("that is sent twice in the same way, and counts it once", async () => {
      const beat = beatMessage(worker, { sequence: 3n });
      const [first, second] = [await client.beats.beat({ beat }), await client.beats.beat({ beat })];
      expect(second).to.deep.equal(first);
      expect(led.listening.events.of("worker_heartbeat")).to.have.length(1);
    });

    it("with an error that names the field when it cannot be read", async () => {
      const error = await failureOf(client.beats.beat({ beat: beatMessage(worker, { slots: 9_999 }) }));
      expect(error.params["reason"]).to.equal("slots is over 1024");
    });

    it("whose worker also has a stream: the numbers are one sequence", async () => {
      const stream = openStream();
      stream.send({ sequence: 5n });
      await stream.next();
      await client.beats.beat({ beat: beatMessage(worker, { sequence: 4n, state: WorkerState.GONE }) });
      expect(led.listening.events.of("worker_deregistered")).to.deep.equal([]);
    });
  });

  describe("says superseded to an older incarnation", () => {
    const newer = incarnationId(9);

    beforeEach(async () => {
      await client.beats.beat({ beat: beatMessage({ ...worker, incarnation: newer }) });
    });

    it("on a stream", async () => {
      const stream = openStream();
      stream.send();
      expect((await stream.next())?.verdict).to.equal(BeatVerdict.SUPERSEDED);
    });

    it("by a single answer", async () => {
      const { ack } = await client.beats.beat({ beat: beatMessage(worker) });
      expect(ack?.verdict).to.equal(BeatVerdict.SUPERSEDED);
    });
  });

  describe("refuses", () => {
    const other = { id: newWorkerId(), incarnation: incarnationId(1) };

    it("a worker that speaks as another, by a single beat: nothing happens, and an audit line is left", async () => {
      const error = await failureOf(client.beats.beat({ beat: beatMessage(other) }));
      expect(error.code).to.equal("permission_denied");
      expect(led.listening.events.events).to.deep.equal([]);
      expect(led.listening.audit.map(({ reason, identity }) => [reason, identity?.id])).to.deep.equal([
        ["speaks_as_another", worker.id],
      ]);
    });

    it("a worker that speaks as another in the middle of its stream", async () => {
      const stream = openStream();
      stream.send();
      await stream.next();
      stream.send({ ...beatMessage(other), sequence: 2n });
      expect((await failureOf(stream.next())).code).to.equal("permission_denied");
      expect(led.listening.events.of("worker_heartbeat")).to.have.length(1);
      expect(led.listening.audit.map(({ reason }) => reason)).to.deep.equal(["speaks_as_another"]);
    });

    for (const role of ["operator", "enrolment", "coordinator"] as const)
      it(`the beats of the role ${role}`, async () => {
        const stranger = await led.join({ role });
        const error = await failureOf(stranger.beats.beat({ beat: beatMessage(stranger.worker) }));
        expect(error.code).to.match(/^(permission_denied|certificate_refused)$/);
        expect(led.listening.events.events).to.deep.equal([]);
      });

    it("a worker for whom there is no room, with the limit, and leaves the others alone", async () => {
      for (const joined of [client, await led.join()])
        await joined.beats.beat({ beat: beatMessage(joined.worker) });
      const third = await led.join();
      const error = await failureOf(third.beats.beat({ beat: beatMessage(third.worker) }));
      expect([error.code, error.params["limit"]]).to.deep.equal(["overloaded", "2"]);
      const stream = openStream(third);
      stream.send();
      expect((await failureOf(stream.next())).code).to.equal("overloaded");
      await client.beats.beat({ beat: beatMessage(worker, { sequence: 2n }) });
    });

    it("everything once somebody else leads: streams end, and nothing is answered any more", async () => {
      await client.beats.beat({ beat: beatMessage(worker) });
      await new StorageLease(led.listening.store, "other").claim();
      const stream = openStream();
      stream.send({ sequence: 2n });
      stream.send({ sequence: 3n });
      expect(await stream.next()).to.equal(undefined);
      const error = await failureOf(client.beats.beat({ beat: beatMessage(worker, { sequence: 4n }) }));
      expect(error.code).to.equal("coordinator_silent");
      await eventually("it is fenced", () => led.listening.fenced.length === 1);
    });

    it("with the limit what the inbox has no room for", async () => {
      await led.restart({ inboxMax: 0 });
      const { beats, worker: late } = await led.join();
      const error = await failureOf(beats.beat({ beat: beatMessage(late) }));
      expect([error.code, error.params["what"], error.params["limit"]]).to.deep.equal([
        "overloaded",
        "the inbox",
        "0",
      ]);
    });
  });
});
