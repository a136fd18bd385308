// The most frequent messages of failures, in bounded memory: messages that differ in their numbers and names of things only are one,
// and a message that is met for the first time when all places are taken takes the place of the rarest ("space saving"), with a
// count of its own that begins anew. Nothing of it is stored: a new leader begins with the failed items that it reads.
//
// Keeps true: no count is above the truth; so many messages are kept, so many characters of each (C8).
import { LIMITS } from "../../config/limits.ts";
import type { FailureClass } from "./records.ts";

export interface FailureMessage {
  readonly class: FailureClass;
  /** Message of one of them, cut to its beginning. */
  readonly message: string;
  /** Failed items that end with it. */
  readonly items: number;
  /** Attempts that ended with it after which their items were to be tried again. */
  readonly attempts: number;
  /** One of the items. */
  readonly item: Uint8Array;
}

/** A failure as it is met. */
export interface MetFailure {
  readonly class: FailureClass;
  readonly message: string;
  readonly id: Uint8Array;
}

interface Kept {
  readonly key: string;
  readonly class: FailureClass;
  message: string;
  items: number;
  attempts: number;
  item: Uint8Array;
  /** The weight that decides which message makes room: its own count, and the counts of those before it in the same place. */
  weight: number;
}

/** Words with a digit in them, but for those that say which failure it is: `exit code 3`, `[Errno 2]`, `503 Service Unavailable`. */
const VARYING = /(?<![\w-])(?<!^|(?:code|status|signal|errno|error|http)[ =:]{1,2})[\w-]*\d[\w-]*/gi;

export class FailureMessages {
  readonly #kept = new Map<string, Kept>();
  readonly #keptMax: number;

  constructor(keptMax: number = LIMITS.failureMessages) {
    this.#keptMax = keptMax;
  }

  /** An item has failed for good. */
  failed(failure: MetFailure): void {
    // An operator who cancels a run knows why.
    if (failure.class === "cancelled") return;
    const kept = this.#place(failure);
    if (kept.items === 0) [kept.item, kept.message] = [copyOf(failure.id), shortened(failure.message)];
    kept.items++;
  }

  /** An attempt has failed, and its item is tried again. */
  erred(failure: MetFailure): void {
    this.#place(failure).attempts++;
  }

  /** A failed item was retried. */
  retried({ class: as, message }: Omit<MetFailure, "id">): void {
    const kept = this.#kept.get(keyOf(as, message));
    if (kept === undefined || kept.items === 0) return;
    kept.items--;
    kept.weight--;
    // The failures of its attempts before say nothing about how it will go on.
    kept.attempts = 0;
  }

  /** The most frequent first; those of attempts only while nothing else is known. */
  top(count: number): FailureMessage[] {
    const all = [...this.#kept.values()];
    const ofItems = all.filter(({ items }) => items > 0).sort((one, other) => other.items - one.items);
    const ofAttempts = all
      .filter(({ items, attempts }) => items === 0 && attempts > 0)
      .sort((one, other) => other.attempts - one.attempts);
    return [...ofItems, ...ofAttempts]
      .slice(0, count)
      .map(({ class: as, message, items, attempts, item }) => ({
        class: as,
        message,
        items,
        attempts,
        item,
      }));
  }

  #place({ class: as, message, id }: MetFailure): Kept {
    const key = keyOf(as, message);
    let kept = this.#kept.get(key);
    if (kept === undefined) {
      const weight = this.#kept.size < this.#keptMax ? 0 : this.#makeRoom();
      kept = { key, class: as, message: shortened(message), items: 0, attempts: 0, item: copyOf(id), weight };
      this.#kept.set(key, kept);
    }
    kept.weight++;
    return kept;
  }

  /** Returns the weight of what went. */
  #makeRoom(): number {
    let rarest: Kept | undefined;
    for (const kept of this.#kept.values())
      if (rarest === undefined || kept.weight < rarest.weight) rarest = kept;
    if (rarest === undefined) return 0;
    this.#kept.delete(rarest.key);
    return rarest.weight;
  }
}

/** Nothing larger is kept for the sake of an id in it. */
function copyOf(id: Uint8Array): Uint8Array {
  return Uint8Array.from(id);
}

function keyOf(as: FailureClass, message: string): string {
  return `${as} ${shortened(message).replace(VARYING, "#")}`;
}

function shortened(message: string): string {
  return message.length <= LIMITS.failureMessageCharacters
    ? message
    : `${message.slice(0, LIMITS.failureMessageCharacters).toWellFormed()}…`;
}
