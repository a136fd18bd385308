// The time that the answer of one unary call may take on the wire. Node has none for a client that does not read its answer,
// which would hold a stream and its memory for ever. Streams of a session may live for weeks and are not watched: pings and
// the idle timeout end them with their session. Incoming messages have their time in message-reader.ts.
import { constants } from "node:http2";
import type { Http2ServerRequest } from "node:http2";
import type { Clock, Timer } from "../base/clock.ts";
import type { TransportLimits } from "./limits.ts";

/** Closes the call's stream when its answer, complete from the moment of the call, takes too long to leave. Idempotent. */
export function watchAnswer(
  { stream }: Http2ServerRequest,
  clock: Clock,
  limits: TransportLimits,
): () => void {
  let answer: Timer | undefined;
  stream.once("close", () => answer?.cancel());
  return () => {
    if (stream.destroyed) return;
    const close = (): void => stream.close(constants.NGHTTP2_CANCEL);
    answer ??= clock.after(limits.answerTimeoutMs, close, { background: true });
  };
}
