// One call from its headers to its answer: who calls, whether it may, its messages with their account, its handler, and the words
// in which it is refused. Connect decodes and encodes; what it would refuse without a row of the table of errors gets one here.
import { Code, ConnectError, createConnectRouter } from "@connectrpc/connect";
import type { ConnectRouter, Interceptor } from "@connectrpc/connect";
import { createAsyncIterable } from "@connectrpc/connect/protocol";
import type { UniversalHandler, UniversalServerResponse } from "@connectrpc/connect/protocol";
import { errorToJsonBytes } from "@connectrpc/connect/protocol-connect";
import { universalRequestFromNodeRequest, universalResponseToNodeResponse } from "@connectrpc/connect-node";
import { constants } from "node:http2";
import type { Http2ServerRequest, Http2ServerResponse } from "node:http2";
import { assert } from "../base/assert.ts";
import type { Clock, Timer } from "../base/clock.ts";
import type { Logger } from "../observe/log.ts";
import type { AuditTrail, RefusalReason } from "./audit.ts";
import { scopeOf, scopeValues, accessGate, presentPath } from "./caller.ts";
import type { CallScope, AccessTable } from "./caller.ts";
import { handlerErrors, methodName, notUnderstood } from "./errors.ts";
import { FairBudget } from "./intake.ts";
import type { Intake } from "./intake.ts";
import type { TransportLimits } from "./limits.ts";
import { MessageReader } from "./message-reader.ts";
import type { Sessions } from "./sessions.ts";

export interface CallListenerOptions {
  readonly routes: (router: ConnectRouter) => void;
  readonly access: AccessTable;
  readonly clock: Clock;
  readonly log: Logger;
  readonly limits: TransportLimits;
  readonly sessions: Sessions;
  readonly intake: Intake;
  readonly trail: AuditTrail;
  readonly shutdown: AbortSignal;
}

export interface CallListener {
  readonly onRequest: (request: Http2ServerRequest, response: Http2ServerResponse) => void;
  /** Calls are handled by these from now on; those under way go on. */
  readonly setRoutes: (routes: (router: ConnectRouter) => void) => void;
}

/** The cost of a header's name and value beside their bytes, as HTTP/2 counts it. */
const HEADER_BYTES = 32;
/** As Connect says `Internal` and `InvalidArgument`. */
const STATUS_INTERNAL = constants.HTTP_STATUS_INTERNAL_SERVER_ERROR;
const STATUS_INVALID = constants.HTTP_STATUS_BAD_REQUEST;

/** Answers every request of a server. Throws nothing. */
export function callListener(options: CallListenerOptions): CallListener {
  const { clock, intake, limits, log, sessions, trail } = options;
  let handlers = handlersOf(options);
  const setRoutes: CallListener["setRoutes"] = (routes) => (handlers = handlersOf({ ...options, routes }));
  const onRequest: CallListener["onRequest"] = (request, response) => {
    const peer = sessions.peerOf(request.stream.session);
    if (peer === undefined) return request.stream.close(constants.NGHTTP2_REFUSED_STREAM);
    const path = request.url.split("?", 1)[0] ?? "";
    const refuse = (reason: RefusalReason): void => {
      const { identity, remoteAddress } = peer;
      trail.refuse({ reason, remoteAddress, identity, method: path.slice(1, 129) });
    };
    if (headerBytesOf(request) > limits.maxHeaderBytes) {
      refuse("headers_too_large");
      return void response.writeHead(constants.HTTP_STATUS_REQUEST_HEADER_FIELDS_TOO_LARGE).end();
    }
    const handler = handlers.get(presentPath(path));
    if (handler === undefined) {
      refuse("unknown_method");
      return void response.writeHead(constants.HTTP_STATUS_NOT_FOUND).end();
    }
    const bearer = sessions.beginCall(request.stream, peer);
    if (bearer === undefined) {
      refuse("too_many_calls");
      return request.stream.close(constants.NGHTTP2_REFUSED_STREAM);
    }
    const method = handler.method;
    const reader = new MessageReader({
      ...{ clock, limits, method: methodName(method) },
      chunks: request,
      framing: method.methodKind === "unary" ? "call" : "stream",
      declaredBytes: declaredBytesOf(request),
      input: method.input,
      isJson: request.headers["content-type"]?.includes("json") === true,
      account: intake.account(methodName(method), { role: peer.identity.role, bearer }),
      isAborted: () => request.stream.aborted || request.stream.rstCode !== constants.NGHTTP2_NO_ERROR,
      onTooLarge: () => refuse("message_too_large"),
      onTooSlow: () => {
        refuse("message_too_slow");
        request.stream.close(constants.NGHTTP2_CANCEL);
      },
    });
    const scope = { peer, bearer, trail, keepMessage: () => reader.keep() };
    answer(
      { request, response, handler, reader, onAnswered: watchAnswer(request, clock, limits) },
      scope,
    ).catch((error: unknown) => {
      // The client went away, or sent what Connect cannot make a request of. Nobody is left to be told.
      log.debug("a call ended before its answer", { path, err: error });
      if (!request.stream.destroyed) request.stream.close(constants.NGHTTP2_PROTOCOL_ERROR);
    });
  };
  return { onRequest, setRoutes };
}

interface Call {
  readonly request: Http2ServerRequest;
  readonly response: Http2ServerResponse;
  readonly handler: UniversalHandler;
  readonly reader: MessageReader;
  readonly onAnswered: () => void;
}

/** Connect's own adapter, over whole messages. */
async function answer(
  { request, response, handler, reader, onAnswered }: Call,
  known: Omit<CallScope, "begun" | "answered">,
): Promise<void> {
  const isUnary = handler.method.methodKind === "unary";
  const progress = { hasBegun: false };
  const scope: CallScope = {
    ...known,
    begun: () => (progress.hasBegun = true),
    answered: () => {
      if (isUnary) onAnswered();
    },
  };
  request.stream.once("close", () => reader.close());
  const universal = universalRequestFromNodeRequest(request, response, undefined, scopeValues(scope));
  const answered = await handler({ ...universal, body: reader }).finally(() => {
    // A stream's last message belongs to whoever still reads it.
    if (isUnary) reader.release();
  });
  // Connect takes bytes that are no message for an error of this program.
  const isUnreadable = isUnary && !progress.hasBegun && answered.status === STATUS_INTERNAL;
  await universalResponseToNodeResponse(isUnreadable ? unreadable(handler) : answered, response);
}

function unreadable({ method }: UniversalHandler): UniversalServerResponse {
  return {
    status: STATUS_INVALID,
    header: new Headers({ "content-type": "application/json" }),
    body: createAsyncIterable([errorToJsonBytes(notUnderstood(methodName(method)), undefined)]),
  };
}

function handlersOf(options: CallListenerOptions): ReadonlyMap<string, UniversalHandler> {
  const { access, limits, log, routes, shutdown } = options;
  const router = createConnectRouter({
    grpc: false,
    grpcWeb: false,
    acceptCompression: [],
    // Each method reads less: `Intake` says how much.
    readMaxBytes: limits.maxTrustedMessageBytes,
    writeMaxBytes: limits.maxTrustedMessageBytes,
    maxTimeoutMs: limits.maxTimeoutMs,
    shutdownSignal: shutdown,
    requestGate: accessGate(access),
    interceptors: [callProgress, handlerErrors(log), inTurn(limits)],
  });
  routes(router);
  for (const { protocolNames, requestPath } of router.handlers)
    assert(protocolNames.join() === "connect", `${requestPath} is served by Connect's own protocol alone`);
  return new Map(router.handlers.map((handler) => [handler.requestPath, handler]));
}

/** Tells the call's scope how far its handler has come. */
const callProgress: Interceptor = (next) => async (request) => {
  const scope = scopeOf(request.contextValues);
  scope.begun();
  try {
    return await next(request);
  } finally {
    scope.answered();
  }
};

/** Methods that cost much are answered a few at a time, and each bearer's in turn. */
function inTurn({ methods }: TransportLimits): Interceptor {
  const budgets = new Map<string, FairBudget>();
  for (const [name, { atOnce }] of Object.entries(methods))
    if (atOnce !== undefined) budgets.set(name, new FairBudget(atOnce));
  return (next) => async (request) => {
    const turn = budgets.get(methodName(request.method))?.claim(scopeOf(request.contextValues).bearer, 1);
    if (turn === undefined) return next(request);
    const giveUp = (): void => turn.release();
    request.signal.addEventListener("abort", giveUp);
    try {
      if (!(await turn.granted)) throw new ConnectError("nobody waits for the answer", Code.Canceled);
      return await next(request);
    } finally {
      request.signal.removeEventListener("abort", giveUp);
      turn.release();
    }
  };
}

function headerBytesOf({ rawHeaders }: Http2ServerRequest): number {
  let bytes = (rawHeaders.length / 2) * HEADER_BYTES;
  for (const text of rawHeaders) bytes += text.length;
  return bytes;
}

function declaredBytesOf({ headers }: Http2ServerRequest): number | undefined {
  const declared = Number(headers["content-length"]);
  return Number.isSafeInteger(declared) && declared > 0 ? declared : undefined;
}

/**
 * The time that the answer of one unary call may take on the wire. Node has none for a client that does not read its answer,
 * which would hold a stream and its memory for ever. Streams of a session may live for weeks and are not watched: pings and
 * the idle timeout end them with their session. Incoming messages have their time in message-reader.ts.
 *
 * Closes the call's stream when its answer, complete from the moment of the call, takes too long to leave. Idempotent.
 */
function watchAnswer({ stream }: Http2ServerRequest, clock: Clock, limits: TransportLimits): () => void {
  let answer: Timer | undefined;
  stream.once("close", () => answer?.cancel());
  return () => {
    if (stream.destroyed) return;
    const close = (): void => stream.close(constants.NGHTTP2_CANCEL);
    answer ??= clock.after(limits.answerTimeoutMs, close, { background: true });
  };
}
