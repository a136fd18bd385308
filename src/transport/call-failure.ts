// Why a call failed, as a row of the table of errors. The coordinator's own word comes first, then what is known of the
// connection, then Connect's code; never the text of an error.
import { Code, ConnectError } from "@connectrpc/connect";
import { constants } from "node:http2";
import { constants as systemConstants } from "node:os";
import { describeError, failure } from "../base/errors.ts";
import type { RolloutError } from "../base/errors.ts";
import type { ConnectionRecord } from "./link.ts";
import { rolloutErrorIn, rowOnTheWire } from "./errors.ts";
import type { TransportLimits } from "./limits.ts";
import { NOT_THE_COORDINATOR } from "./tls/contexts.ts";

/** The call that failed: its method, whom it was to reach, and as whom. */
export interface CallEnds {
  /** `rollout.v1.OperatorService/GetRun` */
  readonly method: string;
  /** `host:port` as the configuration has it. */
  readonly address: string;
  /** The bearer of the client's certificate: `worker 01J…`. */
  readonly subject: string;
  readonly limits: TransportLimits;
}

export interface CallFailure {
  readonly error: RolloutError;
  /** Whether the same call may well succeed at once on a new connection: the network's fault, or a race. */
  readonly again: boolean;
}

const NAME_ERRORS: ReadonlySet<string> = new Set(["ENOTFOUND", "EAI_AGAIN", "EAI_NONAME", "EAI_NODATA"]);
const TLS_ALERT = /^ERR_SSL_.*_ALERT_/;
const CERTIFICATE_FINDINGS: Readonly<Record<string, string>> = {
  CERT_HAS_EXPIRED: "it has expired, by the clock of this machine",
  CERT_NOT_YET_VALID: "it is not valid yet, by the clock of this machine",
  INVALID_PURPOSE: "it may not be used by a server",
};

/** Explains what a call threw. `report` is of the connection that it used or tried to open. */
export function explainFailure(
  thrown: unknown,
  report: ConnectionRecord | undefined,
  ends: CallEnds,
): CallFailure {
  const own = rolloutErrorIn(thrown);
  if (own !== undefined) return final(own);
  const error = ConnectError.from(thrown);
  const said = rowOnTheWire(error);
  if (said !== undefined) return final(said);
  return fromConnection(error, report, ends) ?? fromCode(error, ends);
}

function final(error: RolloutError): CallFailure {
  return { error, again: false };
}

function silent(ends: CallEnds, cause: unknown, again: boolean): CallFailure {
  return { error: failure("coordinator_silent", { address: ends.address }, cause), again };
}

/** Undefined when the connection has not ended: then it is not the reason. */
function fromConnection(
  cause: ConnectError,
  report: ConnectionRecord | undefined,
  ends: CallEnds,
): CallFailure | undefined {
  if (report?.goawayCode !== undefined) {
    const refused = fromGoaway(report.goawayCode, cause, ends);
    if (refused !== undefined) return refused;
  }
  if (report?.ended !== true) return undefined;
  switch (report.phase) {
    case "connecting":
      return notConnected(cause, report, ends);
    case "securing":
      return notSecured(cause, report, ends);
    case "secured":
      // An alert says it. Without one the server just closed, as Node's does: once may be a restart, twice is no.
      if (TLS_ALERT.test(report.errorCode ?? "") || report.refusedTwice)
        return certificateRefused(cause, ends);
      return silent(ends, cause, true);
    case "serving":
      return silent(ends, cause, true);
  }
}

function fromGoaway(code: number, cause: ConnectError, ends: CallEnds): CallFailure | undefined {
  if (code === constants.NGHTTP2_INADEQUATE_SECURITY) return certificateRefused(cause, ends);
  if (code !== constants.NGHTTP2_ENHANCE_YOUR_CALM) return undefined;
  return final(overloaded("the number of its connections or streams", "its configuration", cause));
}

function notConnected(cause: ConnectError, report: ConnectionRecord, ends: CallEnds): CallFailure {
  const { address } = ends;
  const code = report.errorCode ?? "";
  if (NAME_ERRORS.has(code)) return final(failure("coordinator_name_not_found", { address }, cause));
  if (code === "ECONNREFUSED") return final(failure("coordinator_refused_connection", { address }, cause));
  return silent(ends, cause, false);
}

function notSecured(cause: ConnectError, report: ConnectionRecord, ends: CallEnds): CallFailure {
  const code = report.errorCode;
  if (code === undefined || code in systemConstants.errno) return silent(ends, cause, true);
  const reason = untrusted(code, report.error);
  return final(failure("coordinator_not_trusted", { address: ends.address, reason, ca: "CA" }, cause));
}

function untrusted(code: string, error: Error | undefined): string {
  if (code === NOT_THE_COORDINATOR) return describeError(error);
  if (code.startsWith("ERR_SSL_")) return `what answers there does not speak our TLS (${code})`;
  return CERTIFICATE_FINDINGS[code] ?? `it was not signed by this run's CA (${code})`;
}

function certificateRefused(cause: ConnectError, ends: CallEnds): CallFailure {
  const { address, subject } = ends;
  return final(failure("certificate_refused", { address, subject }, cause));
}

function overloaded(what: string, limit: string, cause: ConnectError): RolloutError {
  return failure("overloaded", { what, limit }, cause);
}

/** The connection stands, and the answer names no row: Connect's own refusals, or a stream that broke. */
function fromCode(error: ConnectError, ends: CallEnds): CallFailure {
  switch (error.code) {
    case Code.DeadlineExceeded:
      return silent(ends, error, false);
    case Code.ResourceExhausted: {
      const limit = `${ends.limits.maxTrustedMessageBytes} bytes`;
      return final(overloaded("the size of a message", limit, error));
    }
    case Code.Unimplemented: {
      const reason = `the coordinator at ${ends.address} is older than this program, and has to be updated`;
      return { error: failure("request_invalid", { method: ends.method, reason }, error), again: false };
    }
    case Code.InvalidArgument:
    case Code.NotFound:
    case Code.AlreadyExists:
    case Code.FailedPrecondition:
    case Code.OutOfRange:
    case Code.DataLoss:
    case Code.PermissionDenied:
    case Code.Unauthenticated:
      return final(failure("internal", { detail: `an unexpected answer, ${Code[error.code]}` }, error));
    case Code.Canceled:
    case Code.Aborted:
    case Code.Internal:
    case Code.Unknown:
    case Code.Unavailable:
      return silent(ends, error, true);
  }
}
