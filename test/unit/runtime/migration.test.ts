// Snapshots of older charts, through the whole way: written by a system over the old chart, read by one over the new.
import { expect } from "chai";
import { assign, setup } from "xstate";
import type { AnyStateMachine } from "xstate";
import type { Chart, Migration } from "../../../machines/migration.ts";
import type { RolloutError } from "../../../src/base/errors.ts";
import { actorRecord } from "../../../src/runtime/snapshot.ts";
import { encodeRecord } from "../../../src/storage/codec.ts";
import { actorKey } from "../../../src/storage/keys.ts";
import { ActorHost } from "./actor-host.ts";
import { failureOf } from "../../support/rejection.ts";

const ADDRESS = "lamp/1";

const kit = setup({
  types: { context: {} as { turns: number; colour?: string } },
  actions: { turn: assign({ turns: ({ context }) => context.turns + 1 }), glow: () => {}, warm: () => {} },
});

/** The first lamp: on or off. */
const first = kit.createMachine({
  id: "lamp",
  version: "1",
  context: { turns: 0 },
  initial: "Off",
  states: {
    Off: { on: { turn: { target: "On", actions: ["turn", "glow"] } } },
    On: { on: { turn: { target: "Off", actions: "turn" } } },
  },
});

/** The second has a colour, and calls its states by other names. */
const second = kit.createMachine({
  id: "lamp",
  version: "2",
  context: { turns: 0, colour: "white" },
  initial: "Dark",
  states: {
    Dark: { on: { turn: { target: "Lit", actions: ["turn", "glow"] } } },
    Lit: { on: { turn: { target: "Dark", actions: "turn" } } },
  },
});

/** The third warms up before it shines: a leaf has become compound. */
const third = kit.createMachine({
  id: "lamp",
  version: "3",
  context: { turns: 0, colour: "white" },
  initial: "Dark",
  states: {
    Dark: { on: { turn: { target: "Lit", actions: ["turn", "glow"] } } },
    Lit: {
      initial: "Warming",
      on: { turn: { target: "Dark", actions: "turn" } },
      states: { Warming: { entry: "warm", on: { warm: "Shining" } }, Shining: {} },
    },
  },
});

const toSecond: Migration = {
  from: "1",
  to: "2",
  migrate: ({ value, context }) => ({
    value: value === "On" ? "Lit" : "Dark",
    context: { ...(context as object), colour: "white" },
  }),
};
const toThird: Migration = {
  from: "2",
  to: "3",
  migrate: ({ value, context }) => ({ value: value === "Lit" ? { Lit: "Shining" } : value, context }),
};

const chart = (machine: AnyStateMachine, ...migrations: readonly Migration[]): Record<string, Chart> => ({
  lamp: { machine, migrations },
});

/** A disk with a lamp of this chart that was turned so many times. */
async function hostWithLamp(machine: AnyStateMachine, turns: number): Promise<ActorHost> {
  const host = new ActorHost();
  const system = await host.open({ charts: chart(machine) });
  await system.spawn(ADDRESS, "lamp", undefined);
  for (let turn = 0; turn < turns; turn++) await system.send(ADDRESS, { type: "turn" });
  await host.clock.advance();
  await system.close();
  return host;
}

async function refusal(host: ActorHost, charts: Record<string, Chart>): Promise<RolloutError> {
  const before = await host.store.get(actorKey(ADDRESS));
  const error = await failureOf(host.open({ charts }));
  expect(await host.store.get(actorKey(ADDRESS)), "what is refused is left as it is").to.deep.equal(before);
  return error;
}

describe("migrations of charts", () => {
  it("lead over several versions, and the actor goes on from there", async () => {
    const host = await hostWithLamp(first, 3);
    const system = await host.open({ charts: chart(third, toSecond, toThird) });
    expect(system.stateOf(ADDRESS)).to.equal("Lit.Shining");
    expect(system.contextOf(ADDRESS)).to.deep.equal({ turns: 3, colour: "white" });
    expect(await system.send(ADDRESS, { type: "turn" })).to.deep.equal({ kind: "moved", state: "Dark" });
    expect(await host.recordOf(ADDRESS)).to.deep.include({
      version: "3",
      value: "Dark",
      context: { turns: 4, colour: "white" },
    });
  });

  it("begin where the snapshot stands", async () => {
    const host = await hostWithLamp(second, 1);
    const system = await host.open({ charts: chart(third, toSecond, toThird) });
    expect(system.stateOf(ADDRESS)).to.equal("Lit.Shining");
  });

  it("are written with the next step; until then the disk is as the older version left it", async () => {
    const host = await hostWithLamp(first, 1);
    await (await host.open({ charts: chart(second, toSecond) })).close();
    expect(await host.recordOf(ADDRESS)).to.include({ version: "1", value: "On" });
    const back = await host.open({ charts: chart(first) });
    expect(back.stateOf(ADDRESS)).to.equal("On");
  });

  it("make the same chart of the same version, read twice", async () => {
    const host = await hostWithLamp(second, 2);
    const system = await host.open({ charts: chart(second, toSecond) });
    expect(system.contextOf(ADDRESS)).to.deep.equal({ turns: 2, colour: "white" });
  });
});

describe("a snapshot that cannot be read with certainty", () => {
  it("of a newer version is refused, naming the key and both versions", async () => {
    const error = await refusal(await hostWithLamp(third, 1), chart(second, toSecond));
    expect(error.code).to.equal("store_newer");
    expect(error.params).to.include({ key: "actors/lamp/1", found: "lamp 3", known: "2" });
  });

  it("of an older version without a migration is refused", async () => {
    const error = await refusal(await hostWithLamp(first, 1), chart(third, toThird));
    expect(error.code).to.equal("store_newer");
    expect(error.params).to.include({ found: "lamp 1", known: "3" });
  });

  it("is refused when the migrations go round in a circle", async () => {
    const back: Migration = { from: "2", to: "1", migrate: (snapshot) => snapshot };
    const error = await refusal(await hostWithLamp(first, 1), chart(third, toSecond, back));
    expect(error.code).to.equal("store_newer");
  });

  it("of a chart that is not in the registry is refused", async () => {
    const error = await refusal(await hostWithLamp(first, 1), {});
    expect(error.code).to.equal("store_newer");
    expect(error.params).to.include({ key: "actors/lamp/1", found: "lamp" });
  });

  it("of the same version with another structure is refused", async () => {
    const changed = kit.createMachine({
      id: "lamp",
      version: "1",
      context: { turns: 0 },
      initial: "Off",
      states: { Off: { on: { turn: { target: "On", actions: ["turn", "glow"] } } }, On: {} },
    });
    const error = await refusal(await hostWithLamp(first, 1), chart(changed));
    expect(error.code).to.equal("store_corrupt");
    expect(error.params).to.deep.include({
      key: "actors/lamp/1",
      reason: "chart lamp 1 has another structure",
      path: "memory",
    });
  });

  const lost: Record<string, [value: Migration["migrate"], why: string]> = {
    "names a state that the chart does not have": [
      ({ context }) => ({ value: "Broken", context }),
      "State 'Broken' does not exist",
    ],
    "names a child that the chart does not have": [
      ({ context }) => ({ value: { Lit: "Broken" }, context }),
      "State 'Broken' does not exist",
    ],
    "stands in a state that has become compound, without saying where in it": [
      ({ context }) => ({ value: "Lit", context }),
      '"Lit" is not a whole state of chart lamp 3',
    ],
    "stands in a child of what is a leaf": [
      ({ context }) => ({ value: { Dark: "Deep" }, context }),
      "does not exist",
    ],
  };
  for (const [what, [migrate, why]] of Object.entries(lost))
    it(`${what}: refused, naming the key`, async () => {
      const host = await hostWithLamp(second, 1);
      const error = await refusal(host, chart(third, { from: "2", to: "3", migrate }));
      expect(error.code).to.equal("store_corrupt");
      expect(error.params["key"]).to.equal("actors/lamp/1");
      expect(error.params["reason"]).to.include(why);
    });

  it("stands in some but not all regions: refused", async () => {
    const regions = setup({}).createMachine({
      id: "lamp",
      version: "3",
      type: "parallel",
      states: { left: { initial: "a", states: { a: {} } }, right: { initial: "b", states: { b: {} } } },
    });
    const host = await hostWithLamp(second, 1);
    const half: Migration = { from: "2", to: "3", migrate: () => ({ value: { left: "a" }, context: {} }) };
    expect((await refusal(host, chart(regions, half))).code).to.equal("store_corrupt");
    const whole: Migration = {
      from: "2",
      to: "3",
      migrate: () => ({ value: { right: "b", left: "a" }, context: {} }),
    };
    const system = await host.open({ charts: chart(regions, whole) });
    expect(system.stateOf(ADDRESS)).to.equal("a+b");
  });

  it("with a flipped bit is refused, naming the key", async () => {
    const host = await hostWithLamp(first, 1);
    const key = actorKey(ADDRESS);
    const bytes = await host.store.get(key);
    if (bytes === undefined) return expect.fail("the lamp is on the disk");
    const flipped = Uint8Array.from(bytes, (byte, at) => (at === bytes.length - 1 ? byte ^ 1 : byte));
    await host.store.commit({ puts: [{ key, value: flipped }], deletes: [], expect: [], durability: "sync" });
    const error = await refusal(host, chart(first));
    expect([error.code, error.params["key"]]).to.deep.equal(["store_corrupt", "actors/lamp/1"]);
  });

  it("with fields missing is refused, naming the key", async () => {
    const host = await hostWithLamp(first, 1);
    const key = actorKey(ADDRESS);
    const value = encodeRecord({ ...actorRecord, encode: () => ["lamp", "1"] }, key, undefined as never);
    await host.store.commit({ puts: [{ key, value }], deletes: [], expect: [], durability: "sync" });
    const error = await refusal(host, chart(first));
    expect([error.code, error.params["key"]]).to.deep.equal(["store_corrupt", "actors/lamp/1"]);
  });
});
