// Mail from inside: messages that a result asks for stand in the batch of that result, or nowhere.
import { expect } from "chai";
import type { Send } from "../../../../src/coordinator/ledger/asks.ts";
import { ActorRig, bytes } from "./actor-rig.ts";

const send = (to: string, text: string, isOptional = false): Send => ({ to, event: bytes(text), isOptional });

describe("messages of actors", () => {
  it("arrive in the order in which they were sent, with their sender", async () => {
    const rig = await ActorRig.start();
    await rig.send("a go");
    await rig.done("a", { sends: [send("b", "one"), send("b", "two"), send("a", "self")] });
    expect(rig.held).to.have.members(["b: one (mail of a)", "a: self (mail of a)"]);
    await rig.done("b");
    expect(rig.held).to.have.members(["b: two (mail of a)", "a: self (mail of a)"]);
    await rig.takeOver();
    expect(rig.held).to.have.members(["b: two (mail of a)", "a: self (mail of a)"]);
  });

  it("are sent once, by the one result that is recorded", async () => {
    const rig = await ActorRig.start();
    await rig.send("a go");
    const item = rig.find("a");
    await rig.done("a", { sends: [send("b", "one")] });
    await rig.takeOver();
    rig.worker.held.push(item);
    await rig.done("a", { sends: [send("b", "one")] });
    await rig.done("b");
    expect(rig.held).to.deep.equal([]);
  });

  it("are not sent by an attempt that fails", async () => {
    const rig = await ActorRig.start();
    await rig.send("a go");
    await rig.done("a", { sends: [send("b", "one"), send("b\0do", "two")] });
    expect(rig.held).to.deep.equal([]);
    expect(rig.world.state.keys.table.get("b")).to.equal(undefined);
    expect(rig.world.state.ledger.tally.count("delayed")).to.equal(1);
  });

  it("fail their sender when the mailbox is full, or the partition of a key that is new", async () => {
    const rig = await ActorRig.start({ keys: { maxMail: 2, totalPartitions: 1, maxKeysPerPartition: 2 } });
    await rig.send("a go", "b 1", "b 2");
    await rig.done("a", { sends: [send("b", "three")] });
    expect(rig.world.state.ledger.failureMessages.top(1)[0]?.message).to.match(
      /it sends to b, which has 2 items/,
    );
    await rig.send("a again");
    await rig.world.watch(5_000, [rig.worker]);
    await rig.done("a", { sends: [send("c", "new")] });
    expect(rig.world.state.ledger.failureMessages.top(1)[0]?.message).to.match(/partition 0 has 2 keys/);
  });

  it("are dropped where the receiver does not exist, if they are optional", async () => {
    const rig = await ActorRig.start();
    await rig.send("a go");
    await rig.done("a", { sends: [send("b", "one", true), send("c", "two"), send("c", "three", true)] });
    expect(rig.held).to.deep.equal(["c: two (mail of a)"]);
    expect(rig.world.state.keys.table.get("b")).to.equal(undefined);
    await rig.done("c");
    expect(rig.held).to.deep.equal(["c: three (mail of a)"]);
  });

  it("are counted apart from submitted items, and do not keep a sealed run open", async () => {
    const rig = await ActorRig.start();
    await rig.send("a go");
    await rig.world.seal();
    await rig.done("a", { sends: [send("b", "one")] });
    const { inside } = rig.world.state.keys.rows;
    expect([inside.items, inside.pending, inside.running, inside.done]).to.deep.equal([1, 0, 1, 0]);
    await rig.done("b");
    expect([inside.items, inside.pending, inside.running, inside.done]).to.deep.equal([1, 0, 0, 1]);
    expect((await rig.world.view()).state).to.equal("Complete");
  });
});
