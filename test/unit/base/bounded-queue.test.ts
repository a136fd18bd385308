import { expect } from "chai";
import fc from "fast-check";
import { BoundedQueue } from "../../../src/base/bounded-queue.ts";

describe("a bounded queue", () => {
  it("gives back in the order of arrival, at most as many as asked for", () => {
    const queue = new BoundedQueue<string>(5);
    for (const item of ["a", "b", "c"]) expect(queue.push(item)).to.equal(true);
    expect([queue.take(2), queue.size, queue.take(9), queue.take(1)]).to.deep.equal([
      ["a", "b"],
      1,
      ["c"],
      [],
    ]);
  });

  it("says so when it is full, and takes nothing then", () => {
    const queue = new BoundedQueue<number>(2);
    expect([queue.push(1), queue.push(2), queue.push(3), queue.size]).to.deep.equal([true, true, false, 2]);
    expect(queue.take(1)).to.deep.equal([1]);
    expect([queue.push(4), queue.push(5)]).to.deep.equal([true, false]);
    expect(queue.take(9)).to.deep.equal([2, 4]);
  });

  it("with no room takes nothing", () => {
    expect(new BoundedQueue<number>(0).push(1)).to.equal(false);
  });

  it("behaves like a list that is cut off at its capacity", () => {
    const command = fc.oneof(
      fc.record({ kind: fc.constant("push" as const), item: fc.nat() }),
      fc.record({ kind: fc.constant("take" as const), max: fc.integer({ min: 0, max: 6 }) }),
    );
    fc.assert(
      fc.property(
        fc.integer({ min: 1, max: 5 }),
        fc.array(command, { maxLength: 100 }),
        (capacity, commands) => {
          const queue = new BoundedQueue<number>(capacity);
          let model: number[] = [];
          for (const one of commands) {
            if (one.kind === "push") {
              const fits = model.length < capacity;
              expect(queue.push(one.item)).to.equal(fits);
              if (fits) model.push(one.item);
            } else {
              expect(queue.take(one.max)).to.deep.equal(model.slice(0, one.max));
              model = model.slice(one.max);
            }
            expect(queue.size).to.equal(model.length);
          }
        },
      ),
      { numRuns: 500 },
    );
  });
});
