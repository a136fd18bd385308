import { expect } from "chai";
import fc from "fast-check";
import {
  insidePlaceOf,
  isBeside,
  isInside,
  delayedKey,
  isKeyed,
  keyedPlaceOf,
  orderOf,
  isPlace,
  laneEnd,
  placeOf,
  placeOfDelayed,
  PRIORITY_MAX,
  PRIORITY_MIN,
  priorityOf,
  sequenceOf,
} from "../../../../src/coordinator/ledger/place.ts";

const priority = fc.integer({ min: PRIORITY_MIN, max: PRIORITY_MAX });
const sequence = fc.integer({ min: 0, max: 2 ** 46 - 1 });

describe("a place", () => {
  it("sorts as text by priority, highest first, then by submission", () => {
    fc.assert(
      fc.property(priority, sequence, priority, sequence, (p1, s1, p2, s2) => {
        const expected = p1 === p2 ? s1 - s2 : p2 - p1;
        const [one, other] = [placeOf(p1, s1), placeOf(p2, s2)];
        expect(one < other).to.equal(expected < 0);
        expect(one === other).to.equal(expected === 0);
      }),
    );
  });

  it("gives back the priority and the sequence that it was made of", () => {
    fc.assert(
      fc.property(priority, sequence, (lane, number) => {
        const place = placeOf(lane, number);
        expect([isPlace(place), priorityOf(place), sequenceOf(place)]).to.deep.equal([true, lane, number]);
      }),
    );
  });

  it("looks the same for ever", () => {
    expect([placeOf(100, 0), placeOf(0, 255), placeOf(-100, 2 ** 40)]).to.deep.equal([
      "00000000000000",
      "640000000000ff",
      "c8010000000000",
    ]);
  });

  it("lies before the end of its lane, and after the ends of higher ones", () => {
    expect(placeOf(3, 2 ** 46 - 1) < laneEnd(3)).to.equal(true);
    expect(placeOf(3, 0) > laneEnd(4)).to.equal(true);
  });

  it("sorts behind all places without a key in its lane when its item has one, and its text shows that", () => {
    fc.assert(
      fc.property(priority, sequence, (lane, number) => {
        const place = keyedPlaceOf(lane, number);
        expect([isPlace(place), isKeyed(place), isKeyed(placeOf(lane, number))]).to.deep.equal([
          true,
          true,
          false,
        ]);
        expect([priorityOf(place), sequenceOf(place)]).to.deep.equal([lane, number]);
        expect(place >= laneEnd(lane)).to.equal(true);
        expect(lane === PRIORITY_MIN || place < placeOf(lane - 1, 0)).to.equal(true);
      }),
    );
  });

  it("of an item from inside is apart from those of submitted items, and its text shows that", () => {
    fc.assert(
      fc.property(priority, sequence, (lane, number) => {
        const place = insidePlaceOf(lane, number);
        expect([isPlace(place), isKeyed(place), isInside(place)]).to.deep.equal([true, true, true]);
        expect([isInside(keyedPlaceOf(lane, number)), isInside(placeOf(lane, number))]).to.deep.equal([
          false,
          false,
        ]);
        expect([priorityOf(place), sequenceOf(place)]).to.deep.equal([lane, number]);
        expect(isBeside(place, keyedPlaceOf(lane, number))).to.equal(false);
      }),
    );
  });

  it("lies in one stretch with those of its priority and its kind alone", () => {
    const few = fc.tuple(
      fc.integer({ min: 0, max: 1 }),
      fc.constantFrom(placeOf, keyedPlaceOf, insidePlaceOf),
    );
    fc.assert(
      fc.property(few, few, ([p1, make1], [p2, make2]) => {
        expect(isBeside(make1(p1, 1), make2(p2, 2))).to.equal(p1 === p2 && make1 === make2);
      }),
    );
  });

  it("has an order among all others, whether their items have keys or not", () => {
    const any = fc.tuple(priority, sequence, fc.constantFrom(placeOf, keyedPlaceOf, insidePlaceOf));
    fc.assert(
      fc.property(any, any, ([p1, s1, make1], [p2, s2, make2]) => {
        const [one, other] = [make1(p1, s1), make2(p2, s2)];
        const expected = p1 === p2 ? s1 - s2 : p2 - p1;
        expect(orderOf(one) < orderOf(other)).to.equal(expected < 0);
        expect(orderOf(one) === orderOf(other)).to.equal(expected === 0);
      }),
    );
  });

  it("is not read from a text of another length or with other letters", () => {
    for (const text of ["", "0", "64000000000Z", "640000000000fg", "640000000000ff0"])
      expect(isPlace(text), text).to.equal(false);
  });

  it("is refused beyond the priorities that there are", () => {
    for (const outside of [PRIORITY_MAX + 1, PRIORITY_MIN - 1])
      expect(() => placeOf(outside, 0)).to.throw(/no such priority/);
  });

  it("waits behind what is due earlier, whatever the places", () => {
    const [early, late] = [delayedKey(999, placeOf(-100, 9)), delayedKey(1_000.2, placeOf(100, 0))];
    expect(early < late).to.equal(true);
    expect([placeOfDelayed(early), placeOfDelayed(late)]).to.deep.equal([placeOf(-100, 9), placeOf(100, 0)]);
  });

  it("is due when the wait is over and not before", () => {
    const place = placeOf(0, 1);
    expect(delayedKey(1_000.2, place)).to.equal(delayedKey(1_001, place));
  });
});
