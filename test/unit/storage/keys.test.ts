import { expect } from "chai";
import { actorKey, ACTORS_PREFIX, countKey, RECORD_KIND } from "../../../src/storage/keys.ts";
import { nextKey, prefixRange } from "../../../src/storage/store.ts";

describe("key layout", () => {
  it("no two kinds of record have one number", () => {
    const kinds = Object.values(RECORD_KIND);
    expect(new Set(kinds).size).to.equal(kinds.length);
    for (const kind of kinds) expect(kind).to.be.within(1, 255);
  });

  it("addresses with slashes stay within their segment", () => {
    const { from, to } = prefixRange(ACTORS_PREFIX);
    for (const address of ["coordinator", "worker/01JZ", "item/~"]) {
      expect(actorKey(address) >= from && actorKey(address) < to).to.equal(true);
    }
    expect(countKey("workers")).to.equal("counts/workers");
  });

  it("no key sorts between a key and its successor", () => {
    expect(nextKey("a") > "a").to.equal(true);
    for (const after of ["a!", "a/", "b"]) expect(nextKey("a") < after).to.equal(true);
  });
});
