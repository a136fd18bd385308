// Access to methods. The table names the roles of each method; a method that it does not name is refused to everybody, before a
// byte of the request is read.
import type { HandlerContext } from "@connectrpc/connect";
import { failure } from "../base/errors.ts";
import { scopeOf } from "./caller.ts";
import { methodName, toConnectError } from "./errors.ts";
import type { Role } from "./tls/identity.ts";
import { describeIdentity } from "./tls/identity.ts";

/** Method (`rollout.v1.RunService/ListWorkers`) → roles that may call it. */
export type AccessTable = Readonly<Record<string, readonly Role[]>>;

/** The gate in front of every handler: passes the roles that the table names. */
export function accessGate(access: AccessTable): (context: HandlerContext) => void {
  const rolesOf = new Map(Object.entries(access));
  return (context) => {
    const { peer, trail } = scopeOf(context.values);
    const method = methodName(context.method);
    const { identity, remoteAddress } = peer;
    if (rolesOf.get(method)?.includes(identity.role) === true) return;
    trail.refuse({ reason: "role_not_allowed", remoteAddress, identity, method });
    throw toConnectError(failure("permission_denied", { who: describeIdentity(identity), method }));
  };
}
