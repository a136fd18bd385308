// An amount that several bearers share: bytes that are being received, calls that are being handled. Each has a share of its own
// beside the total, and those who wait are served in turn, so that one bearer who asks for all of it holds up nobody else (C8).
import { assert } from "../base/assert.ts";

export interface BudgetLimits {
  readonly total: number;
  readonly bearer: number;
}

/** Something asked for. It counts from the moment it is granted until it is released. */
export interface Claim {
  readonly amount: number;
  /** Resolves with false when it was released before there was room. */
  readonly granted: Promise<boolean>;
  readonly isGranted: boolean;
  /** Sets its amount. More than before is taken without waiting: it is there already. */
  resize(amount: number): void;
  /** Idempotent. */
  release(): void;
}

interface Bearer {
  readonly name: string;
  taken: number;
  readonly line: BudgetClaim[];
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
    const claim = new BudgetClaim(amount, {
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
  readonly leaveLine: (claim: BudgetClaim) => void;
}

class BudgetClaim implements Claim {
  amount: number;
  #state: "waits" | "granted" | "released" = "waits";
  readonly #ports: ClaimPorts;
  readonly #answer = Promise.withResolvers<boolean>();

  constructor(amount: number, ports: ClaimPorts) {
    this.amount = amount;
    this.#ports = ports;
  }

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

  resize(amount: number): void {
    if (this.#state === "released") return;
    const more = amount - this.amount;
    this.amount = amount;
    if (this.#state === "granted") this.#ports.taken(more);
  }

  release(): void {
    const before = this.#state;
    this.#state = "released";
    if (before === "granted") this.#ports.taken(-this.amount);
    if (before !== "waits") return;
    this.#answer.resolve(false);
    this.#ports.leaveLine(this);
  }
}
