// Messages of peers in a server's memory. Every message has a place in one of these budgets before it is read, and keeps
// it until it is written or dropped (C8); no bearer has more than its share, and heartbeats need nothing of what others fill.
import { failure } from "../base/errors.ts";
import { toConnectError } from "./errors.ts";
import type { BudgetLimits, Lane, TransportLimits } from "./limits.ts";
import { assert } from "../base/assert.ts";

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
        const limit = `${messageBytesMax} bytes`;
        if (bytes > messageBytesMax)
          throw toConnectError(failure("overloaded", { what: "the size of a message", limit }));
        return (bytes <= smallBytes ? small : large).claim(caller.bearer, bytes);
      },
    };
  }

  /** In all of the budgets. */
  get taken(): number {
    let bytes = 0;
    for (const { small, large } of this.#pools.values()) bytes += small.taken + large.taken;
    return bytes;
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

// An amount that several bearers share: bytes that are being received, calls that are being handled. Each has a share of its own
// beside the total, and those who wait are served in turn, so that one bearer who asks for all of it holds up nobody else (C8).

interface Bearer {
  readonly name: string;
  taken: number;
  readonly line: Claim[];
}

export class FairBudget {
  readonly #limits: BudgetLimits;
  #taken = 0;
  readonly #bearers = new Map<string, Bearer>();
  /** Those with somebody in line; who has waited longest is first. */
  readonly #waiting = new Set<Bearer>();

  constructor(limits: BudgetLimits) {
    this.#limits = limits;
  }

  get taken(): number {
    return this.#taken;
  }

  /** In order of asking within a bearer. Larger than a share, or than all there is, goes alone. */
  claim(name: string, amount: number): Claim {
    const bearer = this.#bearers.get(name) ?? { name, taken: 0, line: [] };
    this.#bearers.set(name, bearer);
    const claim = new Claim(amount, {
      taken: (more) => {
        this.#taken += more;
        bearer.taken += more;
        assert(this.#taken >= 0 && bearer.taken >= 0, "nothing is given back twice");
        if (more < 0) this.#admit();
        this.#forgetIdle(bearer);
      },
      leaveLine: (left) => {
        bearer.line.splice(bearer.line.indexOf(left), 1);
        if (bearer.line.length === 0) this.#waiting.delete(bearer);
        this.#admit();
        this.#forgetIdle(bearer);
      },
    });
    bearer.line.push(claim);
    this.#waiting.add(bearer);
    this.#admit();
    return claim;
  }

  #admit(): void {
    // A bearer that was served goes to the end of the set, and is met again there.
    for (const bearer of this.#waiting) {
      const [next] = bearer.line;
      if (next === undefined || !fits(bearer.taken, next.amount, this.#limits.bearer)) continue;
      // Nobody pushes past a bearer who only waits for the total, or the large would wait for ever.
      if (!fits(this.#taken, next.amount, this.#limits.total)) return;
      bearer.line.shift();
      this.#waiting.delete(bearer);
      if (bearer.line.length > 0) this.#waiting.add(bearer);
      next.grant();
    }
  }

  #forgetIdle(bearer: Bearer): void {
    if (bearer.taken === 0 && bearer.line.length === 0) this.#bearers.delete(bearer.name);
  }
}

function fits(taken: number, more: number, max: number): boolean {
  return taken === 0 || taken + more <= max;
}

interface ClaimPorts {
  readonly taken: (more: number) => void;
  readonly leaveLine: (claim: Claim) => void;
}

/** Something asked for. It counts from the moment it is granted until it is released. */
export class Claim {
  amount: number;
  #state: "waits" | "granted" | "released" = "waits";
  readonly #ports: ClaimPorts;
  readonly #answer = Promise.withResolvers<boolean>();

  constructor(amount: number, ports: ClaimPorts) {
    this.amount = amount;
    this.#ports = ports;
  }

  /** Resolves with false when it was released before there was room. */
  get granted(): Promise<boolean> {
    return this.#answer.promise;
  }

  get isGranted(): boolean {
    return this.#state === "granted";
  }

  grant(): void {
    this.#state = "granted";
    this.#ports.taken(this.amount);
    this.#answer.resolve(true);
  }

  /** Sets its amount. More than before is taken without waiting: it is there already. */
  resize(amount: number): void {
    if (this.#state === "released") return;
    const more = amount - this.amount;
    this.amount = amount;
    if (this.#state === "granted") this.#ports.taken(more);
  }

  /** Idempotent. */
  release(): void {
    const before = this.#state;
    this.#state = "released";
    if (before === "granted") this.#ports.taken(-this.amount);
    if (before !== "waits") return;
    this.#answer.resolve(false);
    this.#ports.leaveLine(this);
  }
}
