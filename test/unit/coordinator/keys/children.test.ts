// Children of actors, and the end of actors.
import { expect } from "chai";
import { KEYS_PREFIX, STATES_PREFIX, TIMERS_PREFIX } from "../../../../src/storage/keys.ts";
import type { Asks, Final, Start } from "../../../../src/coordinator/ledger/asks.ts";
import { failedItems } from "./failed-items.ts";
import { ActorRig, bytes } from "./actor-rig.ts";

const start = (id: string): Start => ({ id, source: "machine", input: bytes(`input of ${id}`) });
const final = (output: string, parts: Partial<Final> = {}): Partial<Asks> => ({
  final: { output: bytes(output), error: undefined, idleTtlMs: undefined, ...parts },
});
const timer = { id: "t", delayMs: 1_000, event: bytes("late"), to: "", isOptional: false };
const send = (to: string, text: string, isOptional = true) => ({ to, event: bytes(text), isOptional });

async function parent(): Promise<ActorRig> {
  const rig = await ActorRig.start();
  await rig.send("a go");
  await rig.done("a", { children: [start("c")], sends: [send("a/c", "hello")] });
  return rig;
}

describe("children of actors", () => {
  it("begin with their input, have mail of their own, and their end is an event of their parent", async () => {
    const rig = await parent();
    expect(rig.held).to.deep.equal(["a/c: input of c (start c of a)"]);
    await rig.done("a/c", { sends: [send("a", "up")] });
    expect(rig.held).to.have.members(["a/c: hello (mail of a)", "a: up (mail of a/c)"]);
    await rig.takeOver();
    await rig.done("a");
    await rig.done("a/c", final("42"));
    expect(rig.held).to.deep.equal(["a: 42 (outcome c)"]);
    await rig.done("a", { sends: [send("a/c", "gone")] });
    expect(rig.held).to.deep.equal([]);
    expect(await rig.world.countUnder(KEYS_PREFIX)).to.equal(1);
    expect(await rig.world.countUnder(STATES_PREFIX)).to.equal(1);
  });

  it("that end in failure are a failure of their parent's", async () => {
    const rig = await parent();
    await rig.done("a/c", final("", { error: "no" }));
    expect(rig.held).to.deep.equal(["a: no (failure c)"]);
    // Its mail is not wanted any more.
    expect(rig.world.state.keys.rows.inside.stopped).to.equal(1);
    expect(rig.world.state.keys.table.size).to.equal(1);
  });

  it("are stopped with theirs, with timers and invocations, running and waiting", async () => {
    const rig = await parent();
    await rig.done("a/c", { children: [start("d")], timers: [timer], invocations: [start("i")] });
    await rig.done("a/c/d", { timers: [timer], children: [start("e")] });
    await rig.send("a leave");
    expect(rig.held).to.have.members([
      "a/c: hello (mail of a)",
      "a/c!run/i/2: input of i (invocation i)",
      "a/c/d/e: input of e (start e of a/c/d)",
      "a: leave",
    ]);
    await rig.done("a", { stopped: ["c"] });
    expect(rig.forgetDropped()).to.equal(3);
    expect(rig.world.state.keys.table.size).to.equal(1);
    expect(await rig.world.countUnder(KEYS_PREFIX)).to.equal(1);
    expect(await rig.world.countUnder(TIMERS_PREFIX)).to.equal(0);
    await rig.pass(1_000);
    expect(rig.held).to.deep.equal([]);
  });

  it("that are started again in the step that stops them receive no earlier message", async () => {
    const rig = await parent();
    await rig.done("a/c", { timers: [timer] });
    await rig.send("a/c old", "a/c older", "a again");
    await rig.pass(1_000);
    await rig.done("a", { stopped: ["c"], children: [start("c")] });
    expect(rig.forgetDropped()).to.equal(1);
    expect(rig.held).to.deep.equal(["a/c: input of c (start c of a)"]);
    expect(rig.find("a/c").keyed?.commit).to.equal(0);
    await rig.takeOver();
    await rig.done("a/c", final("2"));
    expect(rig.held).to.deep.equal(["a: 2 (outcome c)"]);
    await rig.world.seal();
    await rig.done("a");
    expect((await rig.world.view()).state).to.equal("Complete");
  });

  it("that are parked are stopped all the same", async () => {
    const rig = await parent();
    await rig.fails("a/c");
    await rig.world.ask((answer) => ({ kind: "steerKeys", action: "pause", keys: ["a/c"], answer }));
    await rig.send("a leave");
    await rig.done("a", { stopped: ["c"] });
    expect(rig.world.state.keys.table.size).to.equal(1);
    expect(rig.world.state.ledger.tally.pending).to.equal(0);
  });

  for (const isNext of [false, true])
    it(`whose start is skipped${isNext ? " behind a takeover" : ""} are begun by no mail, and their parent hears why`, async () => {
      const rig = await parent();
      await rig.fails("a/c");
      if (isNext) await rig.takeOver();
      await rig.world.ask((answer) => ({ kind: "steerKeys", action: "skip", keys: ["a/c"], answer }));
      await rig.world.settle();
      expect(rig.held).to.deep.equal(["a: error: it says no (failure c)"]);
      await rig.done("a", { children: [start("c")] });
      expect(rig.held, "the name is free").to.deep.equal(["a/c: input of c (start c of a)"]);
    });

  it("whose start fails where failed items are passed over are begun by no mail, and their parent hears why", async () => {
    const rig = await ActorRig.start({ keys: { skipsFailed: true } });
    await rig.send("a go");
    await rig.done("a", { children: [start("c")], sends: [send("a/c", "hello")] });
    await rig.fails("a/c");
    expect(rig.held).to.deep.equal(["a: it says no (failure c)"]);
    expect(rig.world.state.keys.table.size).to.equal(1);
  });

  it("that failed to begin and were removed are not begun by a retry", async () => {
    const rig = await ActorRig.start();
    await rig.send("a go");
    await rig.done("a", { children: [start("c")] });
    await rig.fails("a/c");
    await rig.send("a leave");
    await rig.done("a", { stopped: ["c"] });
    await rig.world.ask((answer) => ({ kind: "steerKeys", action: "skip", keys: ["a/c"], answer }));
    const failed = await failedItems(rig.world);
    await rig.world.ask((answer) => ({ kind: "retry", failed, answer }));
    await rig.world.settle();
    expect([failed.length, rig.held]).to.deep.equal([1, []]);
    expect(await rig.world.countUnder(KEYS_PREFIX)).to.equal(1);
  });

  it("do not take the place of a key that is there", async () => {
    const rig = await ActorRig.start();
    await rig.send("a go", "a/c stranger");
    await rig.done("a", { children: [start("c")] });
    expect(rig.world.state.ledger.failureMessages.top(1)[0]?.message).to.match(/there is a key a\/c/);
    const other = await ActorRig.start();
    await other.send("a go");
    await other.done("a", { children: [start("c/d")] });
    expect(other.world.state.ledger.failureMessages.top(1)[0]?.message).to.match(/"a\/c\/d" is no key/);
  });
});

describe("final actors", () => {
  it("take no more events: waiting and new ones fail at once, and park nothing", async () => {
    const rig = await ActorRig.start();
    await rig.send("a go", "a waits");
    await rig.done("a", { ...final("1"), timers: [timer], invocations: [start("i")] });
    await rig.send("a comes");
    await rig.takeOver();
    expect(rig.held).to.deep.equal([]);
    const [most] = rig.world.state.ledger.failureMessages.top(1);
    expect(most?.message).to.match(/^actor_done: a is final/);
    expect([most?.items, rig.world.state.keys.counts.parked]).to.deep.equal([2, 0]);
    await rig.world.seal();
    expect((await rig.world.view()).state).to.equal("Complete");
  });

  it("fail the senders of messages to them, unless a message is optional", async () => {
    const rig = await ActorRig.start();
    await rig.send("a go", "b go", "c go");
    await rig.done("a", final("1"));
    await rig.done("b", { sends: [send("a", "x", true)] });
    await rig.done("c", { sends: [send("a", "x", false)] });
    expect(rig.world.state.ledger.failureMessages.top(1)[0]?.message).to.match(/it sends to a: actor_done/);
    expect(rig.world.state.ledger.tally.count("done")).to.equal(2);
  });

  it("are forgotten after their time, and their ids are free", async () => {
    const rig = await ActorRig.start();
    await rig.send("a go");
    await rig.done("a", final("1", { idleTtlMs: 5_000 }));
    await rig.world.seal();
    expect((await rig.world.view()).state).to.equal("Complete");
    await rig.pass(4_999);
    await rig.takeOver();
    expect(rig.world.state.keys.table.size).to.equal(1);
    await rig.pass(1);
    expect(rig.world.state.keys.table.size).to.equal(0);
    expect(await rig.world.countUnder(KEYS_PREFIX)).to.equal(0);
    expect(await rig.world.countUnder(TIMERS_PREFIX)).to.equal(0);
  });
});
