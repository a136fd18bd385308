import { expect } from "chai";
import { DescriptorRoom } from "../../../../src/worker/children/starter.ts";

describe("room for descriptors", () => {
  it("is what the limit leaves, without those that are on their way and a few for files", () => {
    let used = 20;
    const room = new DescriptorRoom(40, () => used);
    expect([room.expect(5), room.expect(5), room.expect(5), room.expect(5)]).to.deep.equal([
      true,
      true,
      true,
      false,
    ]);
    room.arrived(5);
    used += 5;
    expect(room.expect(5)).to.equal(false);
    used -= 5;
    expect(room.expect(5)).to.equal(true);
  });

  it("is not counted anew for each child while there is much room", () => {
    let counted = 0;
    const room = new DescriptorRoom(1_024, () => ++counted * 0 + 24);
    for (let start = 0; start < 90; start++) expect(room.expect(5)).to.equal(true);
    expect(counted).to.equal(1);
  });

  it("is none when not even that can be counted", () => {
    expect(new DescriptorRoom(40, () => Infinity).expect(1)).to.equal(false);
  });
});
