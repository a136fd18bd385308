import { expect } from "chai";
import { keyedPlaceOf, placeOf } from "../../../../src/coordinator/ledger/place.ts";
import type { Place } from "../../../../src/coordinator/ledger/place.ts";
import { isParticular, isUnharmed, Shelf } from "../../../../src/coordinator/ledger/shelf.ts";
import type { Taker } from "../../../../src/coordinator/ledger/shelf.ts";
import { workerId } from "../../../support/world-worker.ts";

const [one, two] = [workerId(1), workerId(2)];

interface Item {
  readonly key: Place;
  readonly weight: number;
  readonly returned: { readonly budgets: typeof UNHARMED & { readonly failedBy: string } } | null;
  readonly checkpoint: null;
  readonly keyed?: { readonly stateVersion: number };
}

const UNHARMED = { charged: 0, lost: 0, isApart: false, tried: "" };

/** Places in the order of their names. */
const [a, b, c, d] = [1, 2, 3, 4].map((sequence) => placeOf(0, sequence)) as [Place, Place, Place, Place];
const at = (number: number): Place => placeOf(0, 100 + number);

function item(key: Place, failedBy: string, { weight = 1 } = {}): Item {
  return { key, weight, returned: { budgets: { ...UNHARMED, failedBy } }, checkpoint: null };
}

const taker = (worker = one, parts: Partial<Taker> = {}): Taker => ({
  worker,
  isOnlyOne: false,
  nowMs: 0,
  ...parts,
});

describe("the shelf of items that are not for everybody", () => {
  let shelf: Shelf<Item>;

  beforeEach(() => {
    shelf = new Shelf();
  });

  it("is for items that a worker has failed", () => {
    expect(isParticular({ key: a, weight: 1, returned: null, checkpoint: null })).to.equal(false);
    expect(isParticular(item(a, ""))).to.equal(false);
    expect(isParticular(item(a, one))).to.equal(true);
  });

  it("gives a worker the first of the items that other workers have failed", () => {
    for (const [key, by] of [
      [c, one],
      [a, two],
      [d, two],
      [b, one],
    ] as const)
      shelf.put(item(key, by), 0);
    expect([shelf.peek(taker(one))?.key, shelf.peek(taker(two))?.key]).to.deep.equal([a, b]);
    shelf.remove(a);
    expect([shelf.peek(taker(one))?.key, shelf.peek(taker(two))?.key]).to.deep.equal([d, b]);
    expect(shelf.peek(taker(one, { isOnlyOne: true }))?.key, "all of it, if there is nobody else").to.equal(
      b,
    );
  });

  it("gives a worker an item that it has failed itself after a minute", () => {
    shelf.put(item(a, one), 5_000);
    expect(shelf.peek(taker(one, { nowMs: 64_999 }))).to.equal(undefined);
    expect(shelf.peek(taker(one, { nowMs: 65_000 }))?.key).to.equal(a);
  });

  it("gives an item that no worker has failed to any worker, in order with the rest", () => {
    shelf.put(item(b, ""), 0);
    shelf.put(item(a, one), 0);
    expect([shelf.peek(taker(one))?.key, shelf.peek(taker(two))?.key]).to.deep.equal([b, a]);
  });

  it("has items with keys in order of submission among the others, and none of them for who takes no keys", () => {
    shelf.put(item(c, two), 0);
    shelf.put(item(keyedPlaceOf(0, 2), two), 0);
    shelf.put(item(a, two), 0);
    const taken: Place[] = [];
    for (let next = shelf.peek(taker()); next !== undefined; next = shelf.peek(taker())) {
      taken.push(next.key);
      shelf.remove(next.key);
    }
    expect(taken).to.deep.equal([a, keyedPlaceOf(0, 2), c]);
    shelf.put(item(keyedPlaceOf(0, 2), two), 0);
    shelf.put(item(d, two), 0);
    expect(shelf.peek(taker(one, { takesKeys: false }))?.key).to.equal(d);
  });

  it("gives an item with a state of its key to a worker that goes on from that version, and to none of an older one", () => {
    shelf.put({ ...item(keyedPlaceOf(0, 2), two), keyed: { stateVersion: 2 } }, 0);
    const keyOf = (stateVersion: number): Place | undefined => shelf.peek(taker(one, { stateVersion }))?.key;
    expect([1, 2, 3].map(keyOf)).to.deep.equal([undefined, keyedPlaceOf(0, 2), keyedPlaceOf(0, 2)]);
  });

  it("gives a worker the item that it has failed at once where no other worker goes on from its state", () => {
    shelf.put({ ...item(keyedPlaceOf(0, 2), one), keyed: { stateVersion: 2 } }, 0);
    const keyOf = (othersUpTo: number): Place | undefined => shelf.peek(taker(one, { othersUpTo }))?.key;
    expect([1, 2, 3].map(keyOf)).to.deep.equal([keyedPlaceOf(0, 2), undefined, undefined]);
  });

  it("gives a worker that only tries a release the first item that the release may try", () => {
    const failed = item(a, two);
    const budgets = { ...UNHARMED, charged: 1, failedBy: two };
    shelf.put({ ...failed, returned: { budgets } }, 0);
    shelf.put(item(b, two), 0);
    const triesOnly = { version: "2", trial: "this" };
    expect([taker(one), taker(one, { triesOnly })].map((each) => shelf.peek(each)?.key)).to.deep.equal([
      a,
      b,
    ]);
  });

  it("has items that a release may try: of none was an attempt charged or lost, and that release has not tried them", () => {
    const behind = [
      {},
      { charged: 1 },
      { lost: 1 },
      { isApart: true },
      { tried: "this" },
      { tried: "other" },
    ];
    expect(behind.map((parts) => isUnharmed({ ...UNHARMED, ...parts }, "this"))).to.deep.equal([
      ...[true, false, false, false],
      ...[false, true],
    ]);
  });

  it("lists its items, and forgets removed ones", () => {
    shelf.put(item(a, one), 0);
    shelf.put(item(b, ""), 0);
    expect([shelf.size, shelf.has(a), shelf.has(b), shelf.has(c)]).to.deep.equal([2, true, true, false]);
    for (const key of [a, b, a, c]) shelf.remove(key);
    expect([shelf.size, shelf.has(a), shelf.peek(taker(two))]).to.deep.equal([0, false, undefined]);
  });

  it("has room for many until it is half full", () => {
    shelf.put(item(a, one, { weight: 8 * 2 ** 20 }), 0);
    expect(shelf.isLow).to.equal(true);
    shelf.put(item(b, one), 0);
    expect([shelf.isLow, shelf.isFull]).to.deep.equal([false, false]);
    shelf.remove(a);
    for (let number = 0; number < 2_048; number++) shelf.put(item(at(number), one), 0);
    expect([shelf.isLow, shelf.isFull]).to.deep.equal([false, false]);
  });

  it("is full by number and by weight, and has room again (C8)", () => {
    for (let number = 0; number < 4_096; number++) {
      expect(shelf.isFull).to.equal(false);
      shelf.put(item(at(number), one), 0);
    }
    expect(shelf.isFull).to.equal(true);
    shelf.remove(at(0));
    expect(shelf.isFull).to.equal(false);
    shelf.put(item(at(5_000), one, { weight: 16 * 2 ** 20 }), 0);
    shelf.remove(at(1));
    expect(shelf.isFull).to.equal(true);
    shelf.remove(at(5_000));
    expect(shelf.isFull).to.equal(false);
  });
});
