// Bearers of good certificates who send what nobody who is well would: to a real coordinator, over real connections, with nothing
// of ours on their side.
import { create, toBinary } from "@bufbuild/protobuf";
import type { MessageInitShape } from "@bufbuild/protobuf";
import { expect } from "chai";
import { hash } from "node:crypto";
import type { ClientHttp2Session, ClientHttp2Stream, OutgoingHttpHeaders } from "node:http2";
import { ulidToBytes } from "../../../../src/base/ids.ts";
import { OutcomeClass, SessionRequestSchema } from "../../../../src/gen/rollout/v1/work_pb.ts";
import { TRANSPORT_LIMITS } from "../../../../src/transport/limits.ts";
import { makeCertificateRequest } from "../../../../src/transport/tls/certificate-request.ts";
import type { Role } from "../../../../src/transport/tls/identity.ts";
import { newIdentity, newWorkerId } from "../../../support/certificates.ts";
import { useClosers } from "../../../support/closers.ts";
import { CommitGate } from "../../../support/commit-gate.ts";
import { eventually } from "../../../support/eventually.ts";
import { answerOf, openRawSession, postUnary } from "../../../support/raw-session.ts";
import type { ListeningCoordinator } from "../../../support/test-coordinator.ts";
import { newTestCluster, startListeningCoordinator } from "../../../support/test-coordinator.ts";
import { incarnationId } from "../../../support/world-worker.ts";
import { beatMessage, workerClient } from "../../../support/worker-client.ts";

const MIB = 2 ** 20;
const LIST = "/rollout.v1.OperatorService/ListWorkers";
const SUBMIT = "/rollout.v1.OperatorService/Submit";
const SESSION = "/rollout.v1.WorkService/Session";
const SIGN = "/rollout.v1.EnrolmentService/SignWorkerCertificate";
/** Probes after which what has not moved waits. */
const PROBES = 20;
/** The loop of a coordinator has so many. */
const TURNS_UNDER_WAY = 4;

type Frame = Exclude<MessageInitShape<typeof SessionRequestSchema>["frame"], undefined>;

describe("a coordinator among hostile peers", () => {
  const closeLater = useClosers();
  const gate = new CommitGate("open");
  /** Turns, and those of them that came behind a commit that waits. */
  const turns = { all: 0, behind: 0 };
  let listening: ListeningCoordinator;

  beforeEach(async () => {
    gate.open();
    const cluster = await newTestCluster();
    listening = await startListeningCoordinator(
      { ...cluster, store: gate.over(cluster.store) },
      {
        inboxMax: 1_000,
        inspect: () => {
          turns.all++;
          if (gate.waiting > 0) turns.behind++;
        },
      },
    );
    closeLater(() => {
      gate.open();
      return listening.stop();
    });
  });

  async function session(
    role: Role,
    id = newIdentity(listening.runId, role).id,
  ): Promise<ClientHttp2Session> {
    const { ca, runId, server } = listening;
    const opened = openRawSession(server.port, await ca.issue({ runId, role, id }));
    closeLater(() => opened.destroy());
    return opened;
  }

  /** The status and the text of the answer. */
  async function ask(
    on: ClientHttp2Session,
    path: string,
    body: Uint8Array,
    headers: OutgoingHttpHeaders = {},
  ): Promise<[status: number | "closed", text: string]> {
    const stream = postUnary(on, path, headers);
    let text = "";
    stream.setEncoding("utf8").on("data", (part: string) => (text += part));
    const status = answerOf(stream);
    const ended = new Promise((resolve) => void stream.on("close", resolve));
    stream.end(body);
    await ended;
    return [await status, text];
  }

  for (const type of ["application/grpc", "application/grpc+proto", "application/grpc-web+proto"])
    it(`speaks no ${type}`, async () => {
      const [status] = await ask(await session("operator"), LIST, Buffer.alloc(5), { "content-type": type });
      expect(status).to.equal(415);
    });

  it("calls bytes that are no message what they are, in a call and on a stream", async () => {
    const broken = Buffer.from([0x0f, 0xff, 0xff]);
    const [status, text] = await ask(await session("operator"), LIST, broken);
    expect(status).to.equal(400);
    expect(JSON.parse(text)).to.include({ code: "invalid_argument" });
    const framed = Buffer.concat([Buffer.from([0, 0, 0, 0, broken.length]), broken]);
    const streaming = { "content-type": "application/connect+proto" };
    const [, ended] = await ask(await session("worker"), SESSION, framed, streaming);
    expect(ended).to.contain('"invalid_argument"').and.contain("the coordinator did not understand");
    const [, cut] = await ask(await session("worker"), SESSION, framed.subarray(0, 6), streaming);
    expect(cut).to.contain('"invalid_argument"').and.contain("it ends within a message");
    expect(listening.log.lines.filter(({ level }) => level === "error")).to.deep.equal([]);
  });

  it("decodes no message of a million fields, which would keep everybody waiting", async () => {
    // `held` of `hello`: each of two bytes, an object when it is decoded.
    const held = Buffer.alloc(2 * MIB, Buffer.from([0x0a, 0x00]));
    const size = Buffer.from([0x1a, 0x80, 0x80, 0x80, 0x01]);
    const head = Buffer.alloc(5);
    head.writeUInt32BE(size.length + held.length, 1);
    const streaming = { "content-type": "application/connect+proto" };
    const [, text] = await ask(
      await session("worker"),
      SESSION,
      Buffer.concat([head, size, held]),
      streaming,
    );
    expect(text).to.contain('"resource_exhausted"').and.contain("the number of parts of a message");
    const json = { "content-type": "application/json" };
    const [status, said] = await ask(await session("operator"), SUBMIT, Buffer.alloc(66_000, "["), json);
    expect(status, "and none of JSON").to.equal(429);
    expect(said).to.contain("the number of parts of a message");
  });

  it("reads no request for a certificate that is longer than one can be", async () => {
    const bearer = await session("enrolment");
    const [status] = await ask(bearer, SIGN, Buffer.alloc(64 * 1_024));
    expect(status).to.equal(429);
    const declared = postUnary(bearer, SIGN, { "content-length": String(4 * MIB) });
    expect(await answerOf(declared), "before a byte of it has come").to.equal(429);
  });

  it("answers an operator beside more idle sessions of the same than it takes", async () => {
    const { id } = newIdentity(listening.runId, "operator");
    const idle = TRANSPORT_LIMITS.maxConnectionsOf.operator + 6;
    for (let at = 0; at < idle; at++) await ask(await session("operator", id), LIST, Buffer.alloc(0));
    const { run, close } = await workerClient(listening, { role: "operator", id });
    closeLater(close);
    await run.getRun({});
    expect(listening.audit).to.deep.equal([]);
  });

  it("hears a worker while many ask for certificates", async () => {
    const worker = await workerClient(listening);
    const bearer = await workerClient(listening, { role: "enrolment" });
    closeLater(worker.close);
    closeLater(bearer.close);
    const { csr } = await makeCertificateRequest();
    let signed = 0;
    const all = Array.from({ length: 90 }, async () => {
      await bearer.enrolment.signWorkerCertificate({ workerId: ulidToBytes(newWorkerId()), csr });
      signed++;
    });
    for (let at = 1; at <= 10; at++)
      await worker.beats.beat({ beat: beatMessage(worker.worker, { sequence: BigInt(at) }) });
    expect(signed, "certificates that were made before the tenth beat was answered").to.be.lessThan(80);
    await Promise.all(all);
  });

  describe("when its disk stalls", () => {
    const id = newWorkerId();
    const output = Buffer.alloc(3 * MIB);
    const outputDigest = hash("sha256", output, "buffer");

    function framed(frame: Frame): Buffer {
      const worker = beatMessage({ id, incarnation: incarnationId(1) }).worker;
      const message = toBinary(
        SessionRequestSchema,
        create(SessionRequestSchema, { ...(worker && { worker }), frame }),
      );
      const head = Buffer.alloc(5);
      head.writeUInt32BE(message.length, 1);
      return Buffer.concat([head, message]);
    }

    const results = (number: number): Buffer => {
      const attempt = { itemId: new Uint8Array(32).fill(number), attempt: 1 };
      const result = { attempt, epoch: 0n, outcome: OutcomeClass.SUCCESS, output, outputDigest };
      return framed({ case: "results", value: { number: BigInt(number), results: [result] } });
    };

    /** Writes it in pieces, as fast as they are taken. */
    function pour(stream: ClientHttp2Stream, message: Buffer, taken: (bytes: number) => void): void {
      const piece = message.subarray(0, 64 * 1_024);
      if (piece.length === 0) return;
      stream.write(piece, (error) => {
        if (error) return;
        taken(piece.length);
        pour(stream, message.subarray(piece.length), taken);
      });
    }

    /** As many turns as may be under way are, and none of them ends; one that writes nothing waits for those before it. */
    async function stall(): Promise<void> {
      const { run, close } = await workerClient(listening, { role: "operator" });
      closeLater(close);
      turns.behind = 0;
      gate.shut();
      const isFull = (): boolean => turns.behind === TURNS_UNDER_WAY - 1;
      for (let calls = 1; !isFull(); calls++) {
        const before = turns.all;
        void (calls % 2 === 1 ? run.pause({ reason: "stall" }) : run.resume({})).catch(() => undefined);
        await eventually("another turn", () => turns.all > before || isFull());
      }
    }

    it("has no more in memory of a worker whose streams break again and again, and all of it is given back", async () => {
      const worker = await workerClient(listening, { id });
      closeLater(worker.close);
      await worker.beats.beat({ beat: beatMessage(worker.worker) });
      const batches = Buffer.concat([1, 2, 3, 4, 5, 6, 7, 8].map(results));
      const hello = framed({ case: "hello", value: {} });
      let taken = 0;
      const begin = async (): Promise<ClientHttp2Session> => {
        const opened = await session("worker", id);
        const stream = postUnary(opened, SESSION, { "content-type": "application/connect+proto" }).resume();
        stream.write(hello);
        pour(stream, batches, (bytes) => (taken += bytes));
        return opened;
      };
      await stall();
      for (let round = 0; round < 6; round++) {
        const opened = await begin();
        for (let [probes, before] = [0, taken]; probes < PROBES; probes++) {
          // Answered behind everything that came before it.
          await ask(opened, "/nothing", Buffer.alloc(0));
          if (taken !== before) [probes, before] = [0, taken];
        }
        opened.destroy();
      }
      expect(taken).to.be.lessThan(TRANSPORT_LIMITS.receivingBytes.worker.bearer + 8 * MIB);
      gate.open();
      taken = 0;
      await begin();
      await eventually("all of it, once the disk goes on", () => taken === batches.length);
    });
  });
});
