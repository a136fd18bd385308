// Bearers of revoked certificates, as the leader names them: the listener keeps them out, and this host replaces its own.
import { readRevoked } from "../coordinator/workers/enrolment.ts";
import type { Store } from "../storage/store.ts";
import type { RunningServer } from "../transport/server.ts";
import type { ServerIdentity } from "./server-identity.ts";

export class KeptOut {
  readonly ids = new Set<string>();
  /** As soon as it listens. */
  server: RunningServer | undefined;
  readonly #identity: ServerIdentity;

  constructor(identity: ServerIdentity) {
    this.#identity = identity;
  }

  /** A coordinator that follows keeps out whom the leader has revoked. Never rejects: the next heartbeat reads it again. */
  async readFrom(store: Store): Promise<void> {
    const revoked = await readRevoked(store).catch(() => undefined);
    const news = [...(revoked?.keys() ?? [])].filter((id) => !this.ids.has(id));
    if (news.length > 0) this.add(news);
  }

  readonly add = (ids: readonly string[]): void => {
    for (const id of ids) this.ids.add(id);
    this.server?.revoke(ids);
    this.#identity.replace(ids);
  };
}
