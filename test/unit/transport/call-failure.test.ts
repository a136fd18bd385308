// Each way in which a client fails to reach its coordinator, provoked for real, and the row that it becomes.
import { expect } from "chai";
import { generateKeyPairSync } from "node:crypto";
import { createServer as createTcpServer } from "node:net";
import type { AddressInfo, Socket, Server as TcpServer } from "node:net";
import { createServer as createTlsServer } from "node:tls";
import type { ErrorCode } from "../../../src/base/errors.ts";
import { openClient } from "../../../src/transport/client.ts";
import type { ClientOptions } from "../../../src/transport/client.ts";
import { systemClock } from "../../../src/base/clock.ts";
import { silentLogger } from "../../../src/observe/log.ts";
import type { Credentials } from "../../../src/transport/tls/identity.ts";
import { newIdentity, newRunId, newUri, TestAuthority } from "../../support/certificates.ts";
import { eventually } from "../../support/eventually.ts";
import { failureOf } from "../../support/rejection.ts";
import { useTestClients } from "./test-clients.ts";
import { startTestListener, untilEnded } from "./test-listener.ts";
import type { TestListener, TestListenerOptions } from "./test-listener.ts";

const DAY_MS = 24 * 60 * 60 * 1_000;

describe("a failed call", () => {
  const clients = useTestClients();
  const closing: (() => Promise<unknown>)[] = [];
  let listener: TestListener;

  beforeEach(async () => {
    listener = await listen();
  });

  afterEach(async () => {
    for (const close of closing.splice(0)) await close();
  });

  async function listen(options: TestListenerOptions = {}): Promise<TestListener> {
    const started = await startTestListener(options);
    closing.push(() => started.close());
    return started;
  }

  async function occupy(server: TcpServer): Promise<string> {
    const sockets = new Set<Socket>();
    server.on("connection", (socket) => sockets.add(socket.on("error", () => undefined)));
    await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
    closing.push(() => {
      for (const socket of sockets) socket.destroy();
      return new Promise((resolve) => server.close(resolve));
    });
    return `127.0.0.1:${(server.address() as AddressInfo).port}`;
  }

  function coordinator(): Promise<Credentials> {
    return listener.ca.issue(newIdentity(listener.runId, "coordinator"));
  }

  async function failsWith(
    code: ErrorCode,
    options: Partial<ClientOptions>,
  ): Promise<Record<string, string>> {
    const { run } = await clients.open(listener, "operator", options);
    const error = await failureOf(run.listWorkers({}));
    expect(error.code).to.equal(code);
    return error.params;
  }

  it("names the address when its name is not found", async () => {
    const params = await failsWith("coordinator_name_not_found", { address: "nowhere.invalid:50051" });
    expect(params).to.deep.equal({ address: "nowhere.invalid:50051" });
  });

  it("refuses an address that is not host:port", async () => {
    const credentials = await listener.ca.issue(newIdentity(listener.runId, "operator"));
    const { runId } = listener;
    const open = (): unknown =>
      openClient({ address: "50051", runId, credentials, clock: systemClock, log: silentLogger });
    expect(open).to.throw().with.property("code", "coordinator_name_not_found");
  });

  it("is coordinator_refused_connection when nothing listens", async () => {
    const free = createTcpServer();
    const address = await occupy(free);
    await closing.pop()?.();
    await failsWith("coordinator_refused_connection", { address });
  });

  it("says that nobody answers when the handshake does not come", async () => {
    const address = await occupy(createTcpServer((socket) => socket.resume()));
    await failsWith("coordinator_silent", { address, limits: { handshakeTimeoutMs: 50, maxTries: 1 } });
  });

  it("says that nobody answers when a handler takes longer than the deadline", async () => {
    const stuck = await listen({ getRun: untilEnded });
    const { run } = await clients.open(stuck, "operator");
    const error = await failureOf(run.getRun({}, { timeoutMs: 50 }));
    expect(error.code).to.equal("coordinator_silent");
  });

  it("says that the certificate is refused when the coordinator wants one and gets none it trusts", async () => {
    const other = await TestAuthority.make();
    const forged = await other.forge({ uris: [newUri(listener.runId, "worker")] });
    const { caPem } = await listener.ca.issue(newIdentity(listener.runId, "worker"));
    const params = await failsWith("certificate_refused", { credentials: { ...forged, caPem } });
    expect(params["address"]).to.equal(listener.server.address);
    expect(params["subject"]).to.match(/^worker [0-9A-Z]{26}$/);
  });

  it("says that the certificate is refused when it has expired", async () => {
    const spec = { uris: [newUri(listener.runId, "worker")], notBeforeMs: -2 * DAY_MS, notAfterMs: -DAY_MS };
    await failsWith("certificate_refused", { credentials: await listener.ca.forge(spec) });
  });

  it("says that the certificate is refused when it is another run's, at the first try", async () => {
    const credentials = await listener.ca.issue(newIdentity(newRunId(), "operator"));
    await failsWith("certificate_refused", { credentials, limits: { maxTries: 1 } });
  });

  it("says that the certificate is refused when a TLS alert says so, at the first try", async () => {
    const { certificatePem: cert, keyPem: key, caPem: ca } = await coordinator();
    // OpenSSL sends its alert when there is no certificate; a client sends none when its kind of key is not wanted.
    const sigalgs = "ecdsa_secp256r1_sha256";
    const server = createTlsServer({ cert, key, ca, requestCert: true, sigalgs, ALPNProtocols: ["h2"] });
    server.on("tlsClientError", () => undefined);
    const address = await occupy(server);
    const keyPem = generateKeyPairSync("ed25519")
      .privateKey.export({ type: "pkcs8", format: "pem" })
      .toString();
    const identity = newIdentity(listener.runId, "worker");
    const credentials = await listener.ca.authority.issue({ identity, keyPem });
    await failsWith("certificate_refused", { address, credentials, limits: { maxTries: 1 } });
  });

  it("does not trust a coordinator of another CA with the same name", async () => {
    const other = await TestAuthority.make();
    const credentials = await other.issue(newIdentity(listener.runId, "operator"));
    const params = await failsWith("coordinator_not_trusted", { credentials });
    expect(params["reason"]).to.match(/^it was not signed by this run's CA/);
  });

  it("does not trust the coordinator of another run", async () => {
    const params = await failsWith("coordinator_not_trusted", { runId: newRunId() });
    expect(params["reason"]).to.equal(`it is for run ${listener.runId}`);
  });

  it("does not trust what does not speak TLS", async () => {
    const address = await occupy(createTcpServer((socket) => socket.end("220 hello\r\n")));
    await failsWith("coordinator_not_trusted", { address });
  });

  for (const [name, role, usage, reason] of [
    ["a worker's certificate", "worker", "client", /may not be used by a server/],
    ["a worker's certificate made for servers", "worker", "server", /may not be used as a client/],
    ["a worker's certificate made for both", "worker", "both", /^it is for worker/],
    ["a coordinator's certificate made for clients", "coordinator", "client", /may not be used by a server/],
    ["a coordinator's certificate that names no usage", "coordinator", "none", /may not be used as a server/],
  ] as const) {
    it(`does not take ${name} for the coordinator's`, async () => {
      const forged = await listener.ca.forge({ uris: [newUri(listener.runId, role)], usage });
      const { certificatePem: cert, keyPem: key, caPem: ca } = forged;
      let reached = 0;
      const server = createTlsServer(
        { cert, key, ca, requestCert: true, ALPNProtocols: ["h2"] },
        () => reached++,
      );
      server.on("tlsClientError", () => undefined);
      const params = await failsWith("coordinator_not_trusted", { address: await occupy(server) });
      expect(params["reason"]).to.match(reason);
      expect(reached).to.equal(0);
    });
  }

  it("says that the coordinator has too many connections", async () => {
    const maxConnectionsOf = { worker: 8, operator: 1, enrolment: 1, coordinator: 1 };
    const full = await listen({ limits: { maxConnectionsOf }, getRun: untilEnded });
    const credentials = await full.ca.issue(newIdentity(full.runId, "operator"));
    const first = await clients.open(full, "operator", { credentials });
    const stuck = new AbortController();
    const held = failureOf(first.run.getRun({}, { signal: stuck.signal }));
    await eventually("the call that keeps its connection", () => full.served.length === 1);
    const second = await clients.open(full, "operator", { credentials });
    expect((await failureOf(second.run.listWorkers({}))).code).to.equal("overloaded");
    expect(full.audit.map((entry) => entry.reason)).to.deep.equal(["too_many_connections"]);
    await first.run.listWorkers({});
    stuck.abort();
    await held;
  });

  it("is an interruption when the caller ended it, or the client was closed", async () => {
    const stuck = await listen({ getRun: untilEnded });
    const { client, run } = await clients.open(stuck, "operator");
    const controller = new AbortController();
    const aborted = failureOf(run.getRun({}, { signal: controller.signal }));
    const closed = failureOf(run.getRun({}));
    controller.abort();
    expect((await aborted).code).to.equal("interrupted");
    client.close();
    expect((await closed).code).to.equal("interrupted");
    expect((await failureOf(run.getRun({}))).code).to.equal("interrupted");
  });
});
