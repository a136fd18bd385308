// Results, a page a call. They are read from the store beside the reactor, which is only asked how far the ledger reaches: a page
// costs the loop nothing but its decoding, a few items at a time.
import type { MessageInitShape } from "@bufbuild/protobuf";
import type { ServiceImpl } from "@connectrpc/connect";
import { ulidToBytes } from "../../base/ids.ts";
import type { ItemResultSchema, RunService } from "../../gen/rollout/v1/run_pb.ts";
import { ResultOrder } from "../../gen/rollout/v1/run_pb.ts";
import { OutcomeClass } from "../../gen/rollout/v1/work_pb.ts";
import type { Store } from "../../storage/store.ts";
import type { FinalItem } from "../read/stored-items.ts";
import type { FailureClass } from "../ledger/records.ts";
import { sequenceOf } from "../ledger/place.ts";
import type { PageLimits, ResultPage, ResultSource } from "../read/result-page.ts";
import type { CompletionCursor } from "../read/results-by-completion.ts";
import { readByCompletion } from "../read/results-by-completion.ts";
import { readByInput } from "../read/results-by-input.ts";
import type { LedgerExtent } from "../turn/run-view.ts";
import type { Leader } from "./leader.ts";
import { ask } from "./leader.ts";
import { refuse } from "./refusals.ts";

const PAGE_ITEMS_MAX = 1_000;
/** A single result may be larger; it comes alone then. */
const PAGE_BYTES_MAX = 2 * 2 ** 20;

export function results(leader: Leader, store: Store): Pick<ServiceImpl<typeof RunService>, "listResults"> {
  const look = (): Promise<LedgerExtent> => ask(leader, (answer) => ({ kind: "getExtent", answer }));
  return {
    async listResults({ order, after, limit, withPayload }) {
      const read = readerOf(order, after);
      const items = limit === 0 ? PAGE_ITEMS_MAX : Math.min(limit, PAGE_ITEMS_MAX);
      const extent = await look();
      const page = await read({ store, extent, look }, { items, bytes: PAGE_BYTES_MAX, withPayload });
      return {
        coordinator: leader.envelope,
        results: page.items.map((item) => writeResult(item, withPayload)),
        after: page.next,
        caughtUp: page.isCaughtUp,
        end: page.isCaughtUp && extent.isOver,
      };
    },
  };
}

type Read = (source: ResultSource, limits: PageLimits) => Promise<ResultPage<string>>;

function readerOf(order: ResultOrder, after: string): Read {
  switch (order) {
    case ResultOrder.INPUT: {
      const from = readInputCursor(after);
      return async (source, limits) => {
        const page = await readByInput(source, from, limits);
        return { ...page, next: `i${page.next}` };
      };
    }
    case ResultOrder.COMPLETION: {
      const from = readCompletionCursor(after);
      return async (source, limits) => {
        const page = await readByCompletion(source, from, limits);
        return { ...page, next: `c${page.next.record}.${page.next.at}` };
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

type WireResult = Exclude<MessageInitShape<typeof ItemResultSchema>, { $typeName: string }>;

export function writeResult({ place, item, final }: FinalItem, withPayload: boolean): WireResult {
  const { record } = final;
  return {
    itemId: item.id,
    label: item.label,
    sequence: BigInt(sequenceOf(place)),
    attempt: record.attempt,
    workerId: ulidToBytes(record.worker),
    pluginVersion: record.pluginVersion,
    startedAtMs: BigInt(Math.round(record.startedAtWallMs)),
    durationMs: BigInt(Math.round(record.durationMs)),
    finishedAtMs: BigInt(Math.round(record.finishedAtWallMs)),
    ...(withPayload && { payload: item.payload }),
    ...(final.kind === "done"
      ? { outcome: OutcomeClass.SUCCESS, output: final.record.output, outputDigest: final.record.digest }
      : {
          outcome: OUTCOMES[final.record.class],
          failureClass: final.record.class,
          errorMessage: final.record.message,
          response: final.record.response,
        }),
  };
}
