// One key in memory. There may be a million of them, nearly all idle, so an idle one holds its text and a few numbers: about 300
// bytes.
import { charts } from "../../../machines/index.ts";
import type { KeyContext, KeyEvent } from "../../../machines/key.ts";
import { assert } from "../../base/assert.ts";
import { compile } from "../../runtime/compile.ts";
import type { CompiledChart, Row } from "../../runtime/compile.ts";
import type { PendingItem } from "../ledger/ledger.ts";
import type { Origin } from "../ledger/origin.ts";
import { isLane } from "./lanes.ts";
import type { Actor } from "./actor.ts";
import type { Place } from "../ledger/place.ts";
import { NO_ROW } from "../ledger/tally.ts";

export const keyChart: CompiledChart<KeyContext, KeyEvent, unknown> = compile(charts.key.machine);

export const IDLE = Object.freeze(keyChart.initial({}));
export const WAITING = stateIndex("Waiting");
export const RUNNING = stateIndex("Running");
export const DELAYED = stateIndex("Delayed");
export const PARKED = stateIndex("Parked");

/** An act of an operator. */
export type KeyAction = "pause" | "resume" | "skip" | "retire";
/** The outcome: or why it is refused. */
export type SteerVerdict = "done" | "unknown" | "notFailed" | "headFailed" | "notIdle";

/** An item of a key. */
export interface Letter {
  readonly place: Place;
  /** Undefined while it is not in memory. */
  item: PendingItem | undefined;
  /** The id of one that a worker has, and whose item is not in memory. */
  id?: Uint8Array;
  origin?: Origin | undefined;
  /** Nobody wants it any more: it is about to be final. */
  isCondemned?: true;
}

export const NO_LETTERS: readonly Letter[] = Object.freeze([]);

export class Key {
  readonly text: string;
  readonly partition: number;
  /** See `lanes.ts`. */
  readonly isLane: boolean;
  row: Row<KeyContext> = IDLE;
  /** The item that runs next, or runs; or has failed and parks the key. Undefined while it is not known which one it is. */
  head: Letter | undefined = undefined;
  /** The first of those behind it, in order. */
  next: readonly Letter[] = NO_LETTERS;
  /** One more than the number of the record of completions with which its state was committed last; 0 when it never had one. */
  commit = 0;
  stateVersion = 0;
  /** The place of its last item that has succeeded; undefined before the first, and where states have no versions (K13). */
  last: Place | undefined = undefined;
  /** Names what has taken it from another run; empty when it began in this one. */
  mark = "";
  hasState = false;
  /** Undefined when it has none, or it is not in memory. */
  state: Uint8Array | undefined = undefined;
  /** Undefined for a key that is no actor, or one that waits for nothing. */
  actor: Actor | undefined = undefined;
  /** Why it is parked; empty when it is not, or was paused. */
  why = "";
  /** Checksums of its rows in the store. */
  checksum = NO_ROW;
  stateChecksum = NO_ROW;
  /** The place where its head stands to be given out: one of the heaps of keys, or a shelf of the ledger. */
  queue: object | "shelf" | "alone" | undefined = undefined;
  /** The order of its head there. */
  order = "";
  /** When its head could be given out, monotonic. */
  readySinceMs = 0;
  /** It is being read. */
  isLoading = false;
  /** The reading that is under way may lack some of its mail. */
  isStale = false;
  /** Its head was returned, or has waited for its owner: it goes to whichever worker can start it. */
  isForAll = false;

  constructor(text: string, partition: number) {
    this.text = text;
    this.partition = partition;
    this.isLane = isLane(text);
  }

  /** Its head has not begun, waits for no time and has not failed: another one may go before it. */
  get isOpen(): boolean {
    const { state, context } = this.row;
    return state === WAITING || (state === PARKED && !context.isDelayed && !context.hasFailed);
  }

  /** Items behind the head. */
  get behind(): number {
    const { mail, hasFailed } = this.row.context;
    return this.head === undefined || hasFailed ? mail : mail - 1;
  }

  /** The commit of its state; 0 when it has none. */
  get statedCommit(): number {
    return this.hasState ? this.commit : 0;
  }

  /** All of them are in `next`. */
  get isKnown(): boolean {
    return this.next.length === this.behind;
  }
}

function stateIndex(name: string): number {
  const index = keyChart.indexOf(name);
  assert(index !== undefined, `the chart of a key has a state ${name}`);
  return index;
}

/** A key that runs is stored as one that waits: the row of its head says that it runs. */
export function storedState(state: number): number {
  return state === RUNNING ? WAITING : state;
}
