// The time that one unary call may take on the wire. Node has no timeout for a request's body, and none for a client that
// does not read its answer; either would hold a stream and its memory for ever. Streams of a session may live for weeks
// and are not watched: pings and the idle timeout end them with their session.
import { constants } from "node:http2";
import type { Http2ServerRequest } from "node:http2";
import type { Clock, Timer } from "../base/clock.ts";
import type { TransportLimits } from "./limits.ts";

export interface CallWatch {
  /** The answer is complete: from now on it has to leave. */
  answered(): void;
}

/** Closes the call's stream when its body, or later its answer, takes too long. */
export function watchUnaryCall(
  request: Http2ServerRequest,
  clock: Clock,
  limits: TransportLimits,
): CallWatch {
  const { stream } = request;
  const closeAfter = (delayMs: number): Timer =>
    clock.after(delayMs, () => stream.close(constants.NGHTTP2_CANCEL), { background: true });
  const body = closeAfter(limits.requestBodyTimeoutMs);
  let answer: Timer | undefined;
  request.once("end", () => body.cancel());
  stream.once("close", () => {
    body.cancel();
    answer?.cancel();
  });
  return {
    answered: () => {
      if (!stream.destroyed) answer ??= closeAfter(limits.answerTimeoutMs);
    },
  };
}
