import { expect } from "chai";
import { gate } from "../../../src/base/gate.ts";

describe("a gate", () => {
  it("lets so many in at once, in the order in which they came, also behind one that has failed", async () => {
    const pass = gate(2);
    const begun: number[] = [];
    const doors = Array.from({ length: 4 }, () => Promise.withResolvers<undefined>());
    const passed = doors.map(({ promise }, at) =>
      pass(async () => {
        begun.push(at);
        await promise;
      }).catch(() => undefined),
    );
    expect(begun).to.deep.equal([0, 1]);
    doors[1]?.reject(new Error("it fails"));
    await passed[1];
    expect(begun).to.deep.equal([0, 1, 2]);
    const late = pass(async () => void begun.push(4));
    for (const { resolve } of doors) resolve(undefined);
    await Promise.all([...passed, late]);
    expect(begun).to.deep.equal([0, 1, 2, 3, 4]);
  });
});
