// The results of a run as plain values, a page at a time: all that are there, or on and on until the run is over. One page
// is in memory, however many results there are. A coordinator that restarts is waited for: the next page goes on where the
// last one ended, so that nothing is left out and nothing comes twice.
import { createClient } from "@connectrpc/connect";
import type { Transport } from "@connectrpc/connect";
import { backoffMs } from "../base/backoff.ts";
import type { Clock } from "../base/clock.ts";
import { sleep } from "../base/clock.ts";
import { failure, RolloutError } from "../base/errors.ts";
import type { WorkerId } from "../base/ids.ts";
import { parseUlidBytes } from "../base/ids.ts";
import type { Random } from "../base/random.ts";
import { ResultOrder, RunService } from "../gen/rollout/v1/run_pb.ts";
import type { ItemResult, ListResultsResponse } from "../gen/rollout/v1/run_pb.ts";
import { OutcomeClass } from "../gen/rollout/v1/work_pb.ts";

/** As submitted, or as they became final. */
export type ResultsOrder = "input" | "completion";

export interface ResultError {
  readonly class: string;
  readonly message: string;
  /** A server's answer in place of a result, if there was one: JSON with `status_code`, `request_id` and `body`. */
  readonly response?: Uint8Array;
}

/** The end of an item. */
export interface Result {
  /** 64 hexadecimal digits. */
  readonly item: string;
  /** How the input itself names it. */
  readonly id: string | undefined;
  /** Counts items in order of submission from 0. */
  readonly sequence: number;
  readonly ok: boolean;
  /** As the backend gave it; empty for a failure. */
  readonly output: Uint8Array;
  /** Undefined for a success. */
  readonly error: ResultError | undefined;
  /** The attempt that decided; 0 when there was none. */
  readonly attempt: number;
  readonly worker: WorkerId | undefined;
  readonly pluginVersion: string | undefined;
  /** Milliseconds since 1970 by the worker's clock. */
  readonly startedAtMs: number | undefined;
  readonly durationMs: number | undefined;
  /** Milliseconds since 1970 by the coordinator's clock. */
  readonly finishedAtMs: number;
  /** Only when it was asked for. */
  readonly input: Uint8Array | undefined;
}

export interface ResultPage {
  readonly results: readonly Result[];
  /** Where to go on after this page, also in another process. */
  readonly cursor: string;
  /** Nothing follows for now. In order of input: up to the first item that is not final. */
  readonly caughtUp: boolean;
  /** Nothing follows ever: the run is over. */
  readonly end: boolean;
}

export interface ReadOptions {
  readonly order: ResultsOrder;
  /** Go on until the run is over; without it, until everything that is there was read. */
  readonly follow: boolean;
  /** Where an earlier reading got to; it has to have had the same order. */
  readonly after?: string;
  /** Whether results come with what was submitted. */
  readonly withInput?: boolean;
  /** Results in a page; without it as many as the coordinator gives. */
  readonly limit?: number;
  /** How long a coordinator that does not answer is waited for; without it for ever. */
  readonly patienceMs?: number;
  readonly clock: Clock;
  readonly random: Random;
  readonly signal?: AbortSignal;
  /** Told once when the coordinator stops answering, and once when it answers again (undefined). */
  readonly onTrouble?: (error: RolloutError | undefined) => void;
}

/** While nothing comes: from what a person does not notice to what a coordinator does not. */
const IDLE_MIN_MS = 100;
const IDLE_MAX_MS = 2_000;
const IDLE_GROWTH = 1.5;
const TROUBLE = { baseMs: 200, ceilingMs: 5_000 };

/**
 * Yields pages until nothing follows, empty ones included when they move the cursor or are the last. Throws the transport's
 * rows: at once those that waiting does not help, the others when patience ends; `interrupted` when the signal aborts.
 */
export async function* readResults(transport: Transport, options: ReadOptions): AsyncGenerator<ResultPage> {
  const { clock, signal, follow } = options;
  const ask = patientAsker(transport, options);
  let cursor = options.after ?? "";
  let idleMs = IDLE_MIN_MS;
  for (;;) {
    const page = pageOf(await ask(cursor));
    const isNews = page.results.length > 0 || page.cursor !== cursor || page.end;
    cursor = page.cursor;
    if (isNews || !follow) yield page;
    if (page.end || (page.caughtUp && !follow)) return;
    if (!page.caughtUp) continue;
    idleMs = page.results.length > 0 ? IDLE_MIN_MS : Math.min(idleMs * IDLE_GROWTH, IDLE_MAX_MS);
    await sleep(clock, idleMs, signal);
    if (signal?.aborted === true) throw failure("interrupted", {});
  }
}

function patientAsker(
  transport: Transport,
  options: ReadOptions,
): (after: string) => Promise<ListResultsResponse> {
  const { clock, random, signal, patienceMs = Infinity } = options;
  const client = createClient(RunService, transport);
  const order = options.order === "input" ? ResultOrder.INPUT : ResultOrder.COMPLETION;
  const request = { order, limit: options.limit ?? 0, withPayload: options.withInput ?? false };
  return async (after) => {
    let troubleSinceMs: number | undefined;
    for (let tried = 1; ; tried++) {
      try {
        const answer = await client.listResults(
          { ...request, after },
          signal === undefined ? {} : { signal },
        );
        if (troubleSinceMs !== undefined) options.onTrouble?.(undefined);
        return answer;
      } catch (error) {
        if (!(error instanceof RolloutError) || error.row.retry === "never") throw error;
        const nowMs = clock.monotonicMs();
        if (troubleSinceMs === undefined) options.onTrouble?.(error);
        troubleSinceMs ??= nowMs;
        if (nowMs - troubleSinceMs >= patienceMs) throw error;
      }
      await sleep(clock, backoffMs(TROUBLE, tried, random), signal);
      if (signal?.aborted === true) throw failure("interrupted", {});
    }
  };
}

function pageOf({ results, after, caughtUp, end }: ListResultsResponse): ResultPage {
  return { results: results.map(resultOf), cursor: after, caughtUp, end };
}

function errorOf({ failureClass, errorMessage, response }: ItemResult): ResultError {
  return { class: failureClass, message: errorMessage, ...(response.length > 0 && { response }) };
}

/** The plain form of what stands in a page. */
export function resultOf(message: ItemResult): Result {
  const ok = message.outcome === OutcomeClass.SUCCESS;
  const { payload } = message;
  const hasStarted = message.startedAtMs !== 0n;
  return {
    item: Buffer.from(message.itemId).toString("hex"),
    id: message.label === "" ? undefined : message.label,
    sequence: Number(message.sequence),
    ok,
    output: message.output,
    error: ok ? undefined : errorOf(message),
    attempt: message.attempt,
    worker: parseUlidBytes<WorkerId>(message.workerId),
    pluginVersion: message.pluginVersion === "" ? undefined : message.pluginVersion,
    startedAtMs: hasStarted ? Number(message.startedAtMs) : undefined,
    durationMs: hasStarted ? Number(message.durationMs) : undefined,
    finishedAtMs: Number(message.finishedAtMs),
    input: payload.length === 0 ? undefined : payload,
  };
}
