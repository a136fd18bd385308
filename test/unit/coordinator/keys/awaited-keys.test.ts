import { expect } from "chai";
import { AwaitedKeys } from "../../../../src/coordinator/keys/awaited-keys.ts";
import { Key } from "../../../../src/coordinator/keys/key.ts";

function keyAt(text: string, commit: number): Key {
  const key = new Key(text, 0);
  key.commit = commit;
  return key;
}

describe("keys that are waited for", () => {
  it("are told to the waiting call once, when their state has changed", () => {
    const awaited = new AwaitedKeys();
    const key = keyAt("a", 1);
    awaited.add("a", key);
    awaited.look([key, keyAt("b", 4)], []);
    expect(awaited.take()).to.equal(undefined);
    key.commit = 2;
    awaited.look([key], []);
    expect(awaited.take()).to.deep.equal([{ key: "a", standing: "2.going" }]);
    key.commit = 3;
    awaited.look([key], []);
    expect(awaited.take()).to.equal(undefined);
  });

  it("are told to the waiting call when they come and when they go", () => {
    const awaited = new AwaitedKeys();
    awaited.add("a", undefined);
    awaited.look([keyAt("a", 0)], []);
    expect(awaited.take()).to.deep.equal([{ key: "a", standing: "0.going" }]);
    awaited.add("a", keyAt("a", 5));
    awaited.look([], [keyAt("a", 5)]);
    expect(awaited.take()).to.deep.equal([{ key: "a", standing: "0" }]);
  });

  it("are bounded: the oldest wait is forgotten", () => {
    const awaited = new AwaitedKeys();
    for (let at = 0; at < 1_025; at++) awaited.add(`k${at}`, undefined);
    awaited.add("k1", undefined);
    awaited.look([keyAt("k0", 1), keyAt("k1", 1), keyAt("k1024", 1)], []);
    expect(awaited.take()?.map(({ key }) => key)).to.deep.equal(["k1", "k1024"]);
  });
});
