// One address at which a coordinator may be, and the connection to it: opened at its first call, replaced when credentials change.
import type { Transport } from "@connectrpc/connect";
import type { CallEnds, CallFailure } from "./call-failure.ts";
import type { Link } from "./link.ts";

/** A link and what is over it: replaced as one when credentials change. */
export interface Route {
  readonly link: Link;
  readonly transport: Transport;
  readonly ends: Omit<CallEnds, "method">;
}

export class Endpoint {
  /** `host:port` as it was given or told. */
  readonly address: string;
  /** Whether it was given; otherwise another coordinator has named it. */
  readonly isGiven: boolean;
  /** Passed over while there are others: it said nothing, or may not be obeyed, and no connection to it was made since. */
  isDoubted = false;
  /** The epoch under which another one has named it since it is doubted, first: it may have fallen silent under that. */
  namedEpoch: number | undefined;
  /** Until then it is not even connected to while it is doubted. Monotonic. */
  restsUntilMs = -Infinity;
  /** Somebody is connecting to it, to see whether it is there again. */
  isProbed = false;
  /** Its last word when it could not be used; undefined when it has answered since, or was never asked. */
  said: CallFailure | undefined;
  readonly #open: (address: string) => Route;
  readonly #links = new Set<Link>();
  #route: Route | undefined;

  constructor(address: string, isGiven: boolean, open: (address: string) => Route) {
    this.address = address;
    this.isGiven = isGiven;
    this.#open = open;
  }

  get route(): Route {
    if (this.#route === undefined) {
      this.#route = this.#open(this.address);
      this.#links.add(this.#route.link);
    }
    return this.#route;
  }

  /** The next call goes over a new connection; those in flight end in their own time. */
  renew(): void {
    for (const link of this.#links) {
      link.retire();
      if (link.isSpent) this.#links.delete(link);
    }
    this.#route = undefined;
  }

  /** Ends the connection and every call on it. The next call opens another. */
  end(): void {
    for (const link of this.#links) link.end();
    this.#links.clear();
    this.#route = undefined;
  }
}
