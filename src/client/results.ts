// The results of a run as plain values, a page at a time: all that are there, or on and on until the run is over. Two pages
// are in memory, however many results there are: the next one is read while one is used. A coordinator that restarts is waited for:
// the next page goes on where the last one ended, so that nothing is left out and nothing comes twice.
import { createClient } from "@connectrpc/connect";
import type { Transport } from "@connectrpc/connect";
import type { Clock } from "../base/clock.ts";
import { sleep } from "../base/clock.ts";
import { failure, RolloutError } from "../base/errors.ts";
import type { WorkerId } from "../base/ids.ts";
import { parseUlidBytes } from "../base/ids.ts";
import type { Random } from "../base/random.ts";
import { ResultOrder, OperatorService } from "../gen/rollout/v1/run_pb.ts";
import type { ItemResult, ListResultsResponse } from "../gen/rollout/v1/run_pb.ts";
import { OutcomeClass } from "../gen/rollout/v1/work_pb.ts";
import { originOf } from "./origin.ts";
import type { Origin } from "./origin.ts";
import { troubleWaitMs } from "./trouble.ts";

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
  /** Undefined for an item that was submitted: what other items have made comes only when it is asked for. */
  readonly origin: Origin | undefined;
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
  /** Only results of this version of the plugin; without it of all. */
  readonly pluginVersion?: string;
  /**
   * Also those of items that other items have made (messages between actors, timers, invocations, named actions), or their failures alone:
   * in order of the input these come behind all others.
   */
  readonly inside?: boolean | "failed";
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

/** How long a call waits at the coordinator for the first result that follows: less than the deadline of a call. */
const WAIT_MS = 4_000;
/**
 * Pause after a page for each result in it but the first, and the longest: results that come together are followed by others, which are
 * collected, for a page with each turn of the coordinator's would cost more than it tells. One that comes alone is followed by no pause.
 */
const PAUSE_MS_PER_RESULT = 6;
const COLLECT_MS = 50;
/** Between calls that a coordinator does not have wait: from what a person does not notice to what a coordinator does not. */
const IDLE_MIN_MS = 100;
const IDLE_MAX_MS = 2_000;
const IDLE_GROWTH = 1.5;

/** Parts of a cursor in order of the input, where failures of items from inside come too: how far these have got stands behind it. */
const FAILURES = "+";

/**
 * Yields pages until nothing follows, empty ones included when they move the cursor or are the last. Throws the transport's
 * rows: at once those that waiting does not help, the others when patience ends; `interrupted` when the signal aborts.
 */
export async function* readResults(transport: Transport, options: ReadOptions): AsyncGenerator<ResultPage> {
  const isWithFailures = options.order === "input" && options.inside === "failed";
  yield* isWithFailures ? readThenFailures(transport, options) : readInOrder(transport, options);
}

/** Items from inside have no place in the order of the input: those that have failed follow behind the results that there are. */
async function* readThenFailures(transport: Transport, options: ReadOptions): AsyncGenerator<ResultPage> {
  const [from = "", failuresFrom = ""] = (options.after ?? "").split(FAILURES);
  let cursor = from;
  let isEnd = false;
  let failuresCursor = failuresFrom;
  const cursors = (): string => (failuresCursor === "" ? cursor : `${cursor}${FAILURES}${failuresCursor}`);
  for await (const page of readInOrder(transport, { ...options, inside: false, after: from })) {
    [cursor, isEnd] = [page.cursor, page.end];
    yield { results: page.results, cursor: cursors(), caughtUp: false, end: false };
  }
  const failures = { ...options, order: "completion", inside: "only-failed", follow: false } as const;
  for await (const page of readInOrder(transport, { ...failures, after: failuresFrom })) {
    // A run without any has the cursor that it has without looking for them.
    if (page.results.length > 0 || failuresCursor !== "") failuresCursor = page.cursor;
    yield { ...page, cursor: cursors(), end: isEnd && page.end };
  }
}

async function* readInOrder(transport: Transport, options: PlainOptions): AsyncGenerator<ResultPage> {
  const { clock, signal, follow } = options;
  const leaving = new AbortController();
  const either = signal === undefined ? leaving.signal : AbortSignal.any([signal, leaving.signal]);
  const ask = patientAsker(transport, { ...options, signal: either });
  let cursor = options.after ?? "";
  let idleMs = IDLE_MIN_MS;
  let ahead: Promise<ListResultsResponse> | undefined;
  try {
    for (;;) {
      const askedMs = clock.monotonicMs();
      const page = pageOf(await (ahead ?? ask(cursor)), options);
      const isNews = page.results.length > 0 || page.cursor !== cursor || page.end;
      cursor = page.cursor;
      ahead = page.caughtUp ? undefined : ask(cursor);
      // It is awaited for the next page, if there is one.
      ahead?.catch(() => undefined);
      if (isNews || !follow) yield page;
      if (page.end || (page.caughtUp && !follow)) return;
      if (!page.caughtUp) continue;
      const hasWaited = clock.monotonicMs() - askedMs >= WAIT_MS / 2;
      const isIdle = page.results.length === 0 && !hasWaited;
      idleMs = isIdle ? Math.min(idleMs * IDLE_GROWTH, IDLE_MAX_MS) : IDLE_MIN_MS;
      const pauseMs = isIdle ? idleMs : collectMs(page.results.length);
      if (pauseMs > 0) await sleep(clock, pauseMs, signal);
      if (signal?.aborted === true) throw failure("interrupted", {});
    }
  } finally {
    leaving.abort();
  }
}

function collectMs(results: number): number {
  return Math.min(Math.max(0, results - 1) * PAUSE_MS_PER_RESULT, COLLECT_MS);
}

type PlainOptions = Omit<ReadOptions, "inside"> & { readonly inside?: ReadOptions["inside"] | "only-failed" };

function patientAsker(
  transport: Transport,
  options: PlainOptions,
): (after: string) => Promise<ListResultsResponse> {
  const { clock, random, signal, patienceMs = Infinity } = options;
  const client = createClient(OperatorService, transport);
  const order = options.order === "input" ? ResultOrder.INPUT : ResultOrder.COMPLETION;
  const waitMs = options.follow ? WAIT_MS : 0;
  const { limit = 0, withInput: withPayload = false, pluginVersion = "", inside = false } = options;
  const which = { withInside: inside !== false, onlyFailedInside: inside === "only-failed" };
  const request = { order, limit, withPayload, waitMs, pluginVersion, ...which };
  return async (after) => {
    let troubleSinceMs: number | undefined;
    for (let tried = 1; ; tried++) {
      let trouble: RolloutError;
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
        trouble = error;
      }
      await sleep(clock, troubleWaitMs(trouble, tried, random), signal);
      if (signal?.aborted === true) throw failure("interrupted", {});
    }
  };
}

function pageOf(
  { results: all, after, caughtUp, end }: ListResultsResponse,
  { inside = false }: Pick<PlainOptions, "inside">,
): ResultPage {
  const results = all.map(resultOf).filter((result) => {
    if (typeof inside === "boolean") return true;
    return result.origin === undefined ? inside === "failed" : hasFailed(result);
  });
  return { results, cursor: after, caughtUp, end };
}

/** An item for which nobody waited any more was stopped, and has not failed. */
function hasFailed({ error }: Result): boolean {
  return error !== undefined && error.class !== "cancelled";
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
    origin: originOf(message.origin),
  };
}
