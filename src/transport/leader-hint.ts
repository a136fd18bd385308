// The word of a coordinator that follows: who leads, as far as it knows. It is an address to try, no more: whether what
// answers there is this run's coordinator, its certificate says.
import { parseAddress } from "../base/address.ts";
import type { RolloutError } from "../base/errors.ts";

export interface LeaderHint {
  /** `host:port`; undefined when it knows none. */
  readonly address: string | undefined;
  /** The epoch of the leader that it names; -1 when it names none. */
  readonly epoch: number;
  /** It has nothing else to say before. */
  readonly retryAfterMs: number;
}

const RETRY_AFTER_MAX_MS = 60_000;

/** Undefined for an error that is not `not_leader`. A value that is not understood counts as not said. */
export function leaderHintOf({ code, params }: RolloutError): LeaderHint | undefined {
  if (code !== "not_leader") return undefined;
  const { address = "", epoch = "", retry_after_ms: retryAfter = "" } = params;
  const isAddress = (parseAddress(address)?.port ?? 0) > 0;
  return {
    address: isAddress ? address : undefined,
    epoch: isAddress ? wholeNumber(epoch, -1) : -1,
    retryAfterMs: Math.min(wholeNumber(retryAfter, 0), RETRY_AFTER_MAX_MS),
  };
}

function wholeNumber(text: string, otherwise: number): number {
  return /^\d{1,15}$/.test(text) ? Number(text) : otherwise;
}
