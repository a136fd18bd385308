// Seats: each host has one, for one allocation, as far as this process knows. A host says itself who it has; this keeps two launches that are under
// way from the same one, and brings one that is repeated to the host where it may be already.

/** When something was asked: a change since then is newer than the answer. */
export type Moment = number;

interface Seat {
  readonly host: string;
  /** The allocation that has it, or is on its way there. */
  owner: string | undefined;
  isLaunching: boolean;
  changed: Moment;
  /** Launches that it has refused since it last took one: hosts with fewer are tried before it. */
  noes: number;
}

/** How a launch at a host has ended; `unknown`: a later list says. */
export type SeatVerdict =
  | { readonly kind: "launched" | "refused" | "unknown" }
  /** It has another worker of the fleet. */
  | { readonly kind: "busy"; readonly owner: string };

export class Seats {
  readonly #seats: readonly Seat[];
  #moment: Moment = 0;

  constructor(hosts: readonly string[]) {
    this.#seats = hosts.map((host) => ({ host, owner: undefined, isLaunching: false, changed: 0, noes: 0 }));
  }

  get isAnyTaken(): boolean {
    return this.#seats.some(({ owner }) => owner !== undefined);
  }

  moment(): Moment {
    return this.#moment;
  }

  /** The host that has it, or may have it. */
  of(allocation: string): string | undefined {
    return this.#seats.find(({ owner }) => owner === allocation)?.host;
  }

  /** For a launch: the host where it may be already, else a free one; undefined: none is left of those that were not tried. */
  take(allocation: string, tried: ReadonlySet<string>): string | undefined {
    const left = this.#seats.filter(({ host, isLaunching }) => !isLaunching && !tried.has(host));
    const free = left.filter(({ owner }) => owner === undefined);
    const seat =
      left.find(({ owner }) => owner === allocation) ??
      free.toSorted((one, other) => one.noes - other.noes)[0];
    if (seat === undefined) return undefined;
    this.#change(seat, { owner: allocation, isLaunching: true });
    return seat.host;
  }

  /** The end of a launch at the host that was taken for it. */
  settle(allocation: string, host: string, verdict: SeatVerdict): void {
    const seat = this.#seats.find((each) => each.host === host);
    if (seat === undefined) return;
    if (verdict.kind === "refused") seat.noes++;
    if (verdict.kind === "launched") seat.noes = 0;
    const owner =
      verdict.kind === "busy" ? verdict.owner : verdict.kind === "refused" ? undefined : allocation;
    this.#change(seat, { owner, isLaunching: false });
  }

  /** The worker that a host has, as it has answered a question of that moment. False: something newer is known. */
  seen(host: string, owner: string | undefined, asked: Moment): boolean {
    const seat = this.#seats.find((each) => each.host === host);
    if (seat === undefined || seat.isLaunching || seat.changed > asked) return false;
    if (seat.owner !== owner) this.#change(seat, { owner, isLaunching: false });
    return true;
  }

  #change(seat: Seat, to: Pick<Seat, "owner" | "isLaunching">): void {
    Object.assign(seat, to);
    seat.changed = ++this.#moment;
  }
}
