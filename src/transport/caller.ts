// The caller of a method. Inside a handler it is the one its certificate names, never one that a message names.
import { createContextKey, createContextValues } from "@connectrpc/connect";
import type { ContextValues, HandlerContext } from "@connectrpc/connect";
import { assert } from "../base/assert.ts";
import { failure } from "../base/errors.ts";
import type { WorkerId } from "../base/ids.ts";
import type { AuditTrail } from "./audit.ts";
import { methodName, toConnectError } from "./errors.ts";
import type { KeptMessage } from "./message-reader.ts";
import type { Identity, Role } from "./tls/identity.ts";
import { describeIdentity } from "./tls/identity.ts";

/** The bearer of the certificate at the other end of a live session. */
export interface Peer {
  readonly identity: Identity;
  readonly remoteAddress: string;
  /** From when and until when its certificate is valid, milliseconds since 1970. */
  readonly notBeforeMs: number;
  readonly notAfterMs: number;
}

/** Facts that go with a call through Connect. */
export interface CallScope {
  readonly peer: Peer;
  /** The bearer against whose limits it counts. */
  readonly bearer: string;
  readonly trail: AuditTrail;
  /** The request was read and understood: what goes wrong from now on is not the fault of its bytes. */
  begun(): void;
  /** The handler has returned: from now on the answer has to leave within its time. */
  answered(): void;
  /** See `keepMessage`. */
  keepMessage(): KeptMessage;
}

const scopeKey = createContextKey<CallScope | undefined>(undefined, { description: "rollout call scope" });

export function scopeValues(scope: CallScope): ContextValues {
  return createContextValues().set(scopeKey, scope);
}

/** The caller, by its certificate. */
export function peerOf(context: Pick<HandlerContext, "values">): Peer {
  return scopeOf(context.values).peer;
}

/**
 * The bytes of the message that a handler has read last are counted until it reads the next one or ends. A handler that hands
 * what is in it to somebody else keeps it, once, and releases it when it is written or dropped.
 */
export function keepMessage(context: Pick<HandlerContext, "values">): KeptMessage {
  return scopeOf(context.values).keepMessage();
}

/**
 * Demands that the caller is this worker, by its certificate. Fails with permission_denied and leaves an audit line for
 * anybody else: a worker that speaks as another, or another role. Call it before the message has any effect.
 */
export function requireWorkerItself(
  context: Pick<HandlerContext, "values" | "method">,
  workerId: WorkerId,
): void {
  const { peer, trail } = scopeOf(context.values);
  const { identity, remoteAddress } = peer;
  if (identity.role === "worker" && identity.id === workerId) return;
  const method = methodName(context.method);
  const detail = `as worker ${workerId}`;
  trail.refuse({ reason: "speaks_as_another", remoteAddress, identity, method, detail });
  throw failure("permission_denied", { who: describeIdentity(identity), method: `${method} ${detail}` });
}

/** Set by the server for every call: its absence is a mistake in this program. */
export function scopeOf(values: ContextValues): CallScope {
  const scope = values.get(scopeKey);
  assert(scope !== undefined, "every call comes through the server, which sets its scope");
  return scope;
}

// Access to methods. The table names the roles of each method; a method that it does not name is refused to everybody, before a
// byte of the request is read, and so is a call to the service of an older wire, whose messages meant something else.

/** Method (`rollout.v1.OperatorService/ListWorkers`) → roles that may call it. */
export type AccessTable = Readonly<Record<string, readonly Role[]>>;

/** Services of older wires, and what took their place. */
const FORMER: Readonly<Record<string, string>> = {
  "/rollout.v1.RunService/": "/rollout.v1.OperatorService/",
};

/** The path of the handler whose gate answers calls to `path`. */
export function presentPath(path: string): string {
  const former = Object.keys(FORMER).find((service) => path.startsWith(service));
  return former === undefined ? path : `${FORMER[former]}${path.slice(former.length)}`;
}

/** The gate in front of every handler: passes the roles that the table names. */
export function accessGate(access: AccessTable): (context: HandlerContext) => void {
  const rolesOf = new Map(Object.entries(access));
  return (context) => {
    const { peer, trail } = scopeOf(context.values);
    const method = methodName(context.method);
    const { identity, remoteAddress } = peer;
    if (rolesOf.get(method)?.includes(identity.role) !== true) {
      trail.refuse({ reason: "role_not_allowed", remoteAddress, identity, method });
      throw toConnectError(failure("permission_denied", { who: describeIdentity(identity), method }));
    }
    const [, asked = ""] = /([^/?]+\/[^/?]+)(?:\?|$)/.exec(context.url) ?? [];
    if (asked === method) return;
    trail.refuse({ reason: "unknown_method", remoteAddress, identity, method: asked });
    const reason = "the program that asks is older than the coordinator, and has to be updated";
    throw toConnectError(failure("request_invalid", { method: asked, reason }));
  };
}
