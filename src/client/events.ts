// The events of a run as lines of JSON: those that have happened since the coordinator began to lead, then those that
// happen. When the connection breaks it is made again, and what was told before is not told twice.
import { createClient } from "@connectrpc/connect";
import type { Transport } from "@connectrpc/connect";
import { backoffMs } from "../base/backoff.ts";
import type { Clock } from "../base/clock.ts";
import { sleep } from "../base/clock.ts";
import { RolloutError } from "../base/errors.ts";
import type { Random } from "../base/random.ts";
import { RunService } from "../gen/rollout/v1/run_pb.ts";
import type { WatchEventsResponse } from "../gen/rollout/v1/run_pb.ts";

/** An event, with the fields of the row of docs/EVENTS.md that its topic names. */
export type RunEvent = Readonly<Record<string, unknown>> & {
  readonly topic: string;
  /** ISO 8601, by the coordinator's clock. */
  readonly ts: string;
  readonly run_id: string;
  readonly level: string;
};

export interface WatchOptions {
  /** Go on with what happens from now. */
  readonly follow: boolean;
  readonly clock: Clock;
  readonly random: Random;
  readonly signal?: AbortSignal;
  /** Told once when the coordinator is gone, and once when it is back (undefined). */
  readonly onTrouble?: (error: RolloutError | undefined) => void;
  /** Told how many lines were lost to a reader who was too slow. */
  readonly onDropped?: (count: number) => void;
}

const TROUBLE = { baseMs: 200, ceilingMs: 5_000 };

/** More than a coordinator keeps of the past. */
const REMEMBERED = 20_000;

/**
 * Lines without their endings. Ends behind what has happened unless it follows; then it ends when the signal aborts. Throws
 * the transport's rows: those of the first connection, and those that waiting does not help.
 */
export async function* watchEvents(transport: Transport, options: WatchOptions): AsyncGenerator<string> {
  const { follow, clock, random, signal, onTrouble } = options;
  const seen = new Remembered();
  let isConnected = false;
  let isTroubled = false;
  for (let tried = 1; ; tried++) {
    try {
      for await (const { events, dropped } of open(transport, follow, signal)) {
        if (isTroubled) onTrouble?.(undefined);
        [isConnected, isTroubled, tried] = [true, false, 0];
        if (dropped > 0n) options.onDropped?.(Number(dropped));
        yield* events.filter((line) => seen.isNew(line));
      }
      if (!follow) return;
    } catch (error) {
      if (signal?.aborted === true) return;
      const isWorthAnother = error instanceof RolloutError && error.row.retry !== "never";
      if (!isWorthAnother || !isConnected || !follow) throw error;
      if (!isTroubled) onTrouble?.(error);
      isTroubled = true;
    }
    await sleep(clock, backoffMs(TROUBLE, Math.max(1, tried), random), signal);
    if (signal?.aborted === true) return;
  }
}

function open(
  transport: Transport,
  follow: boolean,
  signal: AbortSignal | undefined,
): AsyncIterable<WatchEventsResponse> {
  return createClient(RunService, transport).watchEvents({ follow }, signal === undefined ? {} : { signal });
}

/** The last lines. A line has its time in it: two that are equal are one that was told twice. */
class Remembered {
  readonly #lines = new Set<string>();

  isNew(line: string): boolean {
    if (this.#lines.has(line)) return false;
    this.#lines.add(line);
    if (this.#lines.size > REMEMBERED) {
      const [oldest] = this.#lines;
      if (oldest !== undefined) this.#lines.delete(oldest);
    }
    return true;
  }
}
