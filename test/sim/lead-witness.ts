// Invariants of leadership, seen from the rows of the ledger's store and from what leaders say: epochs only grow and none is given
// twice, whatever the store loses; one leader's batches take effect in each; and nobody speaks for an epoch that is over, or that
// could still be lost.
import { decodeRecord, okOrFailure } from "../../src/storage/codec.ts";
import {
  COORDINATOR_LEASE_KEY,
  COORDINATOR_SNAPSHOT_KEY,
  COORDINATORS_PREFIX,
  EPOCH_KEY,
} from "../../src/storage/keys.ts";
import type { Batch, Entry } from "../../src/storage/store.ts";
import { epochRow } from "../support/ledger-rows.ts";
import type { Left, Return } from "./database.ts";
import type { SimProcess } from "./process.ts";
import type { SimWorld } from "./world.ts";
import { Violation } from "./world.ts";

/** Coordinators write that they are there once a second. */
const SILENT_MAX_MS = 8_000;

/** Coordinators that share a store, as the witness sees them. */
export interface Sharing {
  /** Processes that may act as leaders, by their own reckoning. */
  readonly believers: () => readonly SimProcess[];
  /** The end of the storm. */
  readonly calmFromMs: number;
  /** So long after anything has happened somebody leads for good, and nobody has a reason to take the lease. */
  readonly settleMs: number;
  /** Coordinators that live. */
  readonly living: () => readonly SimProcess[];
  /** The store went on from a copy that lacks what was answered. */
  readonly onOlderCopy: () => void;
}

/** A store that lost renewals shows a row that stood there before: so long a leader may not know that it was followed. */
const RENEWALS_LOST_MS = 4_500;

export class LeadWitness {
  readonly #world: SimWorld;
  #sharing: Sharing | undefined;
  /** Which epoch a process claimed last. */
  readonly #epochOf = new Map<SimProcess, number>();
  /** As the store has it. */
  #epoch = -1;
  /** Under which anybody ever led, with the machine that did. */
  readonly #given = new Map<number, string>();
  #highest = -1;
  /** The claim of the highest one was lost with the store that had it. */
  #isHighestLost = false;
  #leader: SimProcess | undefined;
  /** No promotion of a standby would lose the last claim. */
  #isClaimSafe = false;
  #restoredAtMs = -Infinity;
  #hasGoneBack = false;
  #olderCopyAtMs = -Infinity;
  #leaderships = 0;
  /** Which epochs machines have halted for since an older copy came. They remember them, and do not halt for them again. */
  readonly #halted = new Set<string>();
  #haltedAtMs = -Infinity;
  /** When a process last wrote that it is there. */
  readonly #presentAtMs = new Map<SimProcess, number>();

  constructor(world: SimWorld) {
    this.#world = world;
  }

  /** The epoch that leads; -1 before the first. */
  get epoch(): number {
    return this.#epoch;
  }

  /** How often somebody came to lead. */
  get leaderships(): number {
    return this.#leaderships;
  }

  /** The store lacks something that was answered as synced. */
  get hasGoneBack(): boolean {
    return this.#hasGoneBack;
  }

  share(sharing: Sharing): void {
    this.#sharing = sharing;
  }

  /** A batch is seen by all. Throws a violation. */
  committed(process: SimProcess, batch: Batch, isDurable: boolean): void {
    const { puts, deletes } = batch;
    for (const key of deletes)
      if (key === EPOCH_KEY || key === COORDINATOR_LEASE_KEY)
        throw new Violation(`${process.name} deletes ${key}: nobody knows any more which epochs were given`);
    const claimed = epochIn(puts);
    if (claimed !== undefined) this.#stamped(process, claimed);
    else if (!isOwnRowAlone(batch)) this.#checkWriter(process, batch);
    if (puts.some(({ key }) => isPresence(key))) this.#presentAtMs.set(process, this.#world.nowMs);
    // Batches that were logged before are as safe as this one.
    if (isDurable) this.#isClaimSafe = true;
    else if (claimed !== undefined) this.#isClaimSafe = false;
  }

  caughtUp(): void {
    this.#isClaimSafe = true;
  }

  /** The store has come back with these rows. */
  restored({ rows, unheard }: Left, how: Return): void {
    const before = this.#epoch;
    this.#epoch = epochIn(rows) ?? -1;
    for (const { process, batch } of unheard) {
      const claimed = epochIn(batch.puts);
      if (claimed !== undefined) this.#epochOf.set(process, claimed);
    }
    this.#restoredAtMs = this.#world.nowMs;
    if (this.#epoch < this.#highest) this.#isHighestLost = true;
    if (how === "older copy") {
      this.#hasGoneBack = true;
      this.#halted.clear();
      this.#olderCopyAtMs = this.#world.nowMs;
      this.#sharing?.onOlderCopy();
    }
    if (how !== "restart") this.#isClaimSafe = true;
    else if (this.#epoch !== before) this.#isClaimSafe = false;
  }

  /** It halts, for it heard that this epoch was led under, which the store has lost. Its lease is free. */
  halted({ machine: { name } }: SimProcess, seenEpoch: number): void {
    const loss = `${name} ${seenEpoch}`;
    if (this.#halted.has(loss)) return;
    this.#halted.add(loss);
    this.#haltedAtMs = this.#world.nowMs;
  }

  /** A leader of this epoch gives out work, or takes results. Throws a violation. */
  speaks(epoch: number): void {
    if (this.#sharing === undefined || this.mayNotKnow) return;
    if (epoch !== this.#epoch)
      throw new Violation(`a leader of epoch ${epoch} speaks, and epoch ${this.#epoch} leads`);
    if (!this.#isClaimSafe)
      throw new Violation(`a leader of epoch ${epoch} speaks, and its claim may still be lost`);
  }

  /**
   * It leads under this epoch, which nobody did before. One that it only claimed, and that came to nothing, was not given. It is above all that its
   * machine led under, and above all others unless their claims are lost with the store that had them. Throws a violation.
   */
  leads(process: SimProcess, epoch: number): void {
    // It stood still since its claim, and may not act any more by its own reckoning.
    if (this.#sharing?.believers().includes(process) === false) return;
    const { name } = process.machine;
    if (this.#leader === process && this.#given.get(epoch) === name) return;
    if (this.#sharing !== undefined && epoch === this.#epoch && !this.#isClaimSafe)
      throw new Violation(`${process.name} leads under epoch ${epoch}, and its claim may still be lost`);
    if (this.#given.has(epoch))
      throw new Violation(`${process.name} leads under epoch ${epoch}, which was given already`);
    const own = Math.max(-1, ...[...this.#given].flatMap(([given, by]) => (by === name ? given : [])));
    const known = this.#isHighestLost ? own : this.#highest;
    if (epoch < known)
      throw new Violation(`${process.name} leads under epoch ${epoch}, and ${known} was given already`);
    this.#given.set(epoch, name);
    this.#leader = process;
    this.#leaderships++;
    if (epoch < this.#highest) return;
    this.#highest = epoch;
    // The store may have gone back between its claim and this word of it.
    this.#isHighestLost = epoch > this.#epoch;
  }

  /** A claim, or a resignation. */
  #stamped(process: SimProcess, epoch: number): void {
    if (epoch === this.#epoch && this.#epochOf.get(process) === epoch) return;
    if (epoch <= this.#epoch)
      throw new Violation(`${process.name} takes epoch ${epoch}, and ${this.#epoch} leads`);
    this.#epoch = epoch;
    this.#epochOf.set(process, epoch);
    const { believers, calmFromMs = Infinity, settleMs = 0 } = this.#sharing ?? {};
    if (this.#world.nowMs > Math.max(calmFromMs, this.#haltedAtMs) + settleMs)
      throw new Violation(`${process.name} takes epoch ${epoch} though nothing has happened for long`);
    const other = believers?.().find((believer) => believer !== process);
    if (other !== undefined && !this.mayNotKnow)
      throw new Violation(`${process.name} takes epoch ${epoch}, and ${other.name} may still act`);
  }

  #checkWriter(process: SimProcess, { puts, deletes, expect }: Batch): void {
    const epoch = this.#epochOf.get(process);
    // Before its claim a coordinator only makes sure that the store is its own.
    if (epoch === undefined) return;
    const key = puts[0]?.key ?? deletes[0];
    if (!expect.some((expected) => expected.key === EPOCH_KEY))
      throw new Violation(`C1: ${process.name} writes ${key} and does not expect its epoch`);
    if (epoch !== this.#epoch)
      throw new Violation(`${process.name} of epoch ${epoch} writes ${key}, and epoch ${this.#epoch} leads`);
  }

  /** At the end, in the calm: whoever lives can write, and so can take over. Throws a violation. */
  checkEnd(): void {
    for (const process of this.#sharing?.living() ?? []) {
      const silentMs = this.#world.nowMs - (this.#presentAtMs.get(process) ?? process.startedAtMs);
      if (silentMs > SILENT_MAX_MS)
        throw new Violation(`${process.name} lives and has not written for ${silentMs.toFixed()} ms`);
    }
  }

  /** An older copy has just taken the store's place: answers that were on their way then promise what it does not have. */
  get mayBeLost(): boolean {
    return this.#world.nowMs < this.#olderCopyAtMs + RENEWALS_LOST_MS;
  }

  /** The store has just come back: leaders of before may act for a moment on what it has lost. */
  get mayNotKnow(): boolean {
    return this.#world.nowMs < this.#restoredAtMs + RENEWALS_LOST_MS;
  }
}

/** A renewal, or the row by which a coordinator says that it is there: nobody needs to lead for them. */
function isOwnRowAlone({ puts, deletes }: Batch): boolean {
  const [key = "", ...more] = [...puts.map((put) => put.key), ...deletes];
  return more.length === 0 && (key === COORDINATOR_LEASE_KEY || isPresence(key));
}

function isPresence(key: string): boolean {
  return key.startsWith(COORDINATORS_PREFIX) && key !== COORDINATOR_SNAPSHOT_KEY;
}

function epochIn(entries: readonly Entry[]): number | undefined {
  const found = entries.find(({ key }) => key === EPOCH_KEY);
  return found && okOrFailure("sim", decodeRecord(epochRow, EPOCH_KEY, found.value));
}
