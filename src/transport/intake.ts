// Messages of peers in a server's memory. Every message has a place in one of these budgets before it is read, and keeps
// it until it is written or dropped (C8); no bearer has more than its share, and heartbeats need nothing of what others fill.
import type { ConnectError } from "@connectrpc/connect";
import { failure } from "../base/errors.ts";
import type { Claim } from "./fair-budget.ts";
import { FairBudget } from "./fair-budget.ts";
import { toConnectError } from "./errors.ts";
import type { Lane, TransportLimits } from "./limits.ts";

/** The part of each budget that is for small messages alone. */
const SMALL_PART = 1 / 4;

interface Pools {
  readonly small: FairBudget;
  readonly large: FairBudget;
}

/** Where the messages of one call are counted. */
export interface IntakeAccount {
  readonly messageBytesMax: number;
  readonly smallBytes: number;
  readonly partsMax: number;
  /** Fails, as a ConnectError, when no message of this method is so large. */
  claim(bytes: number): Claim;
}

export class Intake {
  readonly #limits: TransportLimits;
  readonly #pools = new Map<Lane, Pools>();

  constructor(limits: TransportLimits) {
    this.#limits = limits;
  }

  account(
    method: string,
    caller: { readonly role: Exclude<Lane, "heartbeats">; readonly bearer: string },
  ): IntakeAccount {
    const { maxMessageBytes, maxMessageParts, methods, smallMessageBytes: smallBytes } = this.#limits;
    const limits = methods[method];
    const messageBytesMax = limits?.messageBytes ?? maxMessageBytes;
    const { small, large } = this.#poolsOf(limits?.lane ?? caller.role);
    return {
      messageBytesMax,
      smallBytes,
      partsMax: limits?.messageParts ?? maxMessageParts,
      claim: (bytes) => {
        if (bytes > messageBytesMax) throw tooLarge(messageBytesMax);
        return (bytes <= smallBytes ? small : large).claim(caller.bearer, bytes);
      },
    };
  }

  #poolsOf(lane: Lane): Pools {
    const found = this.#pools.get(lane);
    if (found !== undefined) return found;
    const { total, bearer } = this.#limits.receivingBytes[lane];
    const part = (share: number): FairBudget =>
      new FairBudget({ total: Math.ceil(total * share), bearer: Math.ceil(bearer * share) });
    const pools = { small: part(SMALL_PART), large: part(1 - SMALL_PART) };
    this.#pools.set(lane, pools);
    return pools;
  }
}

function tooLarge(limit: number): ConnectError {
  return toConnectError(failure("overloaded", { what: "the size of a message", limit: `${limit} bytes` }));
}
