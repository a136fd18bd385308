// A call for handlers that are called without a server: nobody counts its bytes or its time.
import type { DescMethod } from "@bufbuild/protobuf";
import { createHandlerContext } from "@connectrpc/connect";
import { scopeValues } from "../../src/transport/caller.ts";
import type { CallScope } from "../../src/transport/caller.ts";
import type { Identity } from "../../src/transport/tls/identity.ts";

export type CallContext = ReturnType<typeof createHandlerContext>;

/** `parts`: another scope, as far as it goes. */
export function callWithoutServer(
  method: DescMethod,
  identity: Identity,
  signal?: AbortSignal,
  parts: Partial<CallScope> = {},
): CallContext {
  const peer = { identity, remoteAddress: "nowhere", notBeforeMs: 0, notAfterMs: Number.MAX_SAFE_INTEGER };
  const scope: CallScope = {
    peer,
    bearer: identity.id,
    trail: { refuse: () => undefined } as never,
    begun: () => undefined,
    answered: () => undefined,
    keepMessage: () => ({ add: () => undefined, release: () => undefined }),
    ...parts,
  };
  return createHandlerContext({
    service: method.parent,
    method,
    protocolName: "connect",
    requestMethod: "POST",
    url: "https://nowhere/",
    ...(signal && { requestSignal: signal }),
    contextValues: scopeValues(scope),
  });
}
