// Invocations and named actions: items of their own, in lanes beside their actor.
import { expect } from "chai";
import { KEYS_PREFIX } from "../../../../src/storage/keys.ts";
import type { Start } from "../../../../src/coordinator/ledger/asks.ts";
import { LIMITS } from "../../../../src/config/limits.ts";
import { KeyPhase } from "../../../../src/gen/rollout/v1/run_pb.ts";
import { KeyRefusalReason } from "../../../../src/gen/rollout/v1/keys_pb.ts";
import type { SteerKeysResponse } from "../../../../src/gen/rollout/v1/keys_pb.ts";
import type { SeenKeys } from "../../../../src/coordinator/turn/key-terms.ts";
import type { Filled } from "../../../../src/coordinator/turn/operator-message.ts";
import { ActorRig, bytes } from "./actor-rig.ts";

const start = (id: string, source = "charge"): Start => ({ id, source, input: bytes(`input of ${id}`) });

async function invoking(...ids: string[]): Promise<ActorRig> {
  const rig = await ActorRig.start();
  await rig.send("a go");
  await rig.done("a", { invocations: ids.map((id) => start(id)) });
  return rig;
}

describe("invocations of actors", () => {
  it("run beside their actor, and their outcome is an event of it", async () => {
    const rig = await invoking("pay", "ship");
    expect(rig.held).to.have.members([
      "a!run/pay/1: input of pay (invocation pay)",
      "a!run/ship/2: input of ship (invocation ship)",
    ]);
    await rig.send("a other");
    expect(rig.held).to.include("a: other");
    await rig.done("a!run/pay/1");
    await rig.done("a");
    expect(rig.held).to.include("a: INPUT OF PAY (outcome pay)");
    await rig.done("a");
    await rig.done("a!run/ship/2");
    await rig.takeOver();
    await rig.done("a");
    expect(rig.held).to.deep.equal([]);
    expect(rig.world.state.keys.table.size).to.equal(1);
    expect(await rig.world.countUnder(KEYS_PREFIX)).to.equal(1);
  });

  it("are tried again, and fail for their actor behind the last attempt", async () => {
    const rig = await invoking("pay");
    await rig.fails("a!run/pay/1", false);
    await rig.world.watch(5_000, [rig.worker]);
    await rig.fails("a!run/pay/1", false);
    expect(rig.held).to.deep.equal(["a: it says no (failure pay)"]);
    expect(await rig.world.countUnder(KEYS_PREFIX)).to.equal(1);
  });

  for (const isTakenOver of [false, true])
    it(`are dropped with the state that has left them, running and waiting${isTakenOver ? ", also by another leader" : ""}`, async () => {
      const rig = await invoking("pay");
      await rig.send("a leave");
      if (isTakenOver) await rig.takeOver();
      const late = rig.find("a!run/pay/1");
      await rig.done("a", { stopped: ["pay"], invocations: [start("pay", "refund")] });
      expect(rig.forgetDropped()).to.equal(1);
      expect(rig.held).to.deep.equal(["a!run/pay/2: input of pay (invocation pay)"]);
      rig.worker.held.push(late);
      await rig.done("a!run/pay/1");
      expect(rig.held).to.deep.equal(["a!run/pay/2: input of pay (invocation pay)"]);
      await rig.done("a!run/pay/2");
      expect(rig.held).to.deep.equal(["a: INPUT OF PAY (outcome pay)"]);
    });

  it("whose state was left report no end to a later state of the same name", async () => {
    const rig = await invoking("pay");
    await rig.send("a leave");
    await rig.done("a!run/pay/1");
    // The outcome waits behind `leave`, which leaves and enters the state.
    await rig.done("a", { stopped: ["pay"], invocations: [start("pay")] });
    expect(rig.held).to.deep.equal(["a!run/pay/2: input of pay (invocation pay)"]);
    await rig.done("a!run/pay/2");
    await rig.done("a");
    expect(rig.held).to.deep.equal([]);
    expect(rig.world.state.keys.rows.inside.stopped).to.equal(1);
  });

  for (const isTakenOver of [false, true])
    it(`wait after a failure, and are dropped at once when they are left${isTakenOver ? ", also by another leader" : ""}`, async () => {
      const rig = await invoking("pay");
      await rig.fails("a!run/pay/1", false);
      await rig.send("a leave");
      if (isTakenOver) await rig.takeOver();
      expect(rig.world.state.ledger.tally.count("delayed")).to.equal(1);
      await rig.done("a", { stopped: ["pay"] });
      await rig.world.settle();
      expect(rig.world.state.ledger.tally.count("delayed")).to.equal(0);
      expect(rig.world.state.ledger.tally.pending).to.equal(0);
      expect(await rig.world.countUnder(KEYS_PREFIX)).to.equal(1);
    });

  it("whose state was left while they waited are dropped by the next leader too", async () => {
    const rig = await invoking("pay");
    await rig.fails("a!run/pay/1", false);
    await rig.send("a leave");
    // More items wait than are in memory.
    rig.world.state.ledger.delayed.find = () => undefined;
    await rig.done("a", { stopped: ["pay"] });
    expect(rig.world.state.ledger.tally.pending).to.equal(1);
    await rig.takeOver();
    await rig.world.settle();
    expect(rig.world.state.ledger.tally.pending).to.equal(0);
  });

  it("are begun anew in the step that hears of the end of the one before", async () => {
    const rig = await invoking("pay");
    await rig.done("a!run/pay/1");
    await rig.done("a", { invocations: [start("pay")] });
    expect(rig.held).to.deep.equal(["a!run/pay/2: input of pay (invocation pay)"]);
    await rig.done("a!run/pay/2");
    expect(rig.held).to.deep.equal(["a: INPUT OF PAY (outcome pay)"]);
  });

  it("are left as if they were there when the event of their end has failed and is skipped", async () => {
    const rig = await invoking("pay");
    await rig.done("a!run/pay/1");
    await rig.fails("a");
    await rig.world.ask((answer) => ({ kind: "steerKeys", action: "skip", keys: ["a"], answer }));
    await rig.send("a leave");
    await rig.done("a", { stopped: ["pay"], invocations: [start("pay")] });
    expect(rig.held).to.deep.equal(["a!run/pay/2: input of pay (invocation pay)"]);
  });

  it("are refused where there are too many, or that are there already, or are not", async () => {
    const rig = await invoking(...Array.from({ length: LIMITS.livePerActor + 1 }, (_, at) => `p${at}`));
    const why = (): string | undefined => rig.world.state.ledger.failureMessages.top(1)[0]?.message;
    expect(why()).to.match(/it has 65 invocations and children, and an actor may have 64/);
    const twice = await invoking("pay", "pay");
    expect(twice.world.state.ledger.failureMessages.top(1)[0]?.message).to.match(
      /it starts "pay", which it has/,
    );
    const never = await ActorRig.start();
    await never.send("a go");
    await never.done("a", { stopped: ["b"] });
    expect(never.world.state.ledger.failureMessages.top(1)[0]?.message).to.match(
      /it stops "b", which it has not/,
    );
  });
});

describe("named actions of actors", () => {
  const actions = ["print", "mail"].map((type) => ({ type, params: bytes(`"${type}"`) }));

  it("run one at a time and in order, beside their actor", async () => {
    const rig = await ActorRig.start();
    await rig.send("a go", "a more");
    await rig.done("a", { actions });
    expect(rig.held).to.have.members(["a: more", 'a!do: "print" (action print)']);
    await rig.done("a");
    await rig.done("a!do");
    expect(rig.held).to.deep.equal(['a!do: "mail" (action mail)']);
    await rig.done("a!do");
    expect(await rig.world.countUnder(KEYS_PREFIX)).to.equal(1);
  });

  it("park alone behind one that fails, until it is skipped or retried", async () => {
    const rig = await ActorRig.start();
    await rig.send("a go");
    await rig.done("a", { actions });
    await rig.fails("a!do");
    await rig.send("a more");
    expect(rig.held).to.deep.equal(["a: more"]);
    await rig.takeOver();
    await rig.world.ask((answer) => ({ kind: "steerKeys", action: "skip", keys: ["a"], answer }));
    await rig.world.settle();
    expect(rig.held).to.have.members(["a: more", 'a!do: "mail" (action mail)']);
  });

  it("are skipped by the name of their actor, also when the actor was removed", async () => {
    const rig = await ActorRig.start();
    await rig.send("a go");
    await rig.done("a", { children: [start("c")] });
    await rig.done("a/c", { actions, final: { output: bytes("1"), error: undefined, idleTtlMs: undefined } });
    await rig.fails("a/c!do");
    // It stands in the list of what is parked, though its actor is in none, and in the numbers, as by another leader.
    const parked = async () =>
      rig.world.ask<SeenKeys>((answer) => ({
        ...{ kind: "listKeys", phases: [KeyPhase.PARKED], parkedActions: true, prefix: "", fromCommit: 0 },
        ...{ after: "", limit: 10, answer },
      }));
    for (const isTakenOver of [false, true]) {
      if (isTakenOver) await rig.takeOver();
      const { keys } = await parked();
      expect(keys.map(({ key, isOfActions, items }) => ({ key, isOfActions, items }))).to.deep.equal([
        { key: "a/c", isOfActions: true, items: 1 },
      ]);
      expect((await rig.world.view()).keys).to.include({ parked: 0, parkedActions: 1, itemsBehindParked: 1 });
    }
    const skip = (key: string) =>
      rig.world.ask<Filled<SteerKeysResponse>>((answer) => ({
        kind: "steerKeys",
        action: "skip",
        keys: [key],
        answer,
      }));
    expect((await skip("a/c")).steered).to.equal(1);
    expect((await skip("a/d")).refused).to.deep.equal([{ key: "a/d", reason: KeyRefusalReason.UNKNOWN }]);
    await rig.world.settle();
    expect(rig.held).to.include('a/c!do: "mail" (action mail)');
    await rig.done("a/c!do");
    expect((await rig.world.view()).keys).to.include({ parkedActions: 0, itemsBehindParked: 0 });
    expect((await parked()).keys).to.deep.equal([]);
  });
});
