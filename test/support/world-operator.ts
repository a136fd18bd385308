// An operator in a world: the services of operators over their own messages, without a network between.
import type { Client } from "@connectrpc/connect";
import { ConnectError, createClient, createRouterTransport } from "@connectrpc/connect";
import { newUlid, ulidToBytes } from "../../src/base/ids.ts";
import type { RunId } from "../../src/base/ids.ts";
import { systemClock } from "../../src/base/clock.ts";
import { systemRandom } from "../../src/base/random.ts";
import { itemIdOf } from "../../src/coordinator/ledger/place.ts";
import { operatorService } from "../../src/coordinator/rpc/operator-service.ts";
import type { ListResultsResponse, ResultOrder } from "../../src/gen/rollout/v1/run_pb.ts";
import { OperatorService } from "../../src/gen/rollout/v1/run_pb.ts";
import { silentLogger } from "../../src/observe/log.ts";
import type { Store } from "../../src/storage/store.ts";
import { handlerErrors, rowOnTheWire } from "../../src/transport/errors.ts";
import { VirtualClock } from "./virtual-clock.ts";
import { TASK_DIGEST } from "./world.ts";
import type { World } from "./world.ts";

type Run = Client<typeof OperatorService>;

/** The id of the item that `submit` makes of a text. */
function idOf(text: string): Uint8Array {
  return itemIdOf({ taskDigest: TASK_DIGEST, payload: Buffer.from(text), key: "", sampleIndex: 0 });
}

/** The same as people write it. */
export function hexOf(text: string): string {
  return Buffer.from(idOf(text)).toString("hex");
}

export class WorldOperator {
  /** By which calls wait. */
  readonly clock = new VirtualClock();
  /** The inputs that its calls were for the reactor, by kind. */
  readonly pushed: string[] = [];
  readonly #world: World;
  readonly #run: Run;
  #stepped: Promise<void> = Promise.resolve();

  /** `store` is what is read for answers; the world's own unless said. */
  constructor(world: World, store: Store = world.store) {
    this.#world = world;
    const leader = world.leader((input) => {
      this.pushed.push(input.kind);
      this.#stepped = this.#stepped.then(() => world.step(input));
      return true;
    });
    const transport = createRouterTransport(
      (router) => void router.service(OperatorService, operatorService(leader, store, { clock: this.clock })),
      { router: { interceptors: [handlerErrors(silentLogger)] } },
    );
    this.#run = createClient(OperatorService, transport);
  }

  /** Asks, and waits until the coordinator has done what follows. Throws the row that was said. */
  async ask<Answer>(question: (run: Run) => Promise<Answer>): Promise<Answer> {
    try {
      return await question(this.#run);
    } catch (error) {
      throw rowOnTheWire(ConnectError.from(error)) ?? error;
    } finally {
      await this.#stepped;
      await this.#world.settle();
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
