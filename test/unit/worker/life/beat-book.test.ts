import { expect } from "chai";
import { BeatBook } from "../../../../src/worker/life/beat-book.ts";

describe("the book of beats", () => {
  let book: BeatBook;

  beforeEach(() => {
    book = new BeatBook(1_000);
  });

  it("numbers beats from 1, over every stream", () => {
    expect([book.send(1_000), book.send(1_100)]).to.deep.equal([1, 2]);
    book.forget();
    expect([book.send(1_200), book.lastSequence]).to.deep.equal([3, 3]);
  });

  it("counts the start as having been heard", () => {
    expect(book.provenAtMs).to.equal(1_000);
  });

  it("proves by an answer when the beat was sent, not when the answer came", () => {
    const sequence = book.send(1_500);
    expect(book.provenAtMs).to.equal(1_000);
    book.answered(sequence);
    expect(book.provenAtMs).to.equal(1_500);
  });

  it("takes an answer for the beats before it as well", () => {
    book.send(1_100);
    book.send(1_200);
    book.send(1_300);
    book.answered(2);
    expect([book.provenAtMs, book.waitingMs(2_000)]).to.deep.equal([1_200, 700]);
  });

  it("learns nothing from an answer to a beat that it did not send, or sent on a broken stream", () => {
    book.send(1_500);
    book.answered(7);
    book.forget();
    book.answered(1);
    expect(book.provenAtMs).to.equal(1_000);
  });

  it("learns nothing from the same answer again", () => {
    book.send(1_500);
    book.send(1_600);
    book.answered(2);
    book.answered(1);
    expect(book.provenAtMs).to.equal(1_600);
  });

  it("waits since the oldest beat without an answer, and for nothing when all are answered", () => {
    expect(book.waitingMs(9_000)).to.equal(0);
    book.send(1_100);
    book.send(1_200);
    expect(book.waitingMs(1_250)).to.equal(150);
    book.answered(1);
    expect(book.waitingMs(1_250)).to.equal(50);
    book.answered(2);
    expect(book.waitingMs(1_250)).to.equal(0);
  });

  it("waits for nothing that was sent on a broken stream", () => {
    book.send(1_100);
    book.forget();
    expect(book.waitingMs(9_000)).to.equal(0);
  });
});
