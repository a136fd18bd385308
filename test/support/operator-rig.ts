// An operator at a ledger's harness: the services of operators over their own messages, without a network between.
import type { Client } from "@connectrpc/connect";
import { ConnectError, createClient, createRouterTransport } from "@connectrpc/connect";
import { epoch, newUlid } from "../../src/base/ids.ts";
import type { RunId, StoreId } from "../../src/base/ids.ts";
import { ulidToBytes } from "../../src/base/ids.ts";
import { systemClock } from "../../src/base/clock.ts";
import { systemRandom } from "../../src/base/random.ts";
import { LIMITS } from "../../src/config/limits.ts";
import { itemIdOf } from "../../src/coordinator/ledger/item-id.ts";
import { envelopeOf } from "../../src/coordinator/rpc/messages.ts";
import type { Leader } from "../../src/coordinator/rpc/leader.ts";
import { runService } from "../../src/coordinator/rpc/run-service.ts";
import type { ListResultsResponse, ResultOrder } from "../../src/gen/rollout/v1/run_pb.ts";
import { RunService } from "../../src/gen/rollout/v1/run_pb.ts";
import { silentLogger } from "../../src/observe/log.ts";
import type { Store } from "../../src/storage/store.ts";
import { handlerErrors, rowOnTheWire } from "../../src/transport/errors.ts";
import { TASK_DIGEST } from "./ledger-harness.ts";
import type { LedgerHarness } from "./ledger-harness.ts";

type Run = Client<typeof RunService>;

/** The id of the item that `submit` makes of a text. */
export function idOf(text: string): Uint8Array {
  return itemIdOf({ taskDigest: TASK_DIGEST, payload: Buffer.from(text), key: "", sampleIndex: 0 });
}

/** The same as people write it. */
export function hexOf(text: string): string {
  return Buffer.from(idOf(text)).toString("hex");
}

export class OperatorRig {
  readonly #ledger: LedgerHarness;
  readonly #run: Run;
  #stepped: Promise<void> = Promise.resolve();

  /** `store` is what is read for answers; the ledger's own unless said. */
  constructor(ledger: LedgerHarness, store: Store = ledger.store) {
    this.#ledger = ledger;
    const leader: Leader = {
      envelope: envelopeOf(epoch(0), newUlid<StoreId>(systemClock, systemRandom)),
      ...{ workersMax: 10, inboxMax: 10, limits: LIMITS, address: "here" },
      push: (input) => {
        this.#stepped = this.#stepped.then(() => ledger.step(input));
        return true;
      },
      stopping: new AbortController().signal,
      onHigherEpoch: () => undefined,
    };
    const transport = createRouterTransport(
      (router) => void router.service(RunService, runService(leader, store, undefined)),
      { router: { interceptors: [handlerErrors(silentLogger)] } },
    );
    this.#run = createClient(RunService, transport);
  }

  /** Asks, and waits until the coordinator has done what follows. Throws the row that was said. */
  async ask<Answer>(question: (run: Run) => Promise<Answer>): Promise<Answer> {
    try {
      return await question(this.#run);
    } catch (error) {
      throw rowOnTheWire(ConnectError.from(error)) ?? error;
    } finally {
      await this.#stepped;
      await this.#ledger.settle();
    }
  }

  /** Each text is an item, with the text as its label when `isLabelled`. */
  submit(texts: readonly string[], { priority = 0, isLabelled = false } = {}): Promise<unknown> {
    const items = texts.map((text) => {
      return { payload: Buffer.from(text), priority, label: isLabelled ? `label of ${text}` : "" };
    });
    const submissionId = ulidToBytes(newUlid<RunId>(systemClock, systemRandom));
    const request = { submissionId, batchNumber: 1n, taskDigest: TASK_DIGEST, items };
    return this.ask((run) => run.submit(request));
  }

  /** Pages until nothing follows for now. */
  async readAll(
    order: ResultOrder,
    { after = "", limit = 0 }: { readonly after?: string; readonly limit?: number } = {},
  ): Promise<{ pages: ListResultsResponse[]; texts: string[]; last: ListResultsResponse }> {
    const pages: ListResultsResponse[] = [];
    for (let cursor = after; ;) {
      const from = cursor;
      const page = await this.ask((run) => run.listResults({ order, after: from, limit, withPayload: true }));
      pages.push(page);
      cursor = page.after;
      if (page.caughtUp)
        return { pages, last: page, texts: pages.flatMap(({ results }) => results.map(textOf)) };
    }
  }
}

function textOf({ payload }: { readonly payload: Uint8Array }): string {
  return Buffer.from(payload).toString();
}
