// Items of one key that have failed and are retried: in order of submission, whatever the order in which they come back.
import { expect } from "chai";
import { assert } from "../../../../src/base/assert.ts";
import { failedItems } from "./failed-items.ts";
import { World } from "../../../support/world.ts";
import { successOf } from "../../../support/world-worker.ts";
import type { WorldWorker } from "../../../support/world-worker.ts";

const COUNT = 5;
/** Taken back in this order; the last one is the head of its key until then. */
const ORDERS = [
  [0, 1, 2, 4, 3],
  [4, 3, 2, 1, 0],
  [3, 4, 0, 2, 1],
];

async function executed(world: World, worker: WorldWorker): Promise<string[]> {
  const texts: string[] = [];
  for (let item = worker.held[0]; item !== undefined; item = worker.held[0]) {
    texts.push(`${item.text}#${item.attempt}`);
    await worker.report([item], successOf(item));
    await worker.ask(1);
    await world.settle();
  }
  return texts;
}

describe("items of a key that are retried", () => {
  for (const order of ORDERS)
    it(`go in order of submission, retried as ${order.join(", ")}`, async () => {
      const world = await World.start({ keys: { totalPartitions: 16 } });
      const worker = await world.worker(1, { slots: 1, credit: 1 });
      const texts = Array.from({ length: COUNT }, (_, at) => `a ${at}`);
      await world.submit(texts, { keyOf: () => "a" });
      for (const text of texts) {
        const [item] = worker.held;
        assert(item?.text === text, "one after the other");
        await worker.report([item], { kind: "too_large", message: "too large" });
        // Nothing is given out from here on before all are back.
        if (text === texts.at(-1)) break;
        await worker.ask(1);
        await world.ask((answer) => ({ kind: "steerKeys", action: "skip", keys: ["a"], answer }));
        await world.settle();
      }
      const items = await failedItems(world);
      for (const at of order) {
        const failed = items[at];
        assert(failed !== undefined, "all of them have failed");
        await world.ask((answer) => ({ kind: "retry", failed: [failed], answer }));
      }
      await world.settle();
      await worker.ask(1);
      expect(await executed(world, worker)).to.deep.equal(texts.map((text) => `${text}#2`));
    });
});
