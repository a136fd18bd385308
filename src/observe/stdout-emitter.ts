// Events as lines of JSON on standard output: `{ts, run_id, kind: "domain", topic, level, …}`. The reader may be slow,
// stuck or gone without the process being any of that; src/observe/line-output.ts keeps that promise.
import type { Writable } from "node:stream";
import type { Clock } from "../base/clock.ts";
import { isoTime } from "../base/clock.ts";
import { describeError } from "../base/errors.ts";
import type { RunId } from "../base/ids.ts";
import { printableLines } from "../base/safe-text.ts";
import { EVENTS } from "./events.ts";
import type { EventPayloads, Topic, UrgentEventEmitter } from "./events.ts";
import { LineOutput } from "./line-output.ts";
import type { Logger } from "./log.ts";

export interface StdoutEmitterOptions {
  readonly stream: Writable;
  /** The stream's descriptor, for the event that may not wait. */
  readonly fd: number;
  readonly runId: RunId;
  readonly clock: Clock;
  readonly log: Logger;
  /** Topics that are not written. `coordinator_fenced` and `events_dropped` always are. */
  readonly hide: readonly string[];
  readonly limitBytes: number;
  /** The lines are then spelled so that it obeys nothing of them; as JSON they are the same. */
  readonly isTerminal?: boolean;
}

export class StdoutJsonEmitter implements UrgentEventEmitter {
  readonly #options: StdoutEmitterOptions;
  readonly #hidden: ReadonlySet<string>;
  readonly #output: LineOutput;

  constructor(options: StdoutEmitterOptions) {
    this.#options = options;
    this.#hidden = new Set(options.hide);
    this.#output = new LineOutput({
      stream: options.stream,
      clock: options.clock,
      limitBytes: options.limitBytes,
      gapLine: (count) => this.#line("events_dropped", { count }),
      onBroken: (error) =>
        options.log.warn("nobody reads the events any more; going on without them", {
          reason: describeError(error),
        }),
    });
  }

  emit<T extends Topic>(topic: T, payload: EventPayloads[T]): void {
    if (!this.#hidden.has(topic)) this.#output.write(this.#line(topic, payload));
  }

  emitNow<T extends Topic>(topic: T, payload: EventPayloads[T]): void {
    this.#output.writeNow(this.#line(topic, payload), this.#options.fd);
  }

  /** Resolves when every event has left, or after `deadlineMs`. Idempotent. */
  close(deadlineMs: number): Promise<void> {
    return this.#output.close(deadlineMs);
  }

  #line<T extends Topic>(topic: T, payload: EventPayloads[T]): string {
    const { runId, clock, isTerminal = false } = this.#options;
    const line = eventLine(runId, clock.wallMs(), topic, payload);
    return isTerminal ? printableLines(line) : line;
  }
}

/** The event as it stands in the stream, with its ending. */
export function eventLine<T extends Topic>(
  runId: RunId,
  wallMs: number,
  topic: T,
  payload: EventPayloads[T],
): string {
  const { level } = EVENTS[topic];
  return `${JSON.stringify({ ts: isoTime(wallMs), run_id: runId, kind: "domain", topic, level, ...payload })}\n`;
}
