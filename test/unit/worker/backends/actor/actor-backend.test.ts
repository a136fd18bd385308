import { expect } from "chai";
import { mkdir, symlink } from "node:fs/promises";
import { join } from "node:path";
import { repositoryFile } from "../../../../../scripts/generate-docs.ts";
import { readActorState } from "../../../../../src/runtime/actor-state.ts";
import type { ActorState } from "../../../../../src/runtime/actor-state.ts";
import type { Outcome } from "../../../../../src/worker/backends/backend.ts";
import type { KeyOrigin } from "../../../../../src/worker/backends/key-asks.ts";
import type { CodeBackend } from "../../../../../src/worker/backends/code/code-backend.ts";
import { executeText, useCodeRig } from "../../../../support/code-rig.ts";
import type { Executed, ExecuteOptions } from "../../../../support/code-rig.ts";
import { itemId } from "../../../../support/scripted-coordinator.ts";

const ORDER = `
import { defineActor } from "rollout/actors";
import { assign, setup } from "xstate";
const machine = setup({
  types: { context: {} as { id: string; items: unknown[] }, input: {} as { id: string }, tags: {} as "open" },
}).createMachine({
  context: ({ input }) => ({ id: input.id, items: [] }),
  initial: "cart",
  states: {
    cart: {
      tags: "open",
      on: {
        add: { actions: assign({ items: ({ context, event }) => [...context.items, event.item] }) },
        spoil: { actions: assign({ items: () => [new Date(0)] as any }) },
        fail: { actions: assign(() => { throw new RangeError("no such item"); }) },
        pay: "paid",
      },
    },
    paid: { on: { ship: "shipped" } },
    shipped: { type: "final" },
  },
  output: ({ context }) => context.items.length,
});
export const order = defineActor({ machine });
export const plain = machine;
`;

const KEY = "order/17";

class Actor {
  readonly #backend: CodeBackend;
  readonly #key: string;
  state: Uint8Array | undefined;

  constructor(backend: CodeBackend, key = KEY, state?: Uint8Array) {
    this.#backend = backend;
    this.#key = key;
    this.state = state;
  }

  /** Sends an event; keeps the state, as a key does, when that succeeds. */
  async send(event: unknown): Promise<Outcome> {
    const keyed = { key: this.#key, state: this.state };
    const { outcome } = await executeText(this.#backend, JSON.stringify(event), { keyed });
    if (outcome.kind === "success" && outcome.state instanceof Uint8Array) this.state = outcome.state;
    return outcome;
  }

  async result(event: unknown): Promise<unknown> {
    const outcome = await this.send(event);
    if (outcome.kind !== "success") throw new Error(JSON.stringify(outcome));
    return JSON.parse(Buffer.from(outcome.output).toString());
  }

  get kept(): ActorState | undefined {
    return this.state && readActorState(this.state);
  }
}

describe("the actor backend", () => {
  const rig = useCodeRig();

  it("makes an actor of its first event, and goes on from the state that each event leaves", async () => {
    const order = new Actor(await rig().actor(ORDER, ["order"]));
    expect(await order.result({ type: "add", item: "tea" })).to.deep.equal({
      ...{ value: "cart", status: "active", tags: ["open"], output: null },
    });
    await order.result({ type: "add", item: "cup" });
    await order.result({ type: "pay" });
    expect(order.kept?.snapshot.context).to.deep.equal({ id: "17", items: ["tea", "cup"] });
    expect(await order.result({ type: "ship" })).to.deep.equal({
      ...{ value: "shipped", status: "done", tags: [], output: 2 },
    });
    expect(order.kept).to.include({ type: "order", version: 1, events: 4 });
  });

  it("keeps the state before an event that throws, and one that JSON does not hold, named by its path", async () => {
    const order = new Actor(await rig().actor(ORDER, ["order"]));
    await order.result({ type: "add", item: "tea" });
    const before = order.state;
    expect(await order.send({ type: "fail" })).to.deep.include({ kind: "error" });
    const spoilt = await order.send({ type: "spoil" });
    expect(spoilt).to.have.property("message").that.includes("context.items[0] is a Date");
    expect(spoilt).not.to.have.property("isPermanent");
    expect(order.state).to.equal(before);
  });

  it("fails an event to a final actor at once, and spares its key", async () => {
    const order = new Actor(await rig().actor(ORDER, ["order"]));
    await order.result({ type: "pay" });
    await order.result({ type: "ship" });
    const late = await order.send({ type: "add" });
    expect(late).to.include({ kind: "error", isPermanent: true, sparesKey: true });
    expect(late)
      .to.have.property("message")
      .that.matches(/^actor_done: order\/17 is final/);
  });

  const FOREIGN: readonly [what: string, key: string, event: unknown, words: RegExp][] = [
    ["an event without a type", KEY, { item: 1 }, /no event/],
    ["a text", KEY, "add", /no event/],
    ["a list", KEY, ["add"], /no event/],
    ["an event of XState's own", KEY, { type: "xstate.done.actor.pay" }, /does not begin with xstate/],
    ["a type that is not there", "stock/1", { type: "add" }, /stock\/1 names no actor.* order$/],
    ["a key without a type", "17", { type: "add" }, /17 names no actor/],
    ["an id with a slash", "order/17/x", { type: "add" }, /names no actor/],
  ];
  for (const [what, key, event, words] of FOREIGN)
    it(`refuses ${what} for good`, async () => {
      const outcome = await new Actor(await rig().actor(ORDER, ["order"]), key).send(event);
      expect(outcome).to.include({ kind: "error", isPermanent: true });
      expect(outcome).not.to.have.property("sparesKey");
      expect(outcome).to.have.property("message").that.matches(words);
    });

  it("goes on from history after a restore", async () => {
    const player = new Actor(
      await rig().actor(
        `import { defineActor } from "rollout/actors";
import { createMachine } from "xstate";
export const player = defineActor({ machine: createMachine({
  initial: "playing",
  states: {
    playing: { initial: "slow", on: { stop: "stopped" }, states: { slow: { on: { faster: "fast" } }, fast: {}, last: { type: "history" } } },
    stopped: { on: { play: "playing.last" } },
  },
}) });`,
        ["player"],
      ),
      "player/1",
    );
    for (const type of ["faster", "stop"]) await player.result({ type });
    expect(await player.result({ type: "play" })).to.deep.include({ value: { playing: "fast" } });
  });

  describe("with work that an actor has given away", () => {
    const SHOP = `
import { defineActor } from "rollout/actors";
import { fromPromise, setup } from "xstate";
const machine = setup({
  types: { context: {} as { n: number } },
  actors: {
    charge: fromPromise(async ({ input, self, signal }: any) => {
      console.log("charging", input.cents);
      if (input.cents === 13) throw new RangeError("no luck");
      if (input.cents === 14) await new Promise((_, reject) => signal.addEventListener("abort", () => reject(new Error("told"))));
      if (input.cents === 15) return new Date(0);
      return { paid: input.cents, id: self.id };
    }),
  },
  actions: { notify: (args: any, params: any) => console.log("note", args.id.length, args.key, args.context.n, args.event.type, params.to) },
}).createMachine({ context: { n: 2 } });
export const order = defineActor({ machine, idleTtl: "1s" });
`;
    const charge = { kind: "invocation" as const, key: KEY, id: "pay", source: "charge" };
    const give = async (origin: KeyOrigin, given: unknown, more: ExecuteOptions = {}): Promise<Executed> => {
      const backend = await rig().actor(SHOP, ["order"]);
      const keyed = { key: `${KEY}\0run/pay/1`, origin };
      return executeText(backend, JSON.stringify(given), { keyed, ...more });
    };

    it("executes a promise with its input, and has its output and its log", async () => {
      const { outcome, output, log } = await give(charge, { cents: 5 });
      expect(outcome).to.deep.include({ kind: "success" }).and.not.to.have.any.keys("state", "asks");
      expect(JSON.parse(output ?? "")).to.deep.equal({ paid: 5, id: Buffer.from(itemId(1)).toString("hex") });
      expect(log).to.equal("charging 5\n");
    });

    it("fails one that rejects, with its words, and one whose output JSON does not hold", async () => {
      expect((await give(charge, { cents: 13 })).outcome).to.deep.equal({
        kind: "error",
        message: "no luck",
      });
      expect((await give(charge, { cents: 15 })).outcome).to.have.property(
        "message",
        "its output is a Date, which JSON cannot hold",
      );
    });

    it("tells one that its time is over", async () => {
      const controller = new AbortController();
      const onLog = (): void => controller.abort();
      const { outcome } = await give(charge, { cents: 14 }, { signal: controller.signal, onLog });
      expect(outcome.kind).to.equal("preempted");
    });

    it("executes a named action with what the step has put by, and an id for its idempotency", async () => {
      const given = { params: { to: "Ada" }, context: { n: 2 }, event: { type: "pay" } };
      const { outcome, log } = await give({ kind: "action", key: KEY, type: "notify" }, given);
      expect(outcome).to.deep.include({ kind: "success" });
      expect(log).to.equal(`note 64 ${KEY} 2 pay Ada\n`);
    });

    it("refuses work that this code has not, for good", async () => {
      for (const origin of [
        { ...charge, source: "gone" },
        { kind: "action" as const, key: KEY, type: "gone" },
      ]) {
        const { outcome } = await give(origin, {});
        expect(outcome).to.include({ kind: "error", isPermanent: true });
        expect(outcome)
          .to.have.property("message")
          .that.matches(/^state_refused: there is no .*gone in this code/);
      }
    });
  });

  describe("with code of another version", () => {
    const lamp = (states: string, more = ""): string => `
import { defineActor } from "rollout/actors";
import { createMachine } from "xstate";
export const lamp = defineActor({ machine: createMachine({ initial: "off", context: { n: 0 }, states: ${states} }), ${more} });`;
    const FIRST = lamp(`{ off: { on: { press: "on" } }, on: { on: { press: "off" } } }`);
    const SECOND = `{ off: { on: { press: "lit" } }, lit: { on: { press: "off" } } }`;
    const MIGRATION = `migrations: { 1: (snapshot) => ({ ...snapshot, value: snapshot.value === "on" ? "lit" : snapshot.value }) }`;

    async function pressed(): Promise<Uint8Array | undefined> {
      const actor = new Actor(await rig().actor(FIRST, ["lamp"]), "lamp/1");
      await actor.result({ type: "press" });
      return actor.state;
    }

    const refusal = async (source: string, stateVersion: number, state?: Uint8Array): Promise<Outcome> => {
      const before = state ?? (await pressed());
      const backend = await rig().actor(source, ["lamp"], { stateVersion });
      return new Actor(backend, "lamp/1", before).send({ type: "press" });
    };

    it("makes a state of the next version by its migration", async () => {
      const before = await pressed();
      const backend = await rig().actor(lamp(SECOND, MIGRATION), ["lamp"], { stateVersion: 2 });
      const actor = new Actor(backend, "lamp/1", before);
      expect(await actor.result({ type: "press" })).to.deep.include({ value: "off" });
      expect(actor.kept).to.include({ version: 2, events: 2 });
    });

    const MISFITS: readonly [what: string, source: string, stateVersion: number, words: RegExp][] = [
      ["a state that is gone", lamp(SECOND), 1, /does not fit this code: .*on/],
      ["no migration", lamp(SECOND), 2, /no migration of state_version 1/],
      [
        "a migration that throws",
        lamp(SECOND, "migrations: { 1: () => { throw new Error('lost') } }"),
        2,
        /throws.*lost/,
      ],
      [
        "a state that has become compound",
        lamp(`{ off: {}, on: { initial: "dim", states: { dim: {}, bright: {} } } }`),
        1,
        /"on" is not a whole state/,
      ],
    ];
    for (const [what, source, stateVersion, words] of MISFITS)
      it(`refuses ${what}, and never begins anew`, async () => {
        const outcome = await refusal(source, stateVersion);
        expect(outcome).to.include({ kind: "error", isPermanent: true });
        expect(outcome)
          .to.have.property("message")
          .that.matches(/^state_refused: the state of lamp\/1/);
        expect(outcome).to.have.property("message").that.matches(words);
      });

    it("refuses a state of a later version", async () => {
      const before = await pressed();
      const backend = await rig().actor(lamp(SECOND, MIGRATION), ["lamp"], { stateVersion: 2 });
      const later = new Actor(backend, "lamp/1", before);
      await later.result({ type: "press" });
      expect(await refusal(FIRST, 1, later.state))
        .to.have.property("message")
        .that.includes("it has state_version 2, and this code 1");
    });
  });

  describe("at its load", () => {
    const machine = (config: string, setUp = "{}"): string => `
import { defineActor } from "rollout/actors";
import { fromCallback, fromObservable, fromPromise, setup } from "xstate";
export const thing = defineActor({ machine: setup(${setUp}).createMachine({ initial: "a", states: ${config} }) });`;

    const REFUSED: readonly [what: string, source: string, words: RegExp][] = [
      [
        "a callback",
        machine(`{ a: { invoke: { src: "tick" } } }`, "{ actors: { tick: fromCallback(() => {}) } }"),
        /state a invokes tick, which is neither a promise nor a machine/,
      ],
      [
        "an observable that nothing invokes",
        machine(`{ a: {} }`, "{ actors: { ticks: fromObservable(() => ({ subscribe() {} }) as never) } }"),
        /its actor ticks is neither a promise nor a machine/,
      ],
      [
        "an actor that is nowhere",
        machine(`{ a: { invoke: { src: "pay" as never } } }`),
        /state a invokes pay, which is not implemented/,
      ],
      [
        "a name for all actors",
        machine(
          `{ a: { invoke: { src: "p", systemId: "one" } } }`,
          "{ actors: { p: fromPromise(async () => 1) } }",
        ),
        /state a invokes p with systemId: actors share nothing/,
      ],
      [
        "an action without a name",
        machine(`{ a: { entry: () => {} } }`),
        /state a has an action without a name/,
      ],
      [
        "an action that is nowhere, with all else",
        machine(`{ a: { initial: "c", states: { c: { entry: "act" }, d: { after: { soon: "c" } } } } }`),
        /state a\.c has action act, which is not implemented; state a\.d waits for soon, which is no delay/,
      ],
      [
        "a machine that defineActor has not seen",
        ORDER.replace("order = defineActor({ machine })", "thing = machine"),
        /export thing is none that defineActor/,
      ],
      ["an export that is not there", ORDER, /no export thing, only order, plain/],
      [
        "an option that is not known",
        ORDER.replace("defineActor({ machine })", "defineActor({ machine, ttl: 1 } as any)"),
        /defineActor knows no ttl: it takes machine, actors, migrations, idleTtl/,
      ],
      [
        "a time that is none",
        ORDER.replace("defineActor({ machine })", `defineActor({ machine, idleTtl: "soon" })`),
        /the idleTtl of an actor is "soon"/,
      ],
    ];
    it("refuses a copy of XState that is too old, with both versions", async () => {
      const modules = rig().directory.file("node_modules");
      await mkdir(modules);
      await symlink(repositoryFile("node_modules/xstate-5.0"), join(modules, "xstate"));
      const backend = await rig().actor(ORDER, ["order"]);
      expect(await backend.prepare()).to.contain("it uses XState 5.0.2, and actors need 5.33 or newer");
    });

    for (const [what, source, words] of REFUSED)
      it(`refuses ${what}`, async () => {
        const backend = await rig().actor(source, ["thing"]);
        expect(await backend.prepare()).to.match(words);
      });
  });
});
