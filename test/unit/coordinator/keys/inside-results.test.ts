// Items from inside, as operators see them: left out of results unless they are asked for, with the word of what made them.
import { expect } from "chai";
import type { ListResultsResponse } from "../../../../src/gen/rollout/v1/run_pb.ts";
import { ResultOrder } from "../../../../src/gen/rollout/v1/run_pb.ts";
import { itemDigits } from "../../../../src/coordinator/ledger/place.ts";
import { readSnapshot } from "../../../../src/coordinator/lead/coordinator-snapshot.ts";
import { WorldOperator } from "../../../support/world-operator.ts";
import { ActorRig, bytes } from "./actor-rig.ts";

const send = (to: string, text: string) => ({ to, event: bytes(text), isOptional: false });

async function told(): Promise<{ rig: ActorRig; operator: WorldOperator }> {
  const rig = await ActorRig.start();
  await rig.send("a go", "b go");
  await rig.done("a", {
    sends: [send("c", "one")],
    invocations: [{ id: "i", source: "s", input: bytes("in") }],
  });
  await rig.done("c");
  await rig.fails("a!run/i/1");
  await rig.fails("a");
  await rig.done("b");
  return { rig, operator: new WorldOperator(rig.world) };
}

function list(
  operator: WorldOperator,
  order: ResultOrder,
  withInside: boolean,
): Promise<ListResultsResponse> {
  return operator.ask((run) => run.listResults({ order, withInside, withPayload: true }));
}

const FAILED_INSIDE = { withPayload: true, onlyFailedInside: true };

function wordsOf({ results }: ListResultsResponse): string[] {
  return results.map(({ payload, origin }) =>
    `${Buffer.from(payload).toString()} ${origin?.from.case ?? ""}`.trim(),
  );
}

describe("items from inside", () => {
  it("are no results, unless they are asked for", async () => {
    const { operator } = await told();
    const inOrder = await list(operator, ResultOrder.INPUT, false);
    expect(wordsOf(inOrder)).to.deep.equal(["a go", "b go"]);
    expect(inOrder.caughtUp).to.equal(true);
    expect(wordsOf(await list(operator, ResultOrder.COMPLETION, false))).to.deep.equal(["a go", "b go"]);
    const all = ["a go", "b go", "one mail", "in invocation", "it says no failure"];
    expect(wordsOf(await list(operator, ResultOrder.INPUT, true))).to.have.members(all);
    expect(wordsOf(await list(operator, ResultOrder.COMPLETION, true))).to.have.members(all);
  });

  it("are given alone where they have failed, but those that were stopped", async () => {
    const { rig, operator } = await told();
    await rig.send("b again");
    await rig.done("b", { invocations: [{ id: "j", source: "s", input: bytes("unwanted") }] });
    await rig.send("b leave");
    await rig.done("b", { stopped: ["j"] });
    rig.forgetDropped();
    expect((await rig.world.view()).inside).to.include({ failed: 2, stopped: 1 });
    const failed = async (after = "", limit = 0): Promise<ListResultsResponse> =>
      operator.ask((run) =>
        run.listResults({ ...FAILED_INSIDE, order: ResultOrder.COMPLETION, after, limit }),
      );
    const whole = await failed();
    expect(wordsOf(whole)).to.deep.equal(["in invocation", "it says no failure"]);
    expect(whole.caughtUp).to.equal(true);
    const first = await failed("", 1);
    expect(wordsOf(first)).to.deep.equal(["in invocation"]);
    expect(wordsOf(await failed(first.after, 1))).to.deep.equal(["it says no failure"]);
  });

  it("are counted apart from submitted items", async () => {
    const { rig } = await told();
    const { done, failed, failedByClass, inside } = await rig.world.view();
    expect({ done, failed, failedByClass }).to.deep.equal({ done: 2, failed: 0, failedByClass: {} });
    expect(inside).to.deep.equal({ pending: 0, running: 0, done: 1, failed: 2, stopped: 0 });
  });

  it("are in no number that a leader publishes, as they are in none of its own", async () => {
    const { rig } = await told();
    await rig.world.step({ kind: "publish" });
    const snapshot = await readSnapshot(rig.world.store);
    expect(snapshot).to.deep.include({ pending: 0, inFlight: 0, done: 2, failed: 0 });
  });

  it("count towards the failures that a run may have, unless nobody waits for them any more", async () => {
    const rig = await ActorRig.start({ limits: { maxFails: { kind: "count", count: 2 } } });
    await rig.send("a go", "b go");
    await rig.done("a", { invocations: [{ id: "i", source: "s", input: bytes("in") }] });
    await rig.done("b", { invocations: [{ id: "i", source: "s", input: bytes("in") }] });
    await rig.send("b leave");
    await rig.done("b", { stopped: ["i"] });
    await rig.fails("a!run/i/1");
    expect((await rig.world.view()).state).to.equal("Open.Active");
    await rig.fails("a");
    const { state, pauseReason } = await rig.world.view();
    expect(state).to.equal("Open.Paused");
    expect(pauseReason).to.match(/2 items failed, and run.max_fails is 2/);
  });

  it("are explained with what has made them, and the key of their actor", async () => {
    const { operator } = await told();
    const { results } = await list(operator, ResultOrder.COMPLETION, true);
    const invocation = results.find(({ origin }) => origin?.from.case === "invocation");
    const name = itemDigits(invocation?.itemId ?? new Uint8Array());
    const { item } = await operator.ask((run) => run.getItem({ name }));
    expect(item?.key).to.equal("a");
    expect(item?.origin?.from).to.deep.include({ case: "invocation" });
  });

  it("that were reported to an actor, or that nobody waits for any more, are not retried", async () => {
    const { rig, operator } = await told();
    const { retried } = await operator.ask((run) => run.retry({}));
    expect(retried).to.equal(1);
    expect(rig.held).to.deep.equal(["a: it says no (failure i)"]);
  });
});
