// The reading of a server: messages as they come over a real connection, counted before they are read, and those who send
// what never ends.
import { create, toBinary } from "@bufbuild/protobuf";
import { expect } from "chai";
import type { ClientHttp2Session, ClientHttp2Stream } from "node:http2";
import { BeatRequestSchema, BeatStreamRequestSchema } from "../../../src/gen/rollout/v1/heartbeat_pb.ts";
import type { TransportLimits } from "../../../src/transport/limits.ts";
import type { Credentials } from "../../../src/transport/tls/identity.ts";
import { newIdentity } from "../../support/certificates.ts";
import { useClosers } from "../../support/closers.ts";
import { eventually } from "../../support/eventually.ts";
import { pace } from "../../support/pace.ts";
import { answerOf, closeOf, openRawSession, postUnary } from "../../support/raw-session.ts";
import { startTestListener } from "./test-listener.ts";
import type { TestListener } from "./test-listener.ts";

const BEAT = "/rollout.v1.HeartbeatService/Beat";
const STREAM = "/rollout.v1.HeartbeatService/BeatStream";
/** Time in which nothing is cut off. */
const PATIENT = { messageTimeoutMs: 600_000 };
/** One large message at a time of each bearer, and two in all; small ones beside them. Heartbeats count as work. */
const NARROW: Partial<TransportLimits> = {
  methods: {},
  smallMessageBytes: 200,
  receivingBytes: {
    ...{ heartbeats: { total: 800, bearer: 800 }, worker: { total: 2_800, bearer: 1_400 } },
    ...{ operator: { total: 800, bearer: 800 }, enrolment: { total: 800, bearer: 800 } },
    coordinator: { total: 800, bearer: 800 },
  },
};

/** A message on a stream, with its head. */
function framed(digestBytes: number): Buffer {
  const beat = { heldDigest: new Uint8Array(digestBytes) };
  const message = toBinary(BeatStreamRequestSchema, create(BeatStreamRequestSchema, { beat }));
  const head = Buffer.alloc(5);
  head.writeUInt32BE(message.length, 1);
  return Buffer.concat([head, message]);
}

describe("what a listener reads", () => {
  const closeLater = useClosers();
  let listener: TestListener;

  async function listen(limits: Partial<TransportLimits>): Promise<void> {
    listener = await startTestListener({ limits });
    closeLater(() => listener.close());
  }

  const worker = (): Promise<Credentials> => listener.ca.issue(newIdentity(listener.runId, "worker"));

  async function session(credentials?: Credentials): Promise<ClientHttp2Session> {
    const opened = openRawSession(listener.server.port, credentials ?? (await worker()));
    closeLater(() => opened.destroy());
    return opened;
  }

  function open(on: ClientHttp2Session): ClientHttp2Stream {
    return postUnary(on, STREAM, { "content-type": "application/connect+proto" }).resume();
  }

  const served = (count: number): Promise<unknown> =>
    eventually(`${count} messages`, () => listener.served.length === count);

  it("is whole messages, in whatever pieces they come", async () => {
    await listen(PATIENT);
    const stream = open(await session());
    const message = framed(300);
    for (const byte of message) stream.write(Buffer.from([byte]));
    await served(1);
    stream.write(Buffer.concat([message, framed(0), message.subarray(0, 7)]));
    await served(3);
    stream.write(Buffer.concat([message.subarray(7), framed(30_000)]));
    stream.end();
    await served(5);
  });

  it("is no message when its sender gives up in the middle", async () => {
    await listen(PATIENT);
    const own = await session();
    const stream = postUnary(own, BEAT);
    stream.write(toBinary(BeatRequestSchema, create(BeatRequestSchema, { beat: { load: 1 } })));
    await new Promise((resolve) => void own.ping(resolve));
    stream.close(8);
    for (let at = 0; at < 3; at++) {
      const good = postUnary(own, BEAT);
      good.end();
      expect(await answerOf(good)).to.equal(200);
    }
    expect(listener.served, "of those alone that were not given up").to.have.length(3);
  });

  it("is not more than a bearer's share, and what is cut off after its time makes room for the next", async () => {
    await listen({ ...NARROW, messageTimeoutMs: 300 });
    const own = await session();
    const [stalled, good] = [open(own), open(own)];
    stalled.write(framed(1_000).subarray(0, 500));
    await new Promise((resolve) => void own.ping(resolve));
    good.write(framed(1_000));
    await closeOf(stalled);
    expect(stalled.rstCode).to.equal(8);
    await served(1);
    expect(listener.audit.map(({ reason }) => reason)).to.deep.equal(["message_too_slow"]);
    good.write(framed(1_000));
    await served(2);
  });

  it("of one bearer holds up no other, and nothing small", async () => {
    await listen({ ...NARROW, ...PATIENT });
    const hostile = await session();
    for (let at = 0; at < 10; at++) open(hostile).write(framed(1_000).subarray(0, 500));
    await new Promise((resolve) => void hostile.ping(resolve));
    open(await session()).write(framed(1_000));
    await served(1);
    open(hostile).write(framed(50));
    await served(2);
  });

  it("is given back to the budget when the call is answered", async () => {
    await listen({ ...NARROW, ...PATIENT });
    const own = await session();
    const beat = { heldDigest: new Uint8Array(1_000) };
    const message = toBinary(BeatRequestSchema, create(BeatRequestSchema, { beat }));
    for (let at = 0; at < 5; at++) {
      const call = postUnary(own, BEAT);
      call.end(message);
      expect(await answerOf(call)).to.equal(200);
    }
    const stream = open(own);
    for (let at = 0; at < 5; at++) stream.write(framed(1_000));
    await served(10);
  });

  it("waits when it is large, and heartbeats do not", async () => {
    await listen({ ...NARROW, ...PATIENT, methods: { [BEAT.slice(1)]: { lane: "heartbeats" } } });
    const [one, other, third] = [await session(), await session(), await session()];
    for (const hostile of [one, other]) open(hostile).write(framed(1_000).subarray(0, 500));
    await Promise.all([one, other].map((on) => new Promise((resolve) => void on.ping(resolve))));
    const held = open(third);
    held.write(framed(1_000));
    const beat = postUnary(third, BEAT);
    const heldDigest = new Uint8Array(300);
    beat.end(toBinary(BeatRequestSchema, create(BeatRequestSchema, { beat: { heldDigest } })));
    expect(await answerOf(beat), "also when it is no small one").to.equal(200);
    expect(listener.served).to.have.length(1);
    one.destroy();
    await served(2);
  });

  it("goes on after a wait in which nobody could read: only reading takes a message's time", async () => {
    await listen({ ...NARROW, messageTimeoutMs: 400 * pace() });
    const own = await session();
    const streams = Array.from({ length: 4 }, () => open(own));
    const message = framed(1_000);
    // Each of the first three is cut off in its turn, so the last waits for several times its time, and is not all there then.
    for (const half of streams) half.write(message.subarray(0, 500));
    await eventually("three are cut off", () => listener.audit.length >= 3);
    streams[3]?.write(message.subarray(500));
    await served(1);
    expect(listener.audit.map(({ reason }) => reason)).to.deep.equal(Array(3).fill("message_too_slow"));
  });

  it("is as many calls of one bearer as it may have, and a few more later", async () => {
    const maxCallsOf = { worker: 2, operator: 1, enrolment: 1, coordinator: 1 };
    await listen({ ...PATIENT, maxCallsOf });
    const credentials = await worker();
    const [own, another] = [await session(credentials), await session(credentials)];
    const first = open(own);
    open(another);
    await new Promise((resolve) => void own.ping(resolve));
    await new Promise((resolve) => void another.ping(resolve));
    const third = postUnary(another, BEAT);
    expect(await answerOf(third)).to.equal("closed");
    expect(third.rstCode).to.equal(7);
    expect(listener.audit.map(({ reason }) => reason)).to.deep.equal(["too_many_calls"]);
    const good = postUnary(await session(), BEAT);
    good.end();
    expect(await answerOf(good)).to.equal(200);
    first.end();
    await closeOf(first);
    const fourth = postUnary(another, BEAT);
    fourth.end();
    expect(await answerOf(fourth)).to.equal(200);
  });

  it("is no headers over their limit, whatever the client was told", async () => {
    await listen(PATIENT);
    const stream = postUnary(await session(), BEAT, { "x-padding": "x".repeat(60_000) });
    stream.end();
    expect(await answerOf(stream)).to.be.oneOf([431, "closed"]);
    expect(listener.served).to.deep.equal([]);
    expect(listener.audit.map(({ reason }) => reason)).to.deep.equal(["headers_too_large"]);
  });
});
