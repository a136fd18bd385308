// The lease as it would be if one call came after the other, and a recorder of the calls that were really made: `linearize` is asked
// about them. The model knows of the rows as much as anybody can tell: who holds which epoch, and how often it was renewed at least.
import type { LeaseRows, RenewOutcome, TakeOutcome } from "../../src/coordinator/lead/lease.ts";
import { StorageLease } from "../../src/coordinator/lead/lease.ts";
import { EPOCH_KEY } from "../../src/storage/keys.ts";
import type { CommitOutcome } from "../../src/storage/store.ts";
import type { Call, Finding, SequentialModel } from "./linearizability.ts";
import { linearize } from "./linearizability.ts";

/** Null: there is no row. */
export type SeenLease = {
  readonly epoch: number;
  readonly holder: string | null;
  readonly renewals: number;
} | null;

/** -1: there is no epoch row. */
export interface LeaseState {
  readonly lease: SeenLease;
  readonly epoch: number;
  /** Taken by a claim of which nobody heard: both rows have this epoch or a higher one. */
  readonly isAtLeast?: true;
}

export type LeaseInput =
  | { readonly kind: "see lease" }
  | { readonly kind: "see epoch" }
  | { readonly kind: "take"; readonly by: string; readonly seen: LeaseState }
  | { readonly kind: "renew"; readonly by: string; readonly epoch: number }
  | { readonly kind: "resign"; readonly by: string; readonly epoch: number }
  /** A batch of the leader of this epoch. */
  | { readonly kind: "write"; readonly epoch: number }
  /** The store came back so, from a crash or as another server's copy. */
  | { readonly kind: "restore"; readonly state: LeaseState };

export type LeaseOutput =
  | { readonly lease: SeenLease }
  | { readonly epochRow: number }
  | { readonly taken: number }
  | { readonly done: true }
  /** The other epoch that was found by a renewal; undefined where nobody says. */
  | { readonly refused: true; readonly seenEpoch?: number | null };

export const NO_LEASE: LeaseState = { lease: null, epoch: -1 };

const leaseModel: SequentialModel<LeaseState, LeaseInput, LeaseOutput> = {
  initial: NO_LEASE,
  step: (state, input, output) => {
    switch (input.kind) {
      case "see lease":
        return seesLease(state, output);
      case "see epoch":
        return output !== undefined && "epochRow" in output ? pinned(state, output.epochRow) : [];
      case "take":
        return takes(state, input, output);
      case "renew":
        return renews(state, input, output);
      case "resign":
        return held(state, input).map((own) => ({ ...own, lease: { ...own.lease, holder: null } }));
      case "write":
        if (output === undefined || !("refused" in output)) return pinned(state, input.epoch);
        return state.isAtLeast === true || state.epoch !== input.epoch ? [state] : [];
      case "restore":
        return [input.state];
    }
  },
  nameOf: ({ lease, epoch, isAtLeast }) =>
    `${lease && Object.values(lease).join()} ${epoch}${isAtLeast ? " at least" : ""}`,
};

/** The state, if this is the epoch of both rows; of a claim of which nobody heard it may be. */
function pinned(state: LeaseState, epoch: number): LeaseState[] {
  const { lease } = state;
  if (state.isAtLeast === undefined) return state.epoch === epoch ? [state] : [];
  return epoch >= state.epoch ? [{ lease: lease && { ...lease, epoch }, epoch }] : [];
}

/** A row that was read tells how often it was renewed: at least as often as was known. */
function seesLease(state: LeaseState, output: LeaseOutput | undefined): LeaseState[] {
  if (output === undefined || !("lease" in output)) return [];
  const { lease } = output;
  const states = state.isAtLeast === true && lease !== null ? pinned(state, lease.epoch) : [state];
  return states.flatMap((one) => (isThere(one.lease, lease) ? [{ ...one, lease }] : []));
}

function isThere(lease: SeenLease, seen: SeenLease): boolean {
  if (lease === null || seen === null) return lease === seen;
  return lease.epoch === seen.epoch && lease.holder === seen.holder && seen.renewals >= lease.renewals;
}

function takes(
  state: LeaseState,
  { by, seen }: Extract<LeaseInput, { kind: "take" }>,
  output: LeaseOutput | undefined,
): LeaseState[] {
  const isRefused = output !== undefined && "refused" in output;
  const taken = pinned(state, seen.epoch).flatMap(({ lease, epoch }) => {
    if (!isThere(lease, seen.lease)) return [];
    const least = Math.max(lease?.epoch ?? -1, epoch) + 1;
    const row = { holder: by, renewals: 0 };
    if (output === undefined || !("taken" in output))
      return [{ lease: { epoch: least, ...row }, epoch: least, isAtLeast: true as const }];
    const { taken: own } = output;
    return own < least ? [] : [{ lease: { epoch: own, ...row }, epoch: own }];
  });
  // If the store turns out to be of another generation, a claim that took effect is said to be beaten all the same.
  return isRefused ? [state, ...taken] : taken;
}

function renews(
  state: LeaseState,
  input: Extract<LeaseInput, { kind: "renew" }>,
  output: LeaseOutput | undefined,
): LeaseState[] {
  if (output === undefined || !("refused" in output))
    return held(state, input).map((own) => ({
      ...own,
      lease: { ...own.lease, renewals: own.lease.renewals + 1 },
    }));
  const { seenEpoch } = output;
  if (state.isAtLeast === true && typeof seenEpoch === "number") return pinned(state, seenEpoch);
  if (held(state, input).length > 0) return [];
  return seenEpoch === undefined || seenEpoch === (state.lease?.epoch ?? null) ? [state] : [];
}

type HeldState = LeaseState & { readonly lease: NonNullable<SeenLease> };

/** The state, if this process has the lease under this epoch. */
function held(
  state: LeaseState,
  { by, epoch }: { readonly by: string; readonly epoch: number },
): HeldState[] {
  if (state.lease?.holder !== by) return [];
  if (state.isAtLeast === undefined && state.lease.epoch !== epoch) return [];
  return (state.isAtLeast === true ? pinned(state, epoch) : [state]) as HeldState[];
}

export class LeaseHistory {
  readonly #calls: Call<LeaseInput, LeaseOutput>[] = [];
  #moments = 0;

  get calls(): readonly Call<LeaseInput, LeaseOutput>[] {
    return this.#calls;
  }

  find(): Finding {
    return linearize(this.#calls, leaseModel);
  }

  now(): number {
    return ++this.#moments;
  }

  /** A call that is over. One whose outcome nobody knows and that leaves nothing to be seen may be left out. */
  answered(calledAt: number, input: LeaseInput, output: LeaseOutput): void {
    this.#calls.push({ input, calledAt, answer: { output, at: this.now() } });
  }

  /** A call that takes effect at some time, or never: unless the function that is returned says how it was answered. */
  begun(input: LeaseInput): (output: LeaseOutput | undefined) => void {
    const place = this.#calls.length;
    const calledAt = this.now();
    this.#calls.push({ input, calledAt, answer: undefined });
    return (output) => {
      if (output !== undefined) this.#calls[place] = { input, calledAt, answer: { output, at: this.now() } };
    };
  }

  /** At this moment. */
  restored(state: LeaseState): void {
    this.answered(this.now(), { kind: "restore", state }, { done: true });
  }

  /** A batch of the leader of `epoch` that expects its epoch row. */
  async write(epoch: number, commit: () => Promise<CommitOutcome>): Promise<CommitOutcome> {
    const calledAt = this.now();
    const outcome = await commit();
    const input = { kind: "write", epoch } as const;
    if (outcome.kind === "committed") this.answered(calledAt, input, { done: true });
    const isFenced = outcome.kind === "conflict" && outcome.key === EPOCH_KEY;
    if (isFenced) this.answered(calledAt, input, { refused: true });
    return outcome;
  }
}

/** A lease whose calls are written down. */
export class RecordedLease extends StorageLease {
  readonly #history: LeaseHistory;
  readonly #by: string;
  #epoch = -1;

  constructor(history: LeaseHistory, ...args: ConstructorParameters<typeof StorageLease>) {
    super(...args);
    this.#history = history;
    [, this.#by] = args;
  }

  override async read(): Promise<LeaseRows> {
    const calledAt = this.#history.now();
    const rows = await super.read();
    const { lease, epoch } = stateOf(rows);
    // The rows are read one after the other.
    this.#history.answered(calledAt, { kind: "see lease" }, { lease });
    this.#history.answered(calledAt, { kind: "see epoch" }, { epochRow: epoch });
    return rows;
  }

  override async take(...args: Parameters<StorageLease["take"]>): Promise<TakeOutcome> {
    const [rows] = args;
    const answered = this.#history.begun({ kind: "take", by: this.#by, seen: stateOf(rows) });
    const outcome = await super.take(...args);
    if (outcome.kind === "beaten") answered({ refused: true });
    if (outcome.kind === "taken") answered({ taken: (this.#epoch = outcome.leadership.epoch) });
    return outcome;
  }

  override async renew(): Promise<RenewOutcome> {
    const calledAt = this.#history.now();
    const outcome = await super.renew();
    const input = { kind: "renew", by: this.#by, epoch: this.#epoch } as const;
    if (outcome.kind === "renewed") this.#history.answered(calledAt, input, { done: true });
    if (outcome.kind === "fenced") {
      const { seenEpoch } = outcome;
      this.#history.answered(calledAt, input, { refused: true, seenEpoch });
    }
    // One that is unclear is left out: it would explain nothing, for a row may always have been renewed once more.
    return outcome;
  }

  override async resign(): Promise<void> {
    // It never says whether the row was written.
    this.#history.begun({ kind: "resign", by: this.#by, epoch: this.#epoch });
    await super.resign();
  }
}

function stateOf({ lease, epoch }: LeaseRows): LeaseState {
  const seen =
    lease === undefined ? null : { epoch: lease.epoch, holder: lease.holder, renewals: lease.renewals };
  return { lease: seen, epoch: epoch ?? -1 };
}
