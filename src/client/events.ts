// The events of a run as lines of JSON: those that have happened since the coordinator began to lead, then those that
// happen. When the connection breaks it is made again, and what was told before is not told twice.
import { createClient } from "@connectrpc/connect";
import type { Transport } from "@connectrpc/connect";
import { OperatorService } from "../gen/rollout/v1/run_pb.ts";
import { followed } from "./followed.ts";
import type { FollowOptions } from "./followed.ts";

/** An event, with the fields of the row of docs/EVENTS.md that its topic names. */
export type RunEvent = Readonly<Record<string, unknown>> & {
  readonly topic: string;
  /** ISO 8601, by the coordinator's clock. */
  readonly ts: string;
  readonly run_id: string;
  readonly level: string;
};

export interface WatchOptions extends FollowOptions {
  /** Told how many lines were lost to a reader who was too slow. */
  readonly onDropped?: (count: number) => void;
}

/** More than a coordinator keeps of the past. */
const REMEMBERED = 20_000;

/** Lines without their endings, as `followed` has them. */
export async function* watchEvents(transport: Transport, options: WatchOptions): AsyncGenerator<string> {
  const { follow, onDropped } = options;
  const seen = new Remembered();
  const calls = createClient(OperatorService, transport);
  for await (const { events, dropped } of followed((how) => calls.watchEvents({ follow }, how), options)) {
    if (dropped > 0) onDropped?.(dropped);
    yield* events.filter((line) => seen.isNew(line));
  }
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
