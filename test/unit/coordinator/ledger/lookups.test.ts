import { expect } from "chai";
import { Lookups } from "../../../../src/coordinator/ledger/lookups.ts";
import { placeOf } from "../../../../src/coordinator/ledger/place.ts";

describe("readings of items", () => {
  const [place, elsewhere] = [placeOf(0, 1), placeOf(0, 2)];
  let lookups: Lookups;

  beforeEach(() => {
    lookups = new Lookups();
  });

  it("hold when nothing has moved, each on its own", () => {
    const [one, other] = [{}, {}];
    lookups.begin("item", one);
    lookups.begin("item", other);
    expect(lookups.size).to.equal(2);
    expect(lookups.end("item", one, place)).to.equal(true);
    expect(lookups.end("item", other, undefined)).to.equal(true);
    expect(lookups.size).to.equal(0);
  });

  it("hold where the first one finds no item", () => {
    const question = {};
    lookups.begin("item", question);
    expect(lookups.end("item", question, undefined)).to.equal(true);
  });

  it("do not hold when the item has moved, and hold when they are asked for again", () => {
    const question = {};
    lookups.begin("item", question);
    lookups.touch("other");
    lookups.touch("item");
    expect(lookups.end("item", question, place)).to.equal(false);
    lookups.begin("item", question);
    expect(lookups.end("item", question, place)).to.equal(true);
  });

  it("do not hold when something has moved at the place where the item was found", () => {
    const [one, other] = [{}, {}];
    lookups.begin("one", one);
    lookups.begin("other", other);
    lookups.touchPlace(place);
    expect(lookups.end("one", one, place)).to.equal(false);
    expect(lookups.end("other", other, elsewhere)).to.equal(true);
  });

  it("hold when it has moved there before they were asked for", () => {
    const [early, question] = [{}, {}];
    lookups.begin("early", early);
    lookups.touchPlace(place);
    lookups.begin("item", question);
    expect(lookups.end("item", question, place)).to.equal(true);
    expect(lookups.end("early", early, place)).to.equal(false);
  });

  it("do not hold when more has moved than is remembered", () => {
    const [early, question] = [{}, {}];
    lookups.begin("early", early);
    for (let at = 0; at < 10_000; at++) lookups.touchPlace(placeOf(0, at));
    lookups.end("early", early, undefined);
    lookups.begin("item", question);
    for (let at = 0; at < 17_000; at++) lookups.touchPlace(placeOf(0, at));
    expect(lookups.end("item", question, placeOf(0, 20_000))).to.equal(false);
  });

  it("hold when what was forgotten had moved before", () => {
    const [early, question] = [{}, {}];
    lookups.begin("early", early);
    for (let at = 0; at < 10_000; at++) lookups.touchPlace(placeOf(0, at));
    lookups.begin("item", question);
    lookups.end("early", early, undefined);
    for (let at = 10_000; at < 20_000; at++) lookups.touchPlace(placeOf(0, at));
    expect(lookups.end("item", question, placeOf(0, 5))).to.equal(true);
  });
});
