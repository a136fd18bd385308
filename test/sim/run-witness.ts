// Invariants of the run as a whole, and of an operator's decisions about it: a run that is paused or cancelled gives out
// nothing, one that is complete has nothing left, failed items come back when somebody has asked for it, and what was
// answered holds.
import type { FailedRecord } from "../../src/coordinator/ledger/records.ts";
import { isFinal } from "./shadow-ledger.ts";
import type { Change, ShadowItem, ShadowLedger } from "./shadow-ledger.ts";
import { short } from "./sim-backend.ts";
import { Violation } from "./world.ts";

/** An operator's decisions about the run. */
export type Decision = "pause" | "resume" | "cancel" | "retry";

interface Moment {
  readonly before: string;
  readonly state: string;
  readonly epoch: number;
}

export class RunWitness {
  /** Where keys are actors, items end that nobody waits for: somebody else looks at which. */
  readonly #hasActors: boolean;
  readonly #asked = new Set<Decision>();
  /** A promise that was answered, and that no later request takes back. */
  #isPausePromised = false;
  #isCancelPromised = false;
  /** By item: the attempt that it had failed under when it was last taken back. */
  readonly #retakenFrom = new Map<string, number>();
  /** The same, of what has been answered. */
  readonly #promisedRetaken = new Map<string, number>();

  constructor(hasActors: boolean) {
    this.#hasActors = hasActors;
  }

  /** The last attempt of an item that counts for nothing any more; 0 when there is none. */
  retakenFrom(idText: string): number {
    return this.#retakenFrom.get(idText) ?? 0;
  }

  /** How many items were taken back. */
  get retaken(): number {
    return this.#retakenFrom.size;
  }

  asked(decision: Decision): void {
    this.#asked.add(decision);
    if (decision === "resume") this.#isPausePromised = false;
  }

  acknowledged(decision: Decision, ledger: ShadowLedger): void {
    // A complete run is neither paused nor cancelled.
    const isComplete = ledger.run?.state === "Complete";
    switch (decision) {
      case "pause":
        // A call that was given up may arrive late: after the first that says otherwise nothing is certain.
        this.#isPausePromised = !isComplete && !this.#asked.has("resume");
        break;
      case "resume":
        break;
      case "cancel":
        this.#isCancelPromised ||= !isComplete;
        break;
      case "retry":
        for (const [idText, attempt] of this.#retakenFrom) this.#promisedRetaken.set(idText, attempt);
    }
    this.checkPromises(ledger);
  }

  /** C10: what was answered is there. */
  checkPromises(ledger: ShadowLedger): void {
    const state = ledger.run?.state ?? "";
    if (this.#isPausePromised && !isPaused(state) && !isOver(state))
      throw new Violation(`C10: the run was paused, and is ${state}`);
    if (this.#isCancelPromised && state !== "Cancelled")
      throw new Violation(`C10: the run was cancelled, and is ${state}`);
    for (const [idText, attempt] of this.#promisedRetaken) {
      const { failed } = ledger.get(idText) ?? {};
      if (failed !== undefined && failed.attempt <= attempt && !this.#hasActors)
        throw new Violation(`C10: ${short(idText)} was taken back, and has failed as it had before`);
    }
  }

  /** An older copy of the store took its place: nothing that was answered since holds, and every failure counts. */
  forget(): void {
    [this.#isPausePromised, this.#isCancelPromised] = [false, false];
    this.#retakenFrom.clear();
    this.#promisedRetaken.clear();
  }

  /** A batch has been carried out; `before` is the run's state until then, `epoch` its leader's. */
  changed(
    ledger: ShadowLedger,
    changes: readonly Change[],
    { before, epoch }: { readonly before: string; readonly epoch: number },
  ): void {
    const state = ledger.run?.state ?? "";
    if (before === "Cancelled" && state !== before)
      throw new Violation(`the run was cancelled, and is ${state}`);
    if (state === "Cancelled" && !this.#asked.has("cancel"))
      throw new Violation("nobody has cancelled the run");
    for (const change of changes) this.#change(change, { before, state, epoch });
    if (state !== before) this.#moved(ledger, state);
  }

  #change(change: Change, { before, state, epoch }: Moment): void {
    const { item } = change;
    const name = short(item.idText);
    switch (change.kind) {
      case "assigned":
        // Items that an earlier leader gave out, and that a worker has, are taken up again.
        if ((item.running?.epoch ?? epoch) < epoch) return;
        if (isPaused(state) || isOver(state))
          throw new Violation(`${name} is given out, and the run is ${state}`);
        return;
      case "failed":
        if (item.failed?.class === "cancelled" && state !== "Cancelled" && !this.#hasActors)
          throw new Violation(`${name} is called cancelled, and the run is ${state}`);
        return;
      case "done":
        if (before === "Cancelled") throw new Violation(`${name} is done, and the run was cancelled`);
        return;
      case "retaken":
        if (before === "Cancelled" || state === "Complete")
          throw new Violation(`${name} is taken back, and the run is ${state}`);
        return this.#retaken(item, change.was);
      default:
    }
  }

  #retaken({ idText, budgets }: ShadowItem, { attempt }: FailedRecord): void {
    const name = short(idText);
    if (!this.#asked.has("retry")) throw new Violation(`C9: nobody has taken ${name} back`);
    if (budgets?.charged !== 0 || budgets.lost !== 0 || budgets.attempt !== attempt)
      throw new Violation(`${name} failed as #${attempt} and comes back with ${JSON.stringify(budgets)}`);
    this.#retakenFrom.set(idText, attempt);
  }

  #moved(ledger: ShadowLedger, state: string): void {
    const items = [...ledger.items];
    const left = state === "Complete" ? items.find((item) => !isFinal(item)) : undefined;
    if (state === "Complete") this.#isPausePromised = false;
    if (left !== undefined)
      throw new Violation(`the run is complete, and ${short(left.idText)} is not final`);
    const held = state === "Cancelled" ? items.find(({ running }) => running !== undefined) : undefined;
    if (held !== undefined) throw new Violation(`the run is cancelled, and ${short(held.idText)} runs`);
  }
}

function isPaused(state: string): boolean {
  return state.endsWith(".Paused");
}

function isOver(state: string): boolean {
  return state === "Complete" || state === "Cancelled";
}
