// Events since this process began to speak, as lines, for operators who ask or follow. Beside the event stream and never in its way.
//
// Heartbeats are left out: of the last thousand lines of a fleet they would be all.
import type { Clock } from "../base/clock.ts";
import type { RunId } from "../base/ids.ts";
import type { EventPayloads, Topic, UrgentEventEmitter } from "./events.ts";
import { Journal } from "./journal.ts";
import { eventLine } from "./stdout-emitter.ts";

const REMEMBERED_MAX = 1_000;

/** Where operators read events. */
export type EventFeed = Pick<EventJournal, "remembered" | "follow" | "readersMax">;

export interface EventJournalOptions {
  /** Where events go in any case. */
  readonly events: UrgentEventEmitter;
  readonly runId: RunId;
  readonly clock: Clock;
}

export class EventJournal extends Journal<string> implements UrgentEventEmitter {
  readonly #options: EventJournalOptions;

  constructor(options: EventJournalOptions) {
    super(REMEMBERED_MAX);
    this.#options = options;
  }

  emit<T extends Topic>(topic: T, payload: EventPayloads[T]): void {
    this.#options.events.emit(topic, payload);
    this.#keep(topic, payload);
  }

  emitNow<T extends Topic>(topic: T, payload: EventPayloads[T]): void {
    this.#keep(topic, payload);
    this.#options.events.emitNow(topic, payload);
  }

  #keep<T extends Topic>(topic: T, payload: EventPayloads[T]): void {
    if (topic === "worker_heartbeat") return;
    const { runId, clock } = this.#options;
    this.note(eventLine(runId, clock.wallMs(), topic, payload).trimEnd());
  }
}
