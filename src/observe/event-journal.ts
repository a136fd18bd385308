// Events since this process began to speak: the last of them, as lines, for readers that ask what they have missed, and the
// following ones for readers that stay. Beside the event stream and never in its way: a reader who is slow loses
// lines, which are counted.
//
// Heartbeats are left out: of the last thousand lines of a fleet they would be all.
import { assert } from "../base/assert.ts";
import type { Clock } from "../base/clock.ts";
import type { RunId } from "../base/ids.ts";
import type { EventPayloads, Topic, UrgentEventEmitter } from "./events.ts";
import { eventLine } from "./stdout-emitter.ts";

const REMEMBERED_MAX = 1_000;
/** Lines that wait for one reader. */
const WAITING_MAX = 1_000;
/** Each reader costs memory. */
const READERS_MAX = 64;

/** Somebody who stays. */
export interface EventReader {
  /** Events since the last call, and how many lines of them are lost; waits until there is something. */
  next(): Promise<EventPage | undefined>;
  /** `next` is undefined from now on. Idempotent. */
  end(): void;
}

export interface EventPage {
  readonly lines: readonly string[];
  readonly dropped: number;
}

/** Where operators read events. */
export interface EventFeed {
  /** The last lines, oldest first, and how many there were before them. */
  remembered(): EventPage;
  /** Begins with what happens from now. Undefined when there are too many readers. */
  follow(): EventReader | undefined;
  readonly readersMax: number;
}

export interface EventJournalOptions {
  /** Where events go in any case. */
  readonly events: UrgentEventEmitter;
  readonly runId: RunId;
  readonly clock: Clock;
}

export class EventJournal implements UrgentEventEmitter, EventFeed {
  readonly readersMax = READERS_MAX;
  readonly #options: EventJournalOptions;
  #lines: string[] = [];
  #forgotten = 0;
  readonly #readers = new Set<FollowingReader>();

  constructor(options: EventJournalOptions) {
    this.#options = options;
  }

  emit<T extends Topic>(topic: T, payload: EventPayloads[T]): void {
    this.#options.events.emit(topic, payload);
    this.#note(topic, payload);
  }

  emitNow<T extends Topic>(topic: T, payload: EventPayloads[T]): void {
    this.#note(topic, payload);
    this.#options.events.emitNow(topic, payload);
  }

  remembered(): EventPage {
    const dropped = this.#forgotten + Math.max(0, this.#lines.length - REMEMBERED_MAX);
    return { lines: this.#lines.slice(-REMEMBERED_MAX), dropped };
  }

  follow(): EventReader | undefined {
    if (this.#readers.size >= READERS_MAX) return undefined;
    const reader = new FollowingReader(() => this.#readers.delete(reader));
    this.#readers.add(reader);
    return reader;
  }

  #note<T extends Topic>(topic: T, payload: EventPayloads[T]): void {
    if (topic === "worker_heartbeat") return;
    const { runId, clock } = this.#options;
    const line = eventLine(runId, clock.wallMs(), topic, payload).trimEnd();
    this.#lines.push(line);
    if (this.#lines.length > 2 * REMEMBERED_MAX) {
      this.#forgotten += this.#lines.length - REMEMBERED_MAX;
      this.#lines = this.#lines.slice(-REMEMBERED_MAX);
    }
    for (const reader of this.#readers) reader.take(line);
  }
}

class FollowingReader implements EventReader {
  readonly #onEnd: () => void;
  #waiting: string[] = [];
  #dropped = 0;
  #isOver = false;
  #wake: (() => void) | undefined;

  constructor(onEnd: () => void) {
    this.#onEnd = onEnd;
  }

  take(line: string): void {
    if (this.#waiting.length < WAITING_MAX) this.#waiting.push(line);
    else this.#dropped++;
    this.#wake?.();
  }

  async next(): Promise<EventPage | undefined> {
    assert(this.#wake === undefined, "events are read by one at a time");
    while (!this.#isOver && this.#waiting.length === 0 && this.#dropped === 0)
      await new Promise<void>((resolve) => (this.#wake = resolve));
    this.#wake = undefined;
    if (this.#isOver) return undefined;
    const page = { lines: this.#waiting, dropped: this.#dropped };
    this.#waiting = [];
    this.#dropped = 0;
    return page;
  }

  end(): void {
    this.#isOver = true;
    this.#onEnd();
    this.#wake?.();
  }
}
