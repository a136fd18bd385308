// Results, a page a call. They are read from the store beside the reactor, which tells how far the ledger reaches: a page
// costs the loop nothing but its decoding, a few items at a time. A call may wait for the first result that follows.
import { create } from "@bufbuild/protobuf";
import type { ServiceImpl } from "@connectrpc/connect";
import type { Clock } from "../../base/clock.ts";
import { sleep } from "../../base/clock.ts";
import { ulidToBytes } from "../../base/ids.ts";
import type { ItemResult, OperatorService } from "../../gen/rollout/v1/run_pb.ts";
import { ResultOrder } from "../../gen/rollout/v1/run_pb.ts";
import { ItemOriginSchema, OutcomeClass } from "../../gen/rollout/v1/work_pb.ts";
import type { Store } from "../../storage/store.ts";
import type { FinalItem } from "../read/stored-items.ts";
import type { FailureClass } from "../ledger/records.ts";
import { sequenceOf } from "../ledger/place.ts";
import type { CompletionCursor, PageLimits, ResultPage, ResultSource } from "../read/result-pages.ts";
import { readByCompletion, readByInput } from "../read/result-pages.ts";
import type { LedgerExtent, RunReach } from "../turn/run-terms.ts";
import { writeOrigin } from "./actor-messages.ts";
import type { Leader } from "./leader.ts";
import { ask, refuse } from "./leader.ts";

const PAGE_ITEMS_MAX = 1_000;
/** A single result may be larger; it comes alone then. */
const PAGE_BYTES_MAX = 2 * 2 ** 20;
const WAIT_MAX_MS = 20_000;
/** Before a call waits again that was woken for others than the result which it waits for: in order of input these may come first. */
const AGAIN_MS = 50;

export function results(
  leader: Leader,
  store: Store,
  clock: Clock,
): Pick<ServiceImpl<typeof OperatorService>, "listResults"> {
  const look = (): Promise<LedgerExtent> => ask(leader, { kind: "getExtent" });
  return {
    async listResults(asked, { signal }) {
      const {
        order,
        after,
        limit,
        withPayload,
        waitMs,
        withInside,
        onlyFailedInside,
        pluginVersion: version,
      } = asked;
      const { read, from } = readerOf(order, after);
      const items = limit === 0 ? PAGE_ITEMS_MAX : Math.min(limit, PAGE_ITEMS_MAX);
      const endMs = clock.monotonicMs() + Math.min(waitMs, WAIT_MAX_MS);
      const gone = AbortSignal.any([signal, leader.stopping]);
      for (let looks = 1; ; looks++) {
        // As it was told last: a turn of the reactor's is asked for before there was one with news.
        const extent = leader.reach.value ?? (await look());
        const pluginVersion = version === "" ? undefined : version;
        const limits = {
          items,
          bytes: PAGE_BYTES_MAX,
          withPayload,
          pluginVersion,
          withInside,
          onlyFailedInside,
        };
        const page = await read({ store, extent, look }, limits);
        const end = page.isCaughtUp && extent.isOver;
        const isNews = page.next !== from || !page.isCaughtUp || end;
        if (!isNews && looks > 1) await sleep(clock, AGAIN_MS, gone);
        const wait = { clock, waitMs: endMs - clock.monotonicMs(), signal: gone };
        if (isNews || !(await leader.reach.until((reach) => isBeyond(reach, extent), wait)))
          return {
            coordinator: leader.envelope,
            results: page.items.map((item) => writeResult(item, withPayload)),
            after: page.next,
            caughtUp: page.isCaughtUp,
            end,
          };
      }
    },
  };
}

function isBeyond(reach: RunReach, { nextCompletion, isOver }: LedgerExtent): boolean {
  return reach.nextCompletion > nextCompletion || reach.isOver !== isOver;
}

interface Reader {
  /** Where it begins, as a cursor. */
  readonly from: string;
  readonly read: (source: ResultSource, limits: PageLimits) => Promise<ResultPage<string>>;
}

function readerOf(order: ResultOrder, after: string): Reader {
  switch (order) {
    case ResultOrder.INPUT: {
      const from = readInputCursor(after);
      const text = (next: number): string => `i${next}`;
      return {
        from: text(from),
        read: async (source, limits) => {
          const page = await readByInput(source, from, limits);
          return { ...page, next: text(page.next) };
        },
      };
    }
    case ResultOrder.COMPLETION: {
      const from = readCompletionCursor(after);
      const text = ({ record, at }: CompletionCursor): string => `c${record}.${at}`;
      return {
        from: text(from),
        read: async (source, limits) => {
          const page = await readByCompletion(source, from, limits);
          return { ...page, next: text(page.next) };
        },
      };
    }
    default:
      return refuse("ListResults", "order is neither that of input nor that of completion");
  }
}

function readInputCursor(after: string): number {
  if (after === "") return 0;
  const match = /^i(\d{1,15})$/.exec(after);
  return match === null ? refuseCursor() : Number(match[1]);
}

function readCompletionCursor(after: string): CompletionCursor {
  if (after === "") return { record: 0, at: 0 };
  const match = /^c(\d{1,15})\.(\d{1,15})$/.exec(after);
  return match === null ? refuseCursor() : { record: Number(match[1]), at: Number(match[2]) };
}

function refuseCursor(): never {
  return refuse("ListResults", "after is not what an answer in this order has said");
}

const OUTCOMES: Readonly<Record<FailureClass, OutcomeClass>> = {
  error: OutcomeClass.ERROR,
  timeout: OutcomeClass.TIMEOUT,
  crash: OutcomeClass.CRASH,
  too_large: OutcomeClass.TOO_LARGE,
  // Its workers were lost, in the end.
  poison: OutcomeClass.LOST,
  cancelled: OutcomeClass.CANCELLED,
};

const NOTHING = new Uint8Array();

/** Whole, with each of its fields, so that nothing is copied field by field on its way out. */
export function writeResult({ place, item, final }: FinalItem, withPayload: boolean): ItemResult {
  const { record } = final;
  const failed = final.kind === "failed" ? final.record : undefined;
  const done = final.kind === "done" ? final.record : undefined;
  return {
    $typeName: "rollout.v1.ItemResult",
    itemId: item.id,
    label: item.label,
    sequence: BigInt(sequenceOf(place)),
    outcome: failed === undefined ? OutcomeClass.SUCCESS : OUTCOMES[failed.class],
    output: done?.output ?? NOTHING,
    outputDigest: done?.digest ?? NOTHING,
    failureClass: failed?.class ?? "",
    errorMessage: failed?.message ?? "",
    response: failed?.response ?? NOTHING,
    attempt: record.attempt,
    workerId: ulidToBytes(record.worker),
    pluginVersion: record.pluginVersion,
    startedAtMs: BigInt(Math.round(record.startedAtWallMs)),
    durationMs: BigInt(Math.round(record.durationMs)),
    finishedAtMs: BigInt(Math.round(record.finishedAtWallMs)),
    payload: withPayload ? item.payload : NOTHING,
    ...(item.origin && { origin: create(ItemOriginSchema, writeOrigin(item.origin)) }),
  };
}
