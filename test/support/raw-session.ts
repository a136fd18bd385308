// HTTP/2 over mutual TLS with nothing of ours in between: what a hostile or careless client can do.
import { connect } from "node:http2";
import type {
  ClientHttp2Session,
  ClientHttp2Stream,
  OutgoingHttpHeaders,
  SecureClientSessionOptions,
} from "node:http2";
import type { Credentials } from "../../src/transport/tls/identity.ts";

/** A session whose end is not an error of the test. The caller destroys it. */
export function openRawSession(
  port: number,
  credentials: Pick<Credentials, "caPem"> & Partial<Credentials>,
  tls: SecureClientSessionOptions = {},
): ClientHttp2Session {
  const session = connect(`https://127.0.0.1:${port}`, {
    cert: credentials.certificatePem,
    key: credentials.keyPem,
    ca: credentials.caPem,
    checkServerIdentity: () => undefined,
    ...tls,
  });
  return session.on("error", () => undefined);
}

/** A unary Connect request, headers only: the caller sends the body. */
export function postUnary(
  session: ClientHttp2Session,
  path: string,
  headers: OutgoingHttpHeaders = {},
): ClientHttp2Stream {
  const stream = session.request({
    ":method": "POST",
    ":path": path,
    "content-type": "application/proto",
    "connect-protocol-version": "1",
    ...headers,
  });
  return stream.on("error", () => undefined);
}

/** The status of the answer, or "closed" when there is none. */
export function answerOf(stream: ClientHttp2Stream): Promise<number | "closed"> {
  return new Promise((resolve) => {
    stream.on("response", (headers) => resolve(headers[":status"] ?? 0));
    // Not the session: Node does not tell of the end of one that a TLS alert ended.
    stream.on("close", () => resolve("closed"));
  });
}

export function closeOf(emitter: { once(event: "close", listener: () => void): unknown }): Promise<void> {
  return new Promise((resolve) => void emitter.once("close", resolve));
}
