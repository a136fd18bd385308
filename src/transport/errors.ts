// The edge between our table of errors and Connect's. Inside, only RolloutError; on the wire, Connect's code with an
// ErrorDetail that names the row and its values. An error that is not from the table leaves nothing of itself on the wire.
import { Code, ConnectError } from "@connectrpc/connect";
import type { Interceptor } from "@connectrpc/connect";
import { failure, isErrorCode, RolloutError } from "../base/errors.ts";
import type { ConnectCodeName } from "../base/error-row.ts";
import { ErrorDetailSchema } from "../gen/rollout/v1/common_pb.ts";
import type { Logger } from "../observe/log.ts";

const CODES: Readonly<Record<ConnectCodeName, Code>> = {
  InvalidArgument: Code.InvalidArgument,
  FailedPrecondition: Code.FailedPrecondition,
  NotFound: Code.NotFound,
  PermissionDenied: Code.PermissionDenied,
  Unauthenticated: Code.Unauthenticated,
  Unavailable: Code.Unavailable,
  ResourceExhausted: Code.ResourceExhausted,
  DeadlineExceeded: Code.DeadlineExceeded,
  Aborted: Code.Aborted,
  DataLoss: Code.DataLoss,
  Internal: Code.Internal,
};

/** A row as it travels. */
export function toConnectError(error: RolloutError): ConnectError {
  const detail = { desc: ErrorDetailSchema, value: { code: error.code, params: { ...error.params } } };
  return new ConnectError(error.message, CODES[error.row.connect], undefined, [detail], error);
}

/** The row that the other side named; undefined when it named none, or one that this version does not know. */
export function rowOnTheWire(error: ConnectError): RolloutError | undefined {
  for (const detail of error.findDetails(ErrorDetailSchema)) {
    if (isErrorCode(detail.code)) return new RolloutError(detail.code, detail.params, error);
  }
  return undefined;
}

/** The first RolloutError in a chain of causes: what our own code threw, however it was wrapped on the way. */
export function rolloutErrorIn(error: unknown): RolloutError | undefined {
  for (let at = error, depth = 0; at instanceof Error && depth < 8; at = at.cause, depth++) {
    if (at instanceof RolloutError) return at;
  }
  return undefined;
}

/** Turns whatever a handler throws into what may travel, and logs what should not have been thrown. */
export function handlerErrors(log: Logger): Interceptor {
  return (next) => async (request) => {
    const method = methodName(request.method);
    const travelling = (thrown: unknown): ConnectError => {
      const ours = rolloutErrorIn(thrown);
      if (ours !== undefined) return toConnectError(ours);
      // Connect's own: the call was cancelled, its deadline passed, a message was too long.
      if (thrown instanceof ConnectError) return thrown;
      log.error("a handler failed", { method, err: thrown });
      return toConnectError(failure("internal", { detail: `${method} failed; see the coordinator's log` }));
    };
    try {
      const response = await next(
        request.stream ? { ...request, message: redirect(request.message, asUnderstood(method)) } : request,
      );
      return response.stream ? { ...response, message: redirect(response.message, travelling) } : response;
    } catch (thrown) {
      throw travelling(thrown);
    }
  };
}

/** For bytes that are no message of this method. */
export function notUnderstood(method: string, cause?: unknown): ConnectError {
  return toConnectError(
    failure("request_invalid", { method, reason: "its bytes are no such message" }, cause),
  );
}

/** Connect says `Internal` of bytes that it cannot read, as it would of a fault in this program. */
function asUnderstood(method: string): (thrown: unknown) => Error {
  return (thrown) => {
    const isConnects = thrown instanceof ConnectError && rolloutErrorIn(thrown) === undefined;
    if (isConnects && UNREAD.has(thrown.code)) return notUnderstood(method, thrown);
    return thrown instanceof Error ? thrown : new ConnectError(String(thrown));
  };
}

const UNREAD: ReadonlySet<Code> = new Set([Code.Internal, Code.InvalidArgument]);

/** `rollout.v1.OperatorService/ListWorkers`: how access tables, audit lines and messages name a method. */
export function methodName(method: {
  readonly name: string;
  readonly parent: { readonly typeName: string };
}): string {
  return `${method.parent.typeName}/${method.name}`;
}

// An async iterable whose failures are turned into others. Plain promises instead of a generator: it stands in the path of
// every message of a stream.

/** The same messages; whatever the iteration throws goes through `translate` first. */
export function redirect<Message>(
  source: AsyncIterable<Message>,
  translate: (thrown: unknown) => Error | Promise<Error>,
): AsyncIterable<Message> {
  const rethrow = async (thrown: unknown): Promise<never> => {
    throw await translate(thrown);
  };
  return {
    [Symbol.asyncIterator](): AsyncIterator<Message> {
      const inner = source[Symbol.asyncIterator]();
      return {
        next: () => inner.next().catch(rethrow),
        return: (value?: unknown) =>
          inner.return?.(value).catch(rethrow) ?? Promise.resolve({ done: true, value: undefined }),
        throw: (thrown?: unknown) => inner.throw?.(thrown).catch(rethrow) ?? rethrow(thrown),
      };
    },
  };
}
