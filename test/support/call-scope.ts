// The scope of a call for handlers that are called without a server: nobody counts its bytes or its time.
import type { CallScope, Peer } from "../../src/transport/caller.ts";

export function scopeWithoutServer(peer: Peer): CallScope {
  return {
    peer,
    bearer: peer.identity.id,
    trail: { refuse: () => undefined } as never,
    begun: () => undefined,
    answered: () => undefined,
    keepMessage: () => ({ add: () => undefined, release: () => undefined }),
  };
}
