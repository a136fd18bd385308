import { expect } from "chai";
import type { Operation } from "../../../../src/storage/level/level-writer.ts";
import { RecentWrites } from "../../../../src/storage/level/recent-writes.ts";

const bytes = (...values: number[]): Uint8Array => Uint8Array.from(values);
const put = (key: string, value: Uint8Array = bytes(1)): Operation => ({ type: "put", key, value });

describe("recent writes", () => {
  let recent: RecentWrites;
  beforeEach(() => (recent = new RecentWrites()));

  it("tell what the last write of each key left, in the order that was asked for", () => {
    recent.note([put("a", bytes(1)), put("b", bytes(2))]);
    recent.note([put("a", bytes(3)), { type: "del", key: "b" }]);
    expect(recent.read(["b", "a"])).to.deep.equal([undefined, bytes(3)]);
  });

  it("say nothing where one of the keys is unknown", () => {
    recent.note([put("a")]);
    expect(recent.read(["a", "b"])).to.equal(undefined);
  });

  it("are neither the writer's bytes nor another reader's", () => {
    const value = bytes(1);
    recent.note([put("a", value)]);
    value[0] = 9;
    const [read] = recent.read(["a"]) ?? [];
    read?.fill(9);
    expect(recent.read(["a"])).to.deep.equal([bytes(1)]);
  });

  it("know nothing any more after a write of many, which may have changed any of them", () => {
    recent.note([put("a")]);
    recent.note([put("a", bytes(2)), ...Array.from({ length: 40 }, (_, at) => put(`many ${at}`))]);
    expect([recent.read(["a"]), recent.read(["many 1"])]).to.deep.equal([undefined, undefined]);
  });

  it("forget a key whose new value is large, and those that were written longest ago", () => {
    recent.note([put("a"), put("b")]);
    recent.note([put("a", new Uint8Array(5_000))]);
    expect(recent.read(["a"])).to.equal(undefined);
    for (let at = 0; at < 511; at++) recent.note([put(`key ${at}`)]);
    expect(recent.read(["b"])).to.deep.equal([bytes(1)]);
    recent.note([put("one more")]);
    expect(recent.read(["b"])).to.equal(undefined);
  });
});
