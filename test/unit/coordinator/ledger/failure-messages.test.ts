import { expect } from "chai";
import { FailureMessages } from "../../../../src/coordinator/ledger/failure-messages.ts";
import type { FailureMessage, MetFailure } from "../../../../src/coordinator/ledger/failure-messages.ts";

const ID = Buffer.from("one");

function met(message: string, as: MetFailure["class"] = "error", id: Uint8Array = ID): MetFailure {
  return { class: as, message, id };
}

describe("the most frequent messages of failures", () => {
  let messages: FailureMessages;

  beforeEach(() => {
    messages = new FailureMessages();
  });

  function fail(count: number, failure: MetFailure): void {
    for (let times = 0; times < count; times++) messages.failed(failure);
  }

  function shown(count = 5): [number, string, string][] {
    return messages.top(count).map(({ items, class: as, message }) => [items, as, message]);
  }

  it("stand in the order of how many items they have failed, each with one of them", () => {
    fail(2, met("rare", "error", Buffer.from("first")));
    fail(3, met("common", "timeout"));
    fail(1, met("rare", "crash"));
    expect(shown()).to.deep.equal([
      [3, "timeout", "common"],
      [2, "error", "rare"],
      [1, "crash", "rare"],
    ]);
    const item = messages.top(2)[1]?.item;
    expect(Buffer.from(item ?? []).toString()).to.equal("first");
    expect(item?.buffer.byteLength, "no more than the id is kept").to.equal(5);
    expect(messages.top(1)).to.have.length(1);
  });

  it("are one where they differ in the numbers and names of what they speak of", () => {
    fail(1, met("cannot load item 17 from /tmp/tmp4k2x/a"));
    fail(1, met("cannot load item 5 from /tmp/tmp99zz/a"));
    expect(shown()).to.deep.equal([[2, "error", "cannot load item 17 from /tmp/tmp4k2x/a"]]);
  });

  it("are not one where the number says which failure it is", () => {
    const different = [
      "exit code 1: no",
      "exit code 2: no",
      "[Errno 2] no file",
      "[Errno 13] no file",
      "400 Bad Request",
      "500 Bad Request",
    ];
    for (const message of different) fail(1, met(message));
    expect(shown(10).map(([, , message]) => message)).to.deep.equal(different);
  });

  it("contain no item that was cancelled", () => {
    fail(3, met("the run was cancelled", "cancelled"));
    expect(shown()).to.deep.equal([]);
  });

  it("have attempts that are made again beside them, last, and with the item that has failed once one has", () => {
    messages.erred(met("later", "error", Buffer.from("tried again")));
    messages.erred(met("never"));
    messages.failed(met("later", "error", Buffer.from("failed")));
    const known = ({ message, items, attempts, item }: FailureMessage): unknown[] => [
      ...[message, items, attempts],
      Buffer.from(item).toString(),
    ];
    expect(messages.top(5).map(known)).to.deep.equal([
      ["later", 1, 1, "failed"],
      ["never", 0, 1, "one"],
    ]);
  });

  it("are forgotten with the items that are retried", () => {
    messages.erred(met("no"));
    fail(2, met("no"));
    messages.retried(met("no"));
    expect(shown()).to.deep.equal([[1, "error", "no"]]);
    messages.retried(met("no"));
    messages.retried(met("no"));
    messages.retried(met("unknown"));
    expect(shown()).to.deep.equal([]);
  });

  it("take a bounded amount of memory, keep the frequent ones, and never count too high", () => {
    messages = new FailureMessages(8);
    const words = Array.from({ length: 500 }, (_, at) =>
      String.fromCharCode(97 + (at % 26), 97 + Math.floor(at / 26)),
    );
    for (const word of words) {
      fail(2, met("frequent"));
      fail(1, met(word));
    }
    const [first, ...rest] = shown(1_000);
    expect(first).to.deep.equal([1_000, "error", "frequent"]);
    expect(rest).to.have.length(7);
    expect(rest.map(([items]) => items)).to.deep.equal(Array.from({ length: 7 }, () => 1));
  });

  it("are counted also when they begin late, several at once, after others have taken all places", () => {
    messages = new FailureMessages(4);
    for (const old of ["old a", "old b", "old c", "old d"]) fail(5, met(old));
    for (let times = 0; times < 20; times++) for (const late of ["late a", "late b"]) fail(1, met(late));
    expect(shown(2)).to.deep.equal([
      [20, "error", "late a"],
      [20, "error", "late b"],
    ]);
  });

  it("are cut to their beginning", () => {
    fail(1, met("x".repeat(10_000)));
    expect(shown()[0]?.[2]).to.have.length(257);
  });
});
