import { expect } from "chai";
import { AsyncQueue } from "../../../src/base/async-queue.ts";
import { ReplayedInput } from "../../../src/transport/replayed-input.ts";
import { eventually } from "../../support/eventually.ts";
import { rejectionOf } from "../../support/rejection.ts";

const iterate = (input: AsyncIterable<number>): AsyncIterator<number> => input[Symbol.asyncIterator]();

async function take(from: AsyncIterator<number>, count: number): Promise<number[]> {
  const taken: number[] = [];
  while (taken.length < count) {
    const next = await from.next();
    if (next.done === true) break;
    taken.push(next.value);
  }
  return taken;
}

describe("the input of a stream that looks for the leader", () => {
  let queue: AsyncQueue<number>;
  let input: ReplayedInput<number>;

  beforeEach(() => {
    queue = new AsyncQueue<number>(1_000);
    input = new ReplayedInput(queue);
  });

  it("is the same for each coordinator, from its first message on", async () => {
    queue.push(1);
    queue.push(2);
    expect(await take(iterate(input.again()), 2)).to.deep.equal([1, 2]);
    queue.push(3);
    expect(await take(iterate(input.again()), 3)).to.deep.equal([1, 2, 3]);
  });

  it("goes to the coordinator of now, though the one before it was waiting", async () => {
    const before = iterate(input.again());
    const waiting = before.next();
    const now = iterate(input.again());
    const next = now.next();
    queue.push(1);
    expect(await waiting).to.deep.equal({ done: true, value: undefined });
    expect((await next).value).to.equal(1);
  });

  it("goes on behind what was sent when it is settled, and nothing comes twice", async () => {
    const now = iterate(input.again());
    queue.push(1);
    await take(now, 1);
    const waiting = now.next();
    input.settle();
    for (const number of [2, 3, 4]) queue.push(number);
    expect((await waiting).value).to.equal(2);
    expect(await take(now, 2)).to.deep.equal([3, 4]);
    expect(input.isWhole).to.equal(false);
  });

  it("loses nothing that was read for a coordinator that had not sent it yet", async () => {
    queue.push(1);
    const before = iterate(input.again());
    await take(before, 1);
    void before.next();
    const now = iterate(input.again());
    await take(now, 1);
    input.settle();
    queue.push(2);
    expect((await now.next()).value).to.equal(2);
  });

  it("is kept up to a bound: behind it no other coordinator can be sent it", async () => {
    for (let number = 0; number < 80; number++) queue.push(number);
    const now = iterate(input.again());
    expect((await take(now, 80)).at(-1)).to.equal(79);
    expect(input.isWhole).to.equal(false);
  });

  it("ends for each coordinator as its source does", async () => {
    queue.push(1);
    queue.end();
    expect(await take(iterate(input.again()), 5)).to.deep.equal([1]);
    expect(await take(iterate(input.again()), 5)).to.deep.equal([1]);
  });

  it("breaks as its source does", async () => {
    const broken = new Error("broken");
    queue.end(broken);
    expect(await rejectionOf(iterate(input.again()).next())).to.equal(broken);
  });

  it("leaves its source alone when one coordinator is left, and ends it when nobody is asked any more", async () => {
    const before = iterate(input.again());
    await before.return?.();
    expect(queue.push(1)).to.equal(true);
    expect(await take(iterate(input.again()), 1)).to.deep.equal([1]);
    input.end();
    await eventually("the source is told", () => !queue.push(2));
  });
});
