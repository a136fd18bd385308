import { expect } from "chai";
import fc from "fast-check";
import { Credit } from "../../../../src/worker/link/session-credit.ts";

describe("the credit of a session", () => {
  it("asks for all the room there is, once", () => {
    const credit = new Credit(0);
    expect([credit.ask(4, 1, true), credit.ask(4, 1, true), credit.outstanding]).to.deep.equal([4, 0, 4]);
  });

  it("asks again for what was given and has gone", () => {
    const credit = new Credit(0);
    credit.ask(4, 1, true);
    expect(credit.spend(3)).to.equal(true);
    expect([credit.ask(1, 1, false), credit.ask(3, 1, false)]).to.deep.equal([0, 2]);
  });

  it("waits until it is worth a frame, unless nothing waits", () => {
    const credit = new Credit(0);
    expect([credit.ask(1, 2, false), credit.ask(2, 2, false)]).to.deep.equal([0, 2]);
    expect(credit.ask(3, 2, true)).to.equal(1);
  });

  it("knows that more was given than asked for, and then takes nothing", () => {
    const credit = new Credit(0);
    credit.ask(2, 1, true);
    expect([credit.spend(3), credit.outstanding]).to.deep.equal([false, 2]);
  });

  it("asks for less: what was on its way comes all the same, and what is asked for after that counts from there", () => {
    const credit = new Credit(7);
    expect([credit.ask(100, 1, true), credit.upTo]).to.deep.equal([100, 107]);
    expect([credit.lower(100), credit.lower(10), credit.upTo, credit.lower(10)]).to.deep.equal([
      false,
      true,
      17,
      false,
    ]);
    expect([credit.spend(60), credit.outstanding, credit.upTo]).to.deep.equal([true, 0, 67]);
    expect([credit.ask(5, 1, true), credit.upTo, credit.outstanding]).to.deep.equal([5, 72, 5]);
    expect([credit.spend(5), credit.outstanding]).to.deep.equal([true, 0]);
    expect(credit.spend(41), "beyond all that was ever asked for").to.equal(false);
  });

  it("agrees with what a coordinator has left of it, whatever is on its way in either direction", () => {
    const move = fc.oneof(
      fc.record({ kind: fc.constant("ask" as const), room: fc.nat(40) }),
      fc.record({ kind: fc.constant("lower" as const), room: fc.nat(40) }),
      fc.record({ kind: fc.constant("hear" as const), room: fc.constant(0) }),
      fc.record({ kind: fc.constant("give" as const), room: fc.nat(40) }),
      fc.record({ kind: fc.constant("take" as const), room: fc.nat(40) }),
    );
    fc.assert(
      fc.property(fc.array(move, { maxLength: 80 }), (moves) => {
        const credit = new Credit(0);
        let [given, taken, upTo] = [0, 0, 0];
        const said: number[] = [];
        const hear = (): void => void (upTo = said.shift() ?? upTo);
        const take = (most: number): void => {
          const came = Math.min(most, given - taken);
          taken += came;
          expect(credit.spend(came), "all of it was asked for").to.equal(true);
        };
        for (const { kind, room } of moves) {
          if (kind === "ask" && credit.ask(room, 1, true) > 0) said.push(credit.upTo);
          if (kind === "lower" && credit.lower(room)) said.push(credit.upTo);
          if (kind === "hear") hear();
          if (kind === "give") given += Math.min(room, Math.max(0, upTo - given));
          if (kind === "take") take(room);
        }
        while (said.length > 0) hear();
        take(Infinity);
        expect(Math.max(0, upTo - given)).to.equal(credit.outstanding);
      }),
    );
  });

  it("never asks for more than there is room for, whatever is given, started and ended", () => {
    const capacity = 8;
    const move = fc.oneof(
      fc.record({ kind: fc.constant("give" as const), count: fc.nat(capacity + 2) }),
      fc.record({ kind: fc.constant("end" as const), count: fc.nat(capacity) }),
      fc.record({ kind: fc.constant("ask" as const), worthwhile: fc.integer({ min: 1, max: 4 }) }),
    );
    fc.assert(
      fc.property(fc.array(move, { maxLength: 80 }), (moves) => {
        const credit = new Credit(0);
        let [held, asked, given] = [0, 0, 0];
        for (const one of moves) {
          if (one.kind === "ask") asked += credit.ask(capacity - held, one.worthwhile, held === 0);
          if (one.kind === "end") held -= Math.min(held, one.count);
          if (one.kind === "give" && credit.spend(one.count)) {
            held += one.count;
            given += one.count;
          }
          expect(credit.outstanding).to.equal(asked - given);
          expect(held + credit.outstanding).to.be.within(0, capacity);
        }
        // Nothing waits and nothing runs: all of the room is asked for.
        credit.ask(capacity, 4, true);
        expect(credit.outstanding).to.equal(capacity);
      }),
    );
  });
});
