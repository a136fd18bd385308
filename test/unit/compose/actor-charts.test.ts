// The chart of an actor that is followed: a machine within it has a chart of its own, by what its state says.
import { create } from "@bufbuild/protobuf";
import { expect } from "chai";
import { createMachine, setup } from "xstate";
import { failure } from "../../../src/base/errors.ts";
import { readMachine } from "../../../src/charts/read-machine.ts";
import { litCharts } from "../../../src/compose/actor-charts.ts";
import type { RolloutClient } from "../../../src/compose/rollout-client.ts";
import { GetKeyResponseSchema } from "../../../src/gen/rollout/v1/keys_pb.ts";
import { writeActorState } from "../../../src/runtime/actor-state.ts";
import { failureOf } from "../../support/rejection.ts";
import { VirtualClock } from "../../support/virtual-clock.ts";

const wrapper = createMachine({ id: "wrapper", initial: "folding", states: { folding: {}, taped: {} } });
const packer = setup({ actors: { "paper/wrap": wrapper } }).createMachine({
  ...{ id: "packer", initial: "idle" },
  states: { idle: { on: { pack: "packing" } }, packing: { invoke: { src: "paper/wrap", id: "wrap" } } },
});
const order = setup({ actors: { packer } }).createMachine({
  ...{ id: "order", initial: "cart" },
  states: { cart: { on: { pay: "paid" } }, paid: { invoke: { src: "packer", id: "box" } } },
});
const type = { name: "order", machine: order, model: readMachine(order), structure: null };

interface Seen {
  readonly value?: string;
  readonly source?: string;
  readonly isOver?: boolean;
}

/** The charts that are drawn when the actor is seen so, one after the other; null: the run has none of that name. */
async function drawn(
  actor: string,
  answers: readonly (Seen | null)[],
  isOnce = false,
): Promise<(readonly [string, unknown, number])[]> {
  const left = [...answers];
  const keyCalls = {
    getKey: async () => {
      const seen = left.shift();
      if (seen === undefined || seen === null) throw failure("key_unknown", { key: actor });
      const { value, source, isOver = false } = seen;
      const snapshot = { status: "active", value: value ?? "", context: {} };
      const state = { type: "order", version: 1, events: 1, tags: [], snapshot, ...(source && { source }) };
      return create(GetKeyResponseSchema, {
        ...{ key: { key: actor }, after: String(left.length + 1), end: isOver },
        ...(value !== undefined && { state: writeActorState(state) }),
      });
    },
  } as unknown as RolloutClient["keyCalls"];
  const charts: (readonly [string, unknown, number])[] = [];
  const { signal } = new AbortController();
  const read = async <Result>(reading: () => Promise<Result>): Promise<Result> => reading();
  for await (const { machine, value } of litCharts(
    { keyCalls },
    { actor, type, clock: new VirtualClock(), isOnce, signal, read },
  ))
    charts.push([machine.name, value, machine.model.states.length]);
  return charts;
}

describe("the chart of a durable actor", () => {
  it("is that of its type, once for each state that it comes to", async () => {
    const seen = [
      {},
      { value: "cart" },
      { value: "cart" },
      { value: "paid" },
      { value: "paid", isOver: true },
    ];
    expect(await drawn("order/1", seen)).to.deep.equal([
      ["order", null, 3],
      ["order", "cart", 3],
      ["order", "paid", 3],
    ]);
  });

  it("is its own for a machine within it, and within that one, while they are there", async () => {
    const box = { source: "packer" };
    expect(
      await drawn("order/1/box", [
        null,
        {},
        { value: "idle", ...box },
        { value: "packing", ...box },
        null,
        { value: "packing", ...box, isOver: true },
      ]),
    ).to.deep.equal([
      ["order/packer", "idle", 3],
      ["order/packer", "packing", 3],
    ]);
    const wrap = { value: "taped", source: "packer/paper%2Fwrap" };
    expect(await drawn("order/1/box/wrap", [wrap], true)).to.deep.equal([
      ["order/packer/paper%2Fwrap", "taped", 3],
    ]);
  });

  it("is refused where nothing says which it is, and where the code has no such machine", async () => {
    const reasonOf = async (actor: string, seen: Seen | null): Promise<string> => {
      const { code, message } = await failureOf(drawn(actor, [seen], true));
      return `${code}: ${message}`;
    };
    expect(await reasonOf("order/1/box", null)).to.contain("actor_unknown");
    expect(await reasonOf("order/1/box", {})).to.match(/^machine_unusable: .*order\/1\/box.*no state yet/);
    expect(await reasonOf("order/1/box", { value: "x", source: "carrier" })).to.match(
      /^machine_unusable: .*order has no machine carrier/,
    );
  });
});
