// The limits of the real listener, each by a client that goes beyond it, while a good client goes on.
import { create, toBinary } from "@bufbuild/protobuf";
import { expect } from "chai";
import { connect as connectTcp } from "node:net";
import { gzipSync } from "node:zlib";
import { systemClock } from "../../../src/base/clock.ts";
import { BeatRequestSchema } from "../../../src/gen/rollout/v1/heartbeat_pb.ts";
import { silentLogger } from "../../../src/observe/log.ts";
import { startServer } from "../../../src/transport/server.ts";
import type { Credentials } from "../../../src/transport/tls/identity.ts";
import { newIdentity } from "../../support/certificates.ts";
import { answerOf, closeOf, openRawSession, postUnary } from "../../support/raw-session.ts";
import { eventually } from "../../support/eventually.ts";
import { pace } from "../../support/pace.ts";
import { failureOf } from "../../support/rejection.ts";
import { openBeats, useTestClients } from "./test-clients.ts";
import { startTestListener, untilEnded } from "./test-listener.ts";
import type { TestListener, TestListenerOptions } from "./test-listener.ts";

const BEAT = "/rollout.v1.HeartbeatService/Beat";
const LIST = "/rollout.v1.OperatorService/ListWorkers";
const GET_RUN = "/rollout.v1.OperatorService/GetRun";
const BEAT_STREAM = "/rollout.v1.HeartbeatService/BeatStream";

describe("the listener", () => {
  const clients = useTestClients();
  const closing: (() => unknown)[] = [];
  let listener: TestListener;

  afterEach(async () => {
    for (const close of closing.splice(0).reverse()) await close();
  });

  async function listen(options: TestListenerOptions = {}): Promise<void> {
    listener = await startTestListener(options);
    closing.push(() => listener.close());
  }

  function credentials(role: "worker" | "operator"): Promise<Credentials> {
    return listener.ca.issue(newIdentity(listener.runId, role));
  }

  async function rawSession(role: "worker" | "operator"): Promise<ReturnType<typeof openRawSession>> {
    const session = openRawSession(listener.server.port, await credentials(role));
    closing.push(() => session.destroy());
    return session;
  }

  it("refuses a message over the limit before its handler is called", async () => {
    await listen({ limits: { methods: { [BEAT.slice(1)]: { messageBytes: 1_000 } } } });
    const stream = postUnary(await rawSession("worker"), BEAT);
    stream.end(Buffer.alloc(2_000));
    expect(await answerOf(stream)).to.equal(429);
    expect(listener.served).to.deep.equal([]);
  });

  it("does not write a message over the limit", async () => {
    await listen();
    const { heartbeat } = await clients.open(listener, "worker", { limits: { maxTrustedMessageBytes: 100 } });
    const error = await failureOf(heartbeat.beat({ beat: { heldDigest: new Uint8Array(1_000) } }));
    expect(error.code).to.equal("overloaded");
    expect(listener.served).to.deep.equal([]);
  });

  it("refuses compressed messages", async () => {
    await listen();
    const beat = { heldDigest: new Uint8Array(64 * 1_024 * 1_024) };
    const bomb = gzipSync(toBinary(BeatRequestSchema, create(BeatRequestSchema, { beat })));
    const stream = postUnary(await rawSession("worker"), BEAT, { "content-encoding": "gzip" });
    const answer = answerOf(stream);
    stream.end(bomb);
    expect(await answer).to.equal(501);
    expect(listener.served).to.deep.equal([]);
  });

  it("refuses a deadline over the limit", async () => {
    await listen({ limits: { maxTimeoutMs: 1_000 } });
    const stream = postUnary(await rawSession("operator"), LIST, { "connect-timeout-ms": "1001" });
    stream.end();
    expect(await answerOf(stream)).to.equal(400);
    expect(listener.served).to.deep.equal([]);
  });

  it("closes a connection that does not shake hands", async () => {
    await listen({ limits: { handshakeTimeoutMs: 50 } });
    const socket = connectTcp(listener.server.port, "127.0.0.1");
    socket.on("error", () => undefined);
    socket.write(Buffer.from([0x16, 0x03]));
    await closeOf(socket);
    await listener.audited(1);
    expect(listener.audit.map((entry) => entry.reason)).to.deep.equal(["handshake_timeout"]);
  });

  it("closes a session that asks for nothing", async () => {
    await listen({ limits: { firstRequestTimeoutMs: 50 } });
    await closeOf(await rawSession("worker"));
  });

  it("closes a session that falls silent, and keeps one that pings", async () => {
    await listen({ limits: { idleSessionTimeoutMs: 600 * pace() } });
    const silentSession = async (): Promise<ReturnType<typeof openRawSession>> => {
      const session = await rawSession("operator");
      postUnary(session, LIST).end();
      return session;
    };
    const silent = await silentSession();
    const pinging = await clients.open(listener, "worker", { limits: { pingIntervalMs: 50 } });
    const stream = await openBeats(pinging.heartbeat);
    await closeOf(silent);
    // Long enough for the other session's timeout too, if pings did not count.
    await closeOf(await silentSession());
    await stream.beat(2n);
  });

  it("closes a stalled body, and keeps a stream that is as quiet", async () => {
    await listen({ limits: { messageTimeoutMs: 200 * pace() } });
    const { heartbeat } = await clients.open(listener, "worker");
    const stream = await openBeats(heartbeat);
    const stalled = postUnary(await rawSession("worker"), BEAT);
    stalled.write(Buffer.alloc(1));
    await closeOf(stalled);
    expect(stalled.rstCode).to.equal(8);
    await stream.beat(2n);
    expect(listener.served).to.have.length(2);
  });

  it("knows that somebody has called from the end of a call, however long that took", async () => {
    let aheadMs = 0;
    const clock = { ...systemClock, monotonicMs: () => systemClock.monotonicMs() + aheadMs };
    const { promise: news, resolve } = Promise.withResolvers<object>();
    await listen({ clock, getRun: () => news });
    const { run } = await clients.open(listener, "operator");
    const { server } = listener;
    expect(server.hasCalled("operator", 600_000)).to.equal(false);
    const waiting = run.getRun({});
    await eventually("it waits", () => listener.served.length === 1);
    aheadMs = 3_600_000;
    expect(server.hasCalled("operator", 600_000), "it has begun long ago").to.equal(false);
    resolve({});
    await waiting;
    await eventually("its end counts", () => server.hasCalled("operator", 600_000));
    expect(server.hasCalled("worker", 600_000)).to.equal(false);
  });

  it("closes a call whose answer nobody reads", async () => {
    const large = { coordinator: { storeId: new Uint8Array(1_000_000) } };
    await listen({ limits: { answerTimeoutMs: 60 }, getRun: () => Promise.resolve(large) });
    const unread = postUnary(await rawSession("operator"), GET_RUN);
    unread.end();
    unread.on("response", () => unread.pause());
    await closeOf(unread);
    expect(unread.rstCode).to.equal(8);
  });

  it("drops connections over the limit at once", async () => {
    await listen({ limits: { maxConnections: 1 } });
    const { run } = await clients.open(listener, "operator");
    await run.listWorkers({});
    const socket = connectTcp(listener.server.port, "127.0.0.1");
    socket.on("error", () => undefined);
    socket.resume();
    await closeOf(socket);
    await listener.audited(1);
    expect(listener.audit.map((entry) => entry.reason)).to.deep.equal(["too_many_connections"]);
    await run.listWorkers({});
  });

  it("lets a bearer in again once its connections are closed", async () => {
    const maxConnectionsOf = { worker: 1, operator: 1, enrolment: 1, coordinator: 1 };
    await listen({ limits: { maxConnectionsOf } });
    const own = await credentials("operator");
    for (let round = 0; round < 3; round++) {
      const session = openRawSession(listener.server.port, own);
      const stream = postUnary(session, LIST);
      stream.end();
      expect(await answerOf(stream)).to.equal(200);
      session.close();
      await closeOf(session);
    }
  });

  it("serves many streams in quick succession", async () => {
    await listen();
    const { run } = await clients.open(listener, "operator");
    for (let round = 0; round < 20; round++) {
      await Promise.all(Array.from({ length: 50 }, () => run.listWorkers({})));
    }
    expect(listener.served).to.have.length(1_000);
  });

  it("ends a session that resets streams as fast as it opens them", async () => {
    await listen({ limits: { streamResetBurst: 20, streamResetPerSecond: 1 } });
    const session = await rawSession("worker");
    const goaway = new Promise<number>((resolve) => void session.once("goaway", resolve));
    await new Promise<void>((resolve) => void session.once("remoteSettings", () => resolve()));
    for (let at = 0; at < 60; at++) postUnary(session, BEAT_STREAM).close(8);
    expect(await goaway).to.not.equal(0);
    const { run } = await clients.open(listener, "operator");
    await run.listWorkers({});
  });

  it("survives a request that no URL can be made of", async () => {
    await listen();
    const session = await rawSession("operator");
    const stream = postUnary(session, LIST, { ":authority": "coordinator:99999" });
    stream.end();
    expect(await answerOf(stream)).to.equal("closed");
    const next = postUnary(session, LIST);
    next.end();
    expect(await answerOf(next)).to.equal(200);
  });

  it("bounds its audit lines and counts what it leaves out", async () => {
    await listen({ limits: { auditBurst: 2, auditPerSecond: 0 } });
    const session = await rawSession("worker");
    for (let at = 0; at < 5; at++) {
      const stream = postUnary(session, LIST);
      stream.end();
      expect(await answerOf(stream)).to.equal(403);
    }
    await listener.close();
    expect(listener.audit.map(({ reason, count }) => [reason, count])).to.deep.equal([
      ["role_not_allowed", undefined],
      ["role_not_allowed", undefined],
      ["lines_left_out", 3],
    ]);
  });

  it("does not let the lines of one peer or reason hide those of another", async () => {
    await listen();
    const [flooding, other] = [await rawSession("worker"), await rawSession("worker")];
    const refused = async (session: typeof other, path: string): Promise<void> => {
      const stream = postUnary(session, path);
      stream.end();
      expect(await answerOf(stream)).to.be.oneOf([403, 404]);
    };
    for (let at = 0; at < 150; at++) await refused(flooding, LIST);
    const before = listener.audit.filter(({ reason }) => reason === "role_not_allowed").length;
    await refused(other, LIST);
    await refused(flooding, "/nothing");
    await listener.close();
    const after = listener.audit.filter(({ reason }) => reason !== "lines_left_out").slice(before);
    expect(after.map(({ reason }) => reason)).to.deep.equal(["role_not_allowed", "unknown_method"]);
    const leftOut = listener.audit.filter(({ reason }) => reason === "lines_left_out");
    expect(leftOut.map(({ detail }) => detail)).to.include("role_not_allowed");
    expect(leftOut.reduce((sum, { count = 0 }) => sum + count, 0)).to.equal(150 - before);
  });

  it("says why it cannot listen", async () => {
    await listen();
    const options = {
      credentials: await listener.ca.issue(newIdentity(listener.runId, "coordinator")),
      routes: () => undefined,
      access: {},
      audit: () => undefined,
      log: silentLogger,
      clock: systemClock,
    };
    const reasonFor = async (listenAddr: string): Promise<string | undefined> => {
      const error = await failureOf(startServer({ ...options, listenAddr }));
      expect(error.code).to.equal("listen_failed");
      return error.params["reason"];
    };
    expect(await reasonFor(listener.server.address)).to.equal("the address is in use");
    expect(await reasonFor("192.0.2.1:0")).to.equal("it is not an address of this machine");
    expect(await reasonFor("nowhere")).to.equal("it is not host:port");
  });

  describe("closing", () => {
    it("waits for calls in flight, tells their handlers, and takes no new connection", async () => {
      let reached: () => void = () => undefined;
      const isReached = new Promise<void>((resolve) => (reached = resolve));
      await listen({
        getRun: (context) => {
          reached();
          return untilEnded(context);
        },
      });
      const { run } = await clients.open(listener, "operator");
      const inFlight = run.getRun({});
      await isReached;
      const closed = listener.server.close(5_000);
      const late = await clients.open(listener, "operator");
      expect((await failureOf(late.run.listWorkers({}))).code).to.equal("coordinator_refused_connection");
      await inFlight;
      await closed;
    });

    it("ends what is left after the grace", async () => {
      await listen();
      const { heartbeat } = await clients.open(listener, "worker");
      const stream = await openBeats(heartbeat);
      await listener.server.close(30);
      expect((await failureOf(stream.beat(2n))).code).to.equal("coordinator_silent");
    });

    it("can be asked for twice", async () => {
      await listen();
      await Promise.all([listener.server.close(1_000), listener.server.close(1_000)]);
    });
  });
});
