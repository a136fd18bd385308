// Keeps what was emitted, for tests to look at.
import type { EventPayloads, Topic, UrgentEventEmitter } from "../../src/observe/events.ts";

type Recorded = { readonly [T in Topic]: { readonly topic: T; readonly payload: EventPayloads[T] } }[Topic];

export class RecordingEmitter implements UrgentEventEmitter {
  readonly events: Recorded[] = [];

  emit<T extends Topic>(topic: T, payload: EventPayloads[T]): void {
    this.events.push({ topic, payload } as Recorded);
  }

  emitNow<T extends Topic>(topic: T, payload: EventPayloads[T]): void {
    this.emit(topic, payload);
  }

  /** The payloads of one topic, in order. */
  of<T extends Topic>(topic: T): EventPayloads[T][] {
    return this.events
      .filter((event) => event.topic === topic)
      .map((event) => event.payload as EventPayloads[T]);
  }
}
