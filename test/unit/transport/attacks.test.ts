// Attacks on the real listener. For each: refused, no handler reached, exactly one audit line that says why.
import { create, toBinary } from "@bufbuild/protobuf";
import { expect } from "chai";
import type { SecureClientSessionOptions } from "node:http2";
import { connect as connectTls } from "node:tls";
import { ulidToBytes } from "../../../src/base/ids.ts";
import { BeatRequestSchema } from "../../../src/gen/rollout/v1/heartbeat_pb.ts";
import type { RefusalReason } from "../../../src/transport/audit.ts";
import type { Credentials } from "../../../src/transport/tls/identity.ts";
import { newIdentity, newRunId, newUri, newWorkerId, TestAuthority } from "../../support/certificates.ts";
import { answerOf, closeOf, openRawSession, postUnary } from "../../support/raw-session.ts";
import { startTestListener } from "./test-listener.ts";
import type { TestListener } from "./test-listener.ts";

const DAY_MS = 24 * 60 * 60 * 1_000;
const BEAT = "/rollout.v1.HeartbeatService/Beat";

interface Attempt {
  readonly path?: string;
  readonly body?: Uint8Array;
  readonly tls?: SecureClientSessionOptions;
}

/** One connection, one request, no library of ours in between. Resolves with the HTTP status, or "closed". */
async function attempt(
  port: number,
  credentials: Pick<Credentials, "caPem"> & Partial<Credentials>,
  { path = BEAT, body = new Uint8Array(), tls = {} }: Attempt,
): Promise<number | "closed"> {
  const session = openRawSession(port, credentials, tls);
  const stream = postUnary(session, path);
  stream.end(body);
  const answer = await answerOf(stream);
  session.destroy();
  return answer;
}

describe("the listener under attack", () => {
  let listener: TestListener;

  beforeEach(async () => {
    listener = await startTestListener();
  });

  afterEach(() => listener.close());

  const expectRefused = async (
    answer: number | "closed",
    reason: RefusalReason,
    wanted: number | "closed" = "closed",
  ): Promise<void> => {
    await listener.audited(1);
    await listener.close();
    expect(answer).to.equal(wanted);
    expect(listener.served).to.deep.equal([]);
    expect(listener.audit.map((entry) => entry.reason)).to.deep.equal([reason]);
    expect(listener.audit[0]?.remoteAddress).to.equal("127.0.0.1");
  };

  const good = (): Promise<Credentials> => listener.ca.issue(newIdentity(listener.runId, "worker"));
  const uri = (): string => newUri(listener.runId, "worker");

  it("serves a good worker and writes no line", async () => {
    expect(await attempt(listener.server.port, await good(), {})).to.equal(200);
    expect(listener.served.map((identity) => identity.role)).to.deep.equal(["worker"]);
    expect(listener.audit).to.deep.equal([]);
  });

  it("refuses a client without a certificate", async () => {
    const { caPem } = await good();
    await expectRefused(await attempt(listener.server.port, { caPem }, {}), "no_certificate");
  });

  it("refuses a certificate of another CA with the same name", async () => {
    const other = await TestAuthority.make();
    const forged = await other.forge({ uris: [uri()] });
    const { caPem } = await good();
    await expectRefused(
      await attempt(listener.server.port, { ...forged, caPem }, {}),
      "certificate_not_trusted",
    );
  });

  it("refuses an expired certificate", async () => {
    const forged = await listener.ca.forge({ uris: [uri()], notBeforeMs: -2 * DAY_MS, notAfterMs: -DAY_MS });
    await expectRefused(await attempt(listener.server.port, forged, {}), "certificate_expired");
  });

  it("refuses a certificate that is not valid yet", async () => {
    const forged = await listener.ca.forge({ uris: [uri()], notBeforeMs: DAY_MS, notAfterMs: 2 * DAY_MS });
    await expectRefused(await attempt(listener.server.port, forged, {}), "certificate_not_yet_valid");
  });

  it("refuses a worker's certificate that is made for servers", async () => {
    const forged = await listener.ca.forge({ uris: [uri()], usage: "server" });
    await expectRefused(await attempt(listener.server.port, forged, {}), "certificate_wrong_usage");
  });

  it("refuses a worker's certificate that names no usage", async () => {
    const forged = await listener.ca.forge({ uris: [uri()], usage: "none" });
    await expectRefused(await attempt(listener.server.port, forged, {}), "identity_unreadable");
  });

  it("refuses TLS 1.2", async () => {
    const tls = { minVersion: "TLSv1.2", maxVersion: "TLSv1.2" } as const;
    await expectRefused(await attempt(listener.server.port, await good(), { tls }), "tls_failed");
  });

  it("refuses a certificate of another run", async () => {
    const other = await listener.ca.issue(newIdentity(newRunId(), "worker"));
    await expectRefused(await attempt(listener.server.port, other, {}), "identity_of_other_run");
  });

  it("refuses an id that is not written as ids are", async () => {
    const forged = await listener.ca.forge({ uris: [uri().toLowerCase()] });
    await expectRefused(await attempt(listener.server.port, forged, {}), "identity_unreadable");
  });

  it("refuses a second name beside the identity", async () => {
    const forged = await listener.ca.forge({ uris: [uri()], hosts: ["admin"] });
    await expectRefused(await attempt(listener.server.port, forged, {}), "identity_unreadable");
  });

  it("refuses a second identity", async () => {
    const forged = await listener.ca.forge({ uris: [uri(), newUri(listener.runId, "operator")] });
    await expectRefused(await attempt(listener.server.port, forged, {}), "identity_unreadable");
  });

  it("refuses a name that pretends to be two in a joined list", async () => {
    const forged = await listener.ca.forge({ uris: [`${uri()}, URI:${newUri(listener.runId, "operator")}`] });
    await expectRefused(await attempt(listener.server.port, forged, {}), "identity_unreadable");
  });

  it("refuses a worker that speaks as another", async () => {
    const beat = { worker: { workerId: ulidToBytes(newWorkerId()) } };
    const body = toBinary(BeatRequestSchema, create(BeatRequestSchema, { beat }));
    await expectRefused(
      await attempt(listener.server.port, await good(), { body }),
      "speaks_as_another",
      403,
    );
  });

  it("refuses a method that the role may not call", async () => {
    const path = "/rollout.v1.OperatorService/ListWorkers";
    await expectRefused(await attempt(listener.server.port, await good(), { path }), "role_not_allowed", 403);
  });

  it("refuses to everybody a method that the access table does not name", async () => {
    const operator = await listener.ca.issue(newIdentity(listener.runId, "operator"));
    const path = "/rollout.v1.OperatorService/Seal";
    await expectRefused(await attempt(listener.server.port, operator, { path }), "role_not_allowed", 403);
  });

  it("refuses a method that does not exist", async () => {
    const path = "/rollout.v1.OperatorService/Format";
    await expectRefused(await attempt(listener.server.port, await good(), { path }), "unknown_method", 404);
  });

  for (const [client, options, reason] of [
    ["wants HTTP/1.1", { ALPNProtocols: ["http/1.1"] }, "tls_failed"],
    ["names no protocol", {}, "not_http2"],
  ] as const) {
    it(`refuses a client that ${client}`, async () => {
      const { certificatePem: cert, keyPem: key, caPem: ca } = await good();
      const { port } = listener.server;
      const socket = connectTls({
        host: "127.0.0.1",
        port,
        cert,
        key,
        ca,
        checkServerIdentity: () => undefined,
        ...options,
      });
      socket.on("error", () => undefined);
      await closeOf(socket);
      await expectRefused("closed", reason);
    });
  }
});
