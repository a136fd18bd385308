import { expect } from "chai";
import fc from "fast-check";
import { AssertionFailed } from "../../../../src/base/assert.ts";
import { attemptKey, Backlog } from "../../../../src/worker/work/backlog.ts";
import { assignedItem } from "../../../support/assigned-item.ts";

describe("the backlog", () => {
  it("gives the highest priority first, and of one priority what came first", () => {
    const backlog = new Backlog(10);
    for (const [number, priority] of [
      [1, 0],
      [2, 5],
      [3, 0],
      [4, -3],
      [5, 5],
    ] as const)
      backlog.add(assignedItem(number, { priority }));
    expect([...backlog].map(({ itemId }) => itemId[0])).to.deep.equal([2, 5, 1, 3, 4]);
    const taken = Array.from({ length: 6 }, () => backlog.next()?.itemId[0]);
    expect(taken).to.deep.equal([2, 5, 1, 3, 4, undefined]);
  });

  it("hands back items by their ids, each once", () => {
    const backlog = new Backlog(10);
    const first = assignedItem(1);
    backlog.add(first);
    expect(backlog.has(first.key)).to.equal(true);
    expect(backlog.remove(first.key)).to.equal(first);
    expect(backlog.remove(first.key)).to.equal(undefined);
    expect([backlog.size, backlog.next()]).to.deep.equal([0, undefined]);
  });

  it("takes no more than it has room for, and nothing twice", () => {
    const backlog = new Backlog(2);
    backlog.add(assignedItem(1));
    expect(() => backlog.add(assignedItem(1))).to.throw(AssertionFailed, "once");
    backlog.add(assignedItem(2));
    expect(() => backlog.add(assignedItem(3))).to.throw(AssertionFailed, "C8");
  });

  it("tells attempts apart, also those whose numbers run together", () => {
    const id = new Uint8Array(32);
    expect(attemptKey(id, 1, 1n)).not.to.equal(attemptKey(id, 11, 1n));
    expect(attemptKey(id, 1, 1n), "given out again after a loss of power").not.to.equal(
      attemptKey(id, 1, 2n),
    );
    const other = Uint8Array.from(id, (_, at) => (at === 31 ? 0x31 : 0));
    expect(attemptKey(other, 1, 1n)).not.to.equal(attemptKey(id, 11, 1n));
  });

  it("behaves as a sorted list does, whatever is added and removed", () => {
    const command = fc.oneof(
      fc.record({ kind: fc.constant("add" as const), priority: fc.integer({ min: -2, max: 2 }) }),
      fc.record({ kind: fc.constant("next" as const) }),
      fc.record({ kind: fc.constant("remove" as const), at: fc.nat(20) }),
    );
    fc.assert(
      fc.property(fc.array(command, { maxLength: 60 }), (commands) => {
        const backlog = new Backlog(100);
        let model: { key: string; priority: number }[] = [];
        let added = 0;
        for (const one of commands) {
          if (one.kind === "add") {
            const assigned = assignedItem(added++, { priority: one.priority });
            backlog.add(assigned);
            model.push(assigned);
          } else {
            const sorted = model.toSorted((left, right) => right.priority - left.priority);
            const [wanted] = one.kind === "next" ? sorted : [model[one.at]];
            const taken = one.kind === "next" ? backlog.next() : backlog.remove(wanted?.key ?? "none");
            expect(taken?.key).to.equal(wanted?.key);
            model = model.filter(({ key }) => key !== wanted?.key);
          }
          expect(backlog.size).to.equal(model.length);
        }
      }),
    );
  });
});
