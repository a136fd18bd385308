import { expect } from "chai";
import { AsyncQueue } from "../../../src/base/async-queue.ts";

describe("an async queue", () => {
  it("takes no more than its capacity, and has room when items are read", async () => {
    const queue = new AsyncQueue<number>(2);
    expect([queue.push(1), queue.push(2), queue.push(3)]).to.deep.equal([true, true, false]);
    const reading = queue[Symbol.asyncIterator]();
    expect(await reading.next()).to.deep.equal({ value: 1, done: false });
    expect(queue.push(4)).to.equal(true);
  });

  it("takes no more than its weight, which what is being read counts for as well", async () => {
    const queue = new AsyncQueue<string>(10, { max: 6, weigh: ({ length }) => length });
    expect([queue.push("aaa"), queue.push("bbb"), queue.push("c")]).to.deep.equal([true, true, false]);
    const reading = queue[Symbol.asyncIterator]();
    expect(await reading.next()).to.deep.equal({ value: "aaa", done: false });
    expect([queue.push("dddd"), queue.push("ddd")]).to.deep.equal([false, true]);
  });

  it("takes one item into an empty queue, whatever it weighs", async () => {
    const queue = new AsyncQueue<string>(10, { max: 2, weigh: ({ length }) => length });
    expect([queue.push("large"), queue.push("x")]).to.deep.equal([true, false]);
    await queue[Symbol.asyncIterator]().next();
    expect(queue.push("large again")).to.equal(true);
  });

  it("gives what was pushed before its end, and then ends or throws", async () => {
    for (const failure of [undefined, new Error("broken")]) {
      const queue = new AsyncQueue<number>(2);
      queue.push(1);
      queue.end(failure);
      queue.end(new Error("the first call counts"));
      expect(queue.push(2)).to.equal(false);
      const seen: unknown[] = [];
      try {
        for await (const item of queue) seen.push(item);
      } catch (error) {
        seen.push(error);
      }
      expect(seen).to.deep.equal(failure === undefined ? [1] : [1, failure]);
    }
  });
});
