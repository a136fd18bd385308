// The client over a real connection: what it survives, what it tries again, and how it changes its certificate.
import assert from "node:assert/strict";
import { expect } from "chai";
import { createSecureServer } from "node:http2";
import type { AddressInfo } from "node:net";
import { connect as connectTls, TLSSocket } from "node:tls";
import { findFreePort } from "../../../src/base/address.ts";
import { sleep, systemClock } from "../../../src/base/clock.ts";
import type { Clock } from "../../../src/base/clock.ts";
import { failure } from "../../../src/base/errors.ts";
import { systemRandom } from "../../../src/base/random.ts";
import { readCertificate } from "../../../src/transport/tls/certificate-reading.ts";
import type { Identity } from "../../../src/transport/tls/identity.ts";
import { newIdentity } from "../../support/certificates.ts";
import type { TestAuthority } from "../../support/certificates.ts";
import { startDeafListener } from "../../support/listeners.ts";
import { answerOf, openRawSession, postUnary } from "../../support/raw-session.ts";
import { RecordingLogger } from "../../support/recording-logger.ts";
import { failureOf } from "../../support/rejection.ts";
import { startTcpProxy } from "../../support/tcp-proxy.ts";
import { openBeats, useTestClients } from "./test-clients.ts";
import { startTestListener, untilEnded } from "./test-listener.ts";
import type { TestListener, TestListenerOptions } from "./test-listener.ts";
import { VirtualClock } from "../../support/virtual-clock.ts";

describe("the client", () => {
  const clients = useTestClients();
  const closing: (() => Promise<void>)[] = [];
  let listener: TestListener;

  afterEach(async () => {
    for (const close of closing.splice(0).reverse()) await close();
  });

  async function listen(options: TestListenerOptions = {}): Promise<void> {
    listener = await startTestListener(options);
    closing.push(() => listener.close());
  }

  describe("errors", () => {
    it("arrive as the row that the handler threw, with its values", async () => {
      await listen({ getRun: () => Promise.reject(failure("overloaded", { what: "the inbox", limit: 7 })) });
      const { run } = await clients.open(listener, "operator");
      const error = await failureOf(run.getRun({}));
      expect(error.code).to.equal("overloaded");
      expect(error.params).to.deep.equal({ what: "the inbox", limit: "7" });
    });

    it("of a stream arrive as rows too", async () => {
      await listen();
      const { heartbeat } = await clients.open(listener, "operator");
      const error = await failureOf(openBeats(heartbeat));
      expect(error.code).to.equal("permission_denied");
      expect(error.params["method"]).to.equal("rollout.v1.HeartbeatService/BeatStream");
    });

    it("that are nobody's row are logged there, and leave nothing of themselves on the wire", async () => {
      const log = new RecordingLogger();
      await listen({ log, getRun: () => Promise.reject(new Error("password=hunter2")) });
      const { run } = await clients.open(listener, "operator");
      const error = await failureOf(run.getRun({}));
      expect(error.code).to.equal("internal");
      expect(JSON.stringify([error.message, error.params, String(error.cause)])).to.not.contain("hunter2");
      const [line] = log.lines.filter(({ level }) => level === "error");
      expect(line?.fields["err"]).to.have.property("message", "password=hunter2");
    });
  });

  describe("over a link that is cut", () => {
    const limits = { pingIntervalMs: 100, pingTimeoutMs: 150, handshakeTimeoutMs: 500, retryBaseMs: 10 };

    it("notices, ends the stream, survives, and connects again when the link is back", async () => {
      await listen();
      const proxy = await startTcpProxy(listener.server.port);
      closing.push(() => proxy.close());
      const { heartbeat, run } = await clients.open(listener, "worker", { address: proxy.address, limits });
      const stream = await openBeats(heartbeat);
      proxy.cut();
      expect((await failureOf(stream.beat(2n))).code).to.equal("coordinator_silent");
      expect((await failureOf(heartbeat.beat({}, { timeoutMs: 300 }))).code).to.equal("coordinator_silent");
      proxy.heal();
      await heartbeat.beat({});
      expect((await failureOf(run.listWorkers({}))).code).to.equal("permission_denied");
    });
  });

  it("survives calls that come while a link that was cut is found out", async () => {
    await listen();
    const proxy = await startTcpProxy(listener.server.port);
    closing.push(() => proxy.close());
    const limits = {
      pingIntervalMs: 100,
      pingTimeoutMs: 150,
      handshakeTimeoutMs: 300,
      connectTimeoutMs: 300,
    };
    const { run } = await clients.open(listener, "operator", { address: proxy.address, limits });
    await run.getRun({});
    proxy.cut();
    const calls: Promise<unknown>[] = [];
    // One in each turn: in one of them the session is destroyed, and nobody has been told of its end.
    for (const endMs = systemClock.monotonicMs() + 1_000; systemClock.monotonicMs() < endMs;) {
      calls.push(failureOf(run.getRun({}, { timeoutMs: 400 })));
      await new Promise<void>((resolve) => systemClock.nextTurn(resolve));
    }
    for (const error of await Promise.all(calls))
      expect(error).to.have.property("code", "coordinator_silent");
    // The error of a connection that was given up would come by now.
    await sleep(systemClock, 2 * limits.handshakeTimeoutMs);
    proxy.heal();
    await run.getRun({});
  });

  it("survives the end of a session that held a stream, for longer than a ping takes", async () => {
    await listen();
    const { heartbeat } = await clients.open(listener, "worker", { limits: { pingIntervalMs: 20 } });
    const stream = await openBeats(heartbeat);
    const ended = failureOf(stream.ended());
    await listener.server.close(0);
    expect((await ended).code).to.equal("coordinator_silent");
    await wait(60);
  });

  it("survives its own close after a call, for longer than a ping takes", async () => {
    await listen();
    const { client, heartbeat } = await clients.open(listener, "worker", { limits: { pingIntervalMs: 20 } });
    await heartbeat.beat({});
    client.close();
    await wait(60);
  });

  it("resumes its TLS session when it connects again", async () => {
    await listen();
    const {
      certificatePem: cert,
      keyPem: key,
      caPem: ca,
    } = await listener.ca.issue(newIdentity(listener.runId, "coordinator"));
    const server = createSecureServer({ cert, key, ca, requestCert: true, sessionIdContext: "test" });
    const resumed: boolean[] = [];
    server.on("session", ({ socket }) =>
      resumed.push(socket instanceof TLSSocket && socket.isSessionReused()),
    );
    server.on("stream", (stream) => {
      stream.respond({ ":status": 404 }, { endStream: true });
      stream.session?.close();
    });
    await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
    closing.push(() => new Promise((resolve) => server.close(() => resolve())));
    const address = `127.0.0.1:${(server.address() as AddressInfo).port}`;
    const { heartbeat } = await clients.open(listener, "worker", { address });
    for (let round = 0; round < 2; round++) await failureOf(heartbeat.beat({}));
    expect(resumed).to.deep.equal([false, true]);
  });

  it("on a resumed TLS session is who its certificate names, and no longer than that is valid", async () => {
    const { clock, jump } = movableClock();
    await listen({ clock });
    const identity = newIdentity(listener.runId, "worker");
    const credentials = await listener.ca.issue(identity);
    let ticket: Buffer | undefined;
    const beat = async (): Promise<number | "closed"> => {
      const session = openRawSession(
        listener.server.port,
        credentials,
        ticket === undefined ? {} : { session: ticket },
      );
      const { socket } = session;
      assert(socket instanceof TLSSocket);
      const nextTicket = new Promise<Buffer>((resolve) => void socket.once("session", resolve));
      const stream = postUnary(session, "/rollout.v1.HeartbeatService/Beat");
      stream.end();
      const answer = await answerOf(stream);
      expect(socket.isSessionReused()).to.equal(ticket !== undefined);
      ticket ??= await nextTicket;
      session.destroy();
      return answer;
    };
    expect(await beat()).to.equal(200);
    expect(await beat()).to.equal(200);
    expect(listener.served).to.deep.equal([identity, identity]);
    jump(2 * 24 * 60 * 60 * 1_000);
    expect(await beat()).to.equal("closed");
    expect(listener.audit.map(({ reason }) => reason)).to.deep.equal(["certificate_expired"]);
  });

  describe("tries again", () => {
    it("a call whose connection the coordinator closed, within its deadline", async () => {
      let calls = 0;
      await listen({
        getRun: (context) => {
          calls += 1;
          return calls === 1 ? untilEnded(context) : Promise.resolve({});
        },
      });
      const proxy = await startTcpProxy(listener.server.port);
      closing.push(() => proxy.close());
      const limits = { pingIntervalMs: 100, pingTimeoutMs: 150, retryBaseMs: 10 };
      const { run } = await clients.open(listener, "operator", { address: proxy.address, limits });
      const answer = run.getRun({});
      await until(() => calls === 1);
      proxy.cut();
      proxy.heal();
      await answer;
      // Once more where a ping is late.
      expect(calls).to.be.at.least(2);
    });

    for (const [chance, unit, tries] of [
      ["the shortest, as often as it may", 0, 4],
      ["one that is longer than its deadline, not at all", 0.999, 1],
    ] as const)
      it(`a call after a wait that chance draws: after ${chance}`, async () => {
        await listen();
        const deaf = await startDeafListener();
        closing.push(() => deaf.close());
        const limits = { retryBaseMs: 600_000, retryCeilingMs: 600_000, maxTries: 4 };
        const random = { ...systemRandom, unit: () => unit };
        const { run } = await clients.open(listener, "operator", { address: deaf.address, limits, random });
        await failureOf(run.getRun({}));
        expect(deaf.count).to.equal(tries);
      });

    it("a call that had joined another's attempt to connect, once: somebody may listen by now", async () => {
      await listen();
      const address = `127.0.0.1:${await findFreePort()}`;
      const log = new RecordingLogger();
      const random = { ...systemRandom, unit: () => 0 };
      const { run } = await clients.open(listener, "operator", { address, log, random });
      const failures = await Promise.all([failureOf(run.getRun({})), failureOf(run.listWorkers({}))]);
      for (const { code } of failures) expect(code).to.equal("coordinator_refused_connection");
      expect(log.lines.map(({ fields }) => [fields["method"], fields["tried"]])).to.deep.equal([
        ["rollout.v1.OperatorService/ListWorkers", 1],
      ]);
    });

    it("not a call that the coordinator refused", async () => {
      await listen({ getRun: () => Promise.reject(failure("overloaded", { what: "the inbox", limit: 7 })) });
      const { run } = await clients.open(listener, "operator");
      await failureOf(run.getRun({}));
      expect(listener.served).to.have.length(1);
    });
  });

  describe("with new credentials", () => {
    it("makes new calls under them and lets a stream in flight finish under the old", async () => {
      await listen();
      const { client, heartbeat } = await clients.open(listener, "worker");
      const stream = await openBeats(heartbeat);
      const [old] = listener.served;
      const identity = newIdentity(listener.runId, "worker");
      client.setCredentials(await listener.ca.issue(identity));
      await heartbeat.beat({});
      await stream.beat(2n);
      expect(listener.served.map(({ id }) => id)).to.deep.equal([old?.id, identity.id, old?.id]);
    });

    it("of the coordinator, connects by them without a restart, and live streams go on", async () => {
      await listen();
      const { heartbeat } = await clients.open(listener, "worker");
      const stream = await openBeats(heartbeat);
      const identity = newIdentity(listener.runId, "coordinator");
      listener.server.setCredentials(await listener.ca.issue(identity));
      expect((await coordinatorAt(listener.server.port, listener.ca)).id).to.equal(identity.id);
      const { run } = await clients.open(listener, "operator");
      await run.listWorkers({});
      await stream.beat(2n);
    });
  });

  describe("whose certificate expires on a live session", () => {
    it("is refused at its next call", async () => {
      const { clock, jump } = movableClock();
      await listen({ clock });
      const { run } = await clients.open(listener, "operator");
      await run.listWorkers({});
      jump(100 * 24 * 60 * 60 * 1_000);
      expect((await failureOf(run.listWorkers({}))).code).to.equal("certificate_refused");
      expect(listener.audit.map(({ reason }) => reason)).to.include("certificate_expired");
      expect(listener.served).to.have.length(1);
    });

    it("loses its streams", async () => {
      const { clock, jump } = movableClock();
      await listen({ clock, limits: { expirySweepMs: 20 } });
      const { heartbeat } = await clients.open(listener, "worker");
      const stream = await openBeats(heartbeat);
      jump(100 * 24 * 60 * 60 * 1_000);
      expect((await failureOf(stream.ended())).code).to.equal("certificate_refused");
      expect(listener.audit.map(({ reason }) => reason)).to.deep.equal(["certificate_expired"]);
    });
  });

  describe("that is revoked", () => {
    it("loses its streams within a second by the clock of the listener, and others keep theirs", async () => {
      const clock = new VirtualClock({ wallMs: systemClock.wallMs() });
      await listen({ clock });
      const revoked = await openBeats((await clients.open(listener, "worker")).heartbeat);
      const other = await openBeats((await clients.open(listener, "worker")).heartbeat);
      listener.server.revoke(listener.served.slice(0, 1).map(({ id }) => id));
      await clock.advance(1_000);
      expect((await failureOf(revoked.ended())).code).to.equal("certificate_refused");
      expect(listener.audit.map(({ reason }) => reason)).to.deep.equal(["certificate_revoked"]);
      await other.beat(2n);
    });
  });
});

function wait(delayMs: number): Promise<void> {
  return new Promise((resolve) => void systemClock.after(delayMs, resolve));
}

async function until(holds: () => boolean): Promise<void> {
  while (!holds()) await new Promise<void>((resolve) => systemClock.nextTurn(resolve));
}

/** Whom the listener says it is to a new connection. */
async function coordinatorAt(port: number, ca: TestAuthority): Promise<Identity> {
  const socket = connectTls({
    host: "127.0.0.1",
    port,
    ca: ca.authority.certificatePem,
    checkServerIdentity: () => undefined,
  });
  socket.on("error", () => undefined);
  await new Promise((resolve) => socket.once("secureConnect", resolve));
  const reading = readCertificate(socket.getPeerCertificate().raw);
  socket.destroy();
  assert(reading.kind === "identified");
  return reading.facts.identity;
}

/** The real clock, with a wall that can be moved. */
function movableClock(): { clock: Clock; readonly jump: (byMs: number) => void } {
  let offsetMs = 0;
  const clock = { ...systemClock, wallMs: () => systemClock.wallMs() + offsetMs };
  return { clock, jump: (byMs) => (offsetMs += byMs) };
}
