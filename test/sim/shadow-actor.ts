// One actor of a simulated run as its events tell it: what its machine has begun, and what has become of that.
import type { KeyRecord } from "../../src/coordinator/keys/key-records.ts";
import type { TimerRecord } from "../../src/coordinator/keys/timer-record.ts";
import type { Origin } from "../../src/coordinator/ledger/origin.ts";

export interface Begun {
  readonly number: number;
  readonly isChild: boolean;
  hasEnded: boolean;
}

export interface ArmedTimer {
  /** The key of its row. */
  readonly row: string;
  readonly timer: TimerRecord;
}

/** Rows of lanes, which are keys beside those of actors, have it in their texts. */
export const LANE_MARK = "\0";
/** The timer that forgets an actor. */
export const FORGETTING = "";

export class ShadowActor {
  readonly text: string;
  state: Uint8Array | undefined;
  parent: { readonly key: string; readonly id: string; readonly number: number } | undefined;
  isFinal = false;
  /** It was stopped; items that came before `since` are not its own. */
  isGone = false;
  since = 0;
  /** Invocations and children. */
  readonly live = new Map<string, Begun>();
  readonly armed = new Map<string, ArmedTimer>();
  /** Timers that went off and that it has not heard of: their numbers. */
  readonly fired = new Map<string, number>();
  /** The place of the item that has failed and keeps it. */
  keptBy: string | undefined;

  constructor(text: string) {
    this.text = text;
  }

  get isLane(): boolean {
    return this.text.includes(LANE_MARK);
  }

  /** Beneath another one. */
  get isNested(): boolean {
    return this.text.includes("/");
  }

  restore({ actor, hasFailed, head }: KeyRecord): void {
    if (hasFailed) this.keptBy = head;
    if (actor === undefined) return;
    const { parent, isFinal, isGone, since, live, fired } = actor;
    Object.assign(this, { parent, isFinal, isGone, since });
    for (const [id, { number, isChild, hasEnded }] of live) this.live.set(id, { number, isChild, hasEnded });
    for (const [id, number] of fired) this.fired.set(id, number);
  }

  disarm(id: string): void {
    this.armed.delete(id);
    this.fired.delete(id);
  }

  /** An item of this origin is over. */
  hears(origin: Origin): void {
    if (origin.kind === "timer" && this.fired.get(origin.id) === origin.number) this.fired.delete(origin.id);
    if (origin.kind !== "outcome" && origin.kind !== "failure") return;
    if (this.live.get(origin.id)?.number === origin.number) this.live.delete(origin.id);
  }

  /** It may be forgotten. */
  get isOver(): boolean {
    const isEmpty = this.live.size + this.armed.size + this.fired.size === 0 && this.state === undefined;
    return this.isLane || (isEmpty && (this.isGone || this.isNested));
  }

  /** How its row differs from it, in words; undefined when it does not. */
  difference({ actor, hasFailed }: KeyRecord): string | undefined {
    const seen = {
      failed: hasFailed,
      live: [...(actor?.live ?? [])].map(([id, { number, hasEnded }]) => `${id} ${number} ${hasEnded}`),
      fired: [...(actor?.fired ?? [])].map(([id, number]) => `${id} ${number}`),
      ends: [actor?.isFinal ?? false, actor?.isGone ?? false],
      parent: actor?.parent && `${actor.parent.key} ${actor.parent.number}`,
    };
    const expected: typeof seen = {
      failed: this.keptBy !== undefined,
      live: [...this.live].map(([id, { number, hasEnded }]) => `${id} ${number} ${hasEnded}`),
      fired: [...this.fired].map(([id, number]) => `${id} ${number}`),
      ends: [this.isFinal, this.isGone],
      parent: this.parent && `${this.parent.key} ${this.parent.number}`,
    };
    for (const name of ["failed", "live", "fired", "ends", "parent"] as const) {
      const [is, should] = [JSON.stringify(seen[name]), JSON.stringify(expected[name])];
      if (is !== should) return `${name}: it has ${is}, and should have ${should}`;
    }
    return undefined;
  }
}
