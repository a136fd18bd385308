import { expect } from "chai";
import { assign, cancel, createActor, createMachine, fromCallback, fromPromise, raise } from "xstate";
import { enqueueActions, sendParent, sendTo, setup, spawnChild, stopChild } from "xstate";
import type { AnyActorRef, AnyStateMachine } from "xstate";
import { actorPlace } from "../../../../../src/base/actor-address.ts";
import { actor } from "../../../../../src/actors.ts";
import { readActorState, writeActorState } from "../../../../../src/runtime/actor-state.ts";
import type { ActorState } from "../../../../../src/runtime/actor-state.ts";
import { ActorSteps } from "../../../../../src/worker/backends/actor/actor-step.ts";
import type { Incoming, Step } from "../../../../../src/worker/backends/actor/actor-step.ts";
import { defineActor } from "../../../../../src/worker/backends/actor/define-actor.ts";
import { readIncoming } from "../../../../../src/worker/backends/actor/incoming.ts";
import type { Ask, ComingOrigin } from "../../../../../src/worker/backends/key-asks.ts";

/** An actor of a machine, whose state goes through its bytes between any two steps, each with code loaded anew. */
class Rig {
  readonly #machine: AnyStateMachine;
  readonly #key: string;
  state: ActorState | undefined;
  last: Step | undefined;

  constructor(machine: AnyStateMachine, key = "order/17") {
    this.#machine = machine;
    this.#key = key;
  }

  take(incoming: Incoming): readonly Ask[] {
    const hasType = (type: string): boolean => type === "order" || type === "stock";
    const steps = new ActorSteps(
      "order",
      defineActor({ machine: this.#machine }),
      1,
      createActor as never,
      hasType,
    );
    const place = actorPlace(this.#key);
    if (place === undefined) throw new Error("it is no key");
    const { state } = this;
    this.last = steps.step(state && readActorState(writeActorState(state)), incoming, place);
    this.state = this.last.state;
    return this.last.asks;
  }

  send(event: { readonly type: string; readonly [member: string]: unknown }): readonly Ask[] {
    return this.take({ kind: "event", event, hasReferences: false });
  }

  /** The same from inside, by its bytes. */
  from(origin: ComingOrigin, payload: unknown): readonly Ask[] {
    const text = typeof payload === "string" ? payload : JSON.stringify(payload);
    const incoming = readIncoming(origin, Buffer.from(text));
    if (incoming === undefined) throw new Error("it is refused");
    return this.take(incoming);
  }

  get value(): unknown {
    return this.state?.snapshot.value;
  }
}

const work = fromPromise<number, { n: number }>(() => Promise.resolve(1));
const echo = createMachine({
  initial: "on",
  states: { on: { on: { stop: "off" } }, off: { type: "final" } },
});
const setUp = setup({
  types: {
    context: {} as { kid?: AnyActorRef; n: number; seen?: unknown },
    input: {} as { readonly parent: AnyActorRef | undefined },
  },
  actors: { work, echo },
  actions: { notify: (_, _params: { n: number }) => undefined, bare: () => undefined },
});

describe("a step of an actor", () => {
  describe("with invocations", () => {
    const machine = setUp.createMachine({
      context: { n: 4 },
      initial: "idle",
      states: {
        idle: { on: { go: "busy" } },
        busy: {
          invoke: {
            id: "pay",
            src: "work",
            input: ({ context }) => ({ n: context.n }),
            onDone: { target: "paid", actions: assign({ seen: ({ event }) => event.output }) },
            onError: { target: "idle", actions: assign({ seen: ({ event }) => event.error }) },
          },
          on: { again: { target: "busy", reenter: true }, leave: "idle" },
        },
        paid: {},
      },
    });

    it("asks for one with its input, and goes on by its outcome", () => {
      const order = new Rig(machine);
      expect(order.send({ type: "go" })).to.deep.equal([
        { kind: "invocation", id: "pay", source: "work", input: `{"n":4}` },
      ]);
      expect(order.state?.children).to.deep.equal({ pay: { src: "work", kind: "promise" } });
      // Its end has been heard of: there is nothing to stop.
      expect(order.from({ kind: "outcome", id: "pay" }, 7)).to.deep.equal([]);
      expect([order.value, order.state?.snapshot.context]).to.deep.equal(["paid", { n: 4, seen: 7 }]);
      expect(order.state).not.to.have.property("children");
    });

    it("goes on by its failure, whose message a context can keep", () => {
      const order = new Rig(machine);
      order.send({ type: "go" });
      order.from({ kind: "failure", id: "pay" }, "the card is refused");
      expect(order.value).to.equal("idle");
      expect(order.state?.snapshot.context).to.deep.include({ seen: { message: "the card is refused" } });
    });

    it("stops one that its state leaves, and starts another when the state is entered again", () => {
      const order = new Rig(machine);
      order.send({ type: "go" });
      expect(order.send({ type: "again" }).map(({ kind }) => kind)).to.deep.equal(["stop", "invocation"]);
      expect(order.send({ type: "leave" })).to.deep.equal([{ kind: "stop", id: "pay" }]);
    });

    it("takes no outcome of one that was left", () => {
      const order = new Rig(machine);
      order.send({ type: "go" });
      order.send({ type: "leave" });
      const before = order.state;
      expect(order.from({ kind: "outcome", id: "pay" }, 7)).to.deep.equal([]);
      expect(JSON.stringify(order.state)).to.equal(JSON.stringify(before));
    });
  });

  describe("with children", () => {
    const machine = setUp.createMachine({
      context: { n: 0 },
      on: {
        spawn: { actions: assign({ kid: ({ spawn }) => spawn("echo", { id: "kid" }) }) },
        nameless: { actions: assign({ kid: ({ spawn }) => spawn("echo") }) },
        tell: { actions: sendTo(({ context }) => context.kid as AnyActorRef, { type: "hello" }) },
        byName: { actions: sendTo("kid", { type: "hello" }) },
        drop: { actions: stopChild(({ context }) => context.kid as AnyActorRef) },
        both: { actions: [spawnChild("echo", { id: "one" }), stopChild("one")] },
        inline: { actions: assign(({ spawn }) => ({ kid: spawn(createMachine({})) })) },
        system: { actions: assign(({ spawn }) => ({ kid: spawn("echo", { systemId: "all" } as never) })) },
        slash: { actions: assign(({ spawn }) => ({ kid: spawn("echo", { id: "a/b" }) })) },
        fill: {
          actions: enqueueActions(({ enqueue }) => {
            for (let at = 0; at < 65; at++) enqueue.spawnChild("echo", { id: `k${at}` });
          }),
        },
      },
    });
    const TOLD = [{ kind: "send", to: "order/17/kid", event: `{"type":"hello"}`, onlyIfThere: true }];

    it("starts one that an assign spawns, and knows it again by the reference that the context keeps", () => {
      const order = new Rig(machine);
      expect(order.send({ type: "spawn" })).to.deep.equal([
        { kind: "child", id: "kid", source: "echo", input: "" },
      ]);
      expect(order.state?.snapshot.context).to.deep.equal({
        n: 0,
        kid: { xstate$$type: 1, key: "order/17/kid" },
      });
      expect(order.send({ type: "tell" })).to.deep.equal(TOLD);
      expect(order.send({ type: "byName" })).to.deep.equal(TOLD);
      expect(order.send({ type: "drop" })).to.deep.equal([{ kind: "stop", id: "kid" }]);
      expect(order.send({ type: "tell" }), "what is gone is sent nothing").to.deep.equal([]);
      expect(order.send({ type: "drop" })).to.deep.equal([]);
    });

    it("never takes a new child for an old one of the same id", () => {
      const order = new Rig(
        setUp.createMachine({
          context: { n: 0 },
          on: {
            spawn: { actions: spawnChild("echo", { id: "kid" }) },
            keep: {
              actions: assign({ kid: ({ self }) => self.getSnapshot().children["kid"] as AnyActorRef }),
            },
            drop: { actions: stopChild("kid") },
            tell: { actions: sendTo(({ context }) => context.kid as AnyActorRef, { type: "hello" }) },
          },
        }),
      );
      for (const type of ["spawn", "keep", "drop", "spawn"]) order.send({ type });
      expect(order.send({ type: "tell" })).to.deep.equal([]);
    });

    it("tells one that has ended nothing, and neither stops it", () => {
      const order = new Rig(machine);
      order.send({ type: "spawn" });
      order.from({ kind: "outcome", id: "kid" }, "");
      for (const type of ["tell", "byName", "drop"]) expect(order.send({ type }), type).to.deep.equal([]);
    });

    it("gives ids of the actor's own to those that have none, whichever process it is in", () => {
      const order = new Rig(machine);
      const ids = [
        order.send({ type: "nameless" }),
        order.send({ type: "tell" }),
        order.send({ type: "nameless" }),
      ]
        .flat()
        .flatMap((ask) => (ask.kind === "child" ? [ask.id] : []));
      expect(ids).to.deep.equal(["x:0", "x:1"]);
    });

    it("asks for nothing that it takes back at once", () => {
      expect(new Rig(machine).send({ type: "both" })).to.deep.equal([]);
    });

    const REFUSED = [
      ["inline", /spawns an actor without a name/],
      ["system", /with systemId: actors share nothing/],
      ["slash", /an id is not empty and has no \//],
      ["fill", /more than 64 live invocations and children/],
    ] as const;
    for (const [type, words] of REFUSED)
      it(`fails an event by which it would start ${type}`, () => {
        expect(() => new Rig(machine).send({ type })).to.throw(words);
      });

    it("begins a child by its input, with references to its parent in it", () => {
      const child = setUp.createMachine({
        context: ({ input }) => ({ n: 0, ...(input.parent !== undefined && { kid: input.parent }) }),
        entry: [
          sendParent({ type: "up" }),
          sendTo(({ context }) => context.kid as AnyActorRef, { type: "hello" }),
        ],
      });
      const parent = setUp
        .createMachine({
          context: { n: 0 },
          invoke: {
            id: "kid",
            src: "echo",
            input: ({ self }: { self: unknown }) => ({ parent: self }),
          } as never,
        })
        .provide({ actors: { echo: child as never } });
      const [start] = new Rig(parent).send({ type: "begin" });
      if (start?.kind !== "child") throw new Error("it starts no child");
      const kid = new Rig(parent, "order/17/kid");
      const asks = kid.from({ kind: "start", source: start.source, parent: "order/17" }, start.input);
      const sent = (type: string): object => ({
        kind: "send",
        to: "order/17",
        event: `{"type":"${type}"}`,
        onlyIfThere: true,
      });
      expect(asks).to.deep.equal([sent("up"), sent("hello")]);
      expect(kid.state).to.include({ type: "order", source: "echo", events: 0 });
      expect(kid.from({ kind: "mail", key: "order/17" }, { type: "x" })).to.deep.equal([]);
    });

    it("ends a child whose machine throws, with the error, and fails an actor that is nobody's", () => {
      const broken = setUp.createMachine({
        context: { n: 0 },
        on: {
          break: {
            actions: assign(() => {
              throw new RangeError("it is broken");
            }),
          },
        },
      });
      const parent = setUp
        .createMachine({ context: { n: 0 } })
        .provide({ actors: { echo: broken as never } });
      const kid = new Rig(parent, "order/17/kid");
      kid.from({ kind: "start", source: "echo", parent: "order/17" }, "");
      expect(kid.from({ kind: "mail", key: "order/17" }, { type: "break" })).to.deep.equal([]);
      expect(kid.last).to.have.property("error", "it is broken");
      expect(kid.state?.snapshot.status).to.equal("error");
      expect(() => new Rig(broken).send({ type: "break" })).to.throw("it is broken");
    });

    it("fails an event that nobody handles the failure of, with its words", () => {
      const order = new Rig(machine);
      order.send({ type: "spawn" });
      expect(() => order.from({ kind: "failure", id: "kid" }, "it is broken")).to.throw("it is broken");
    });

    it("begins a child by its start alone", () => {
      const kid = new Rig(machine, "order/17/kid");
      expect(() => kid.from({ kind: "mail", key: "order/17" }, { type: "x" })).to.throw(
        /actor_done: there is no/,
      );
      expect(() => new Rig(machine).from({ kind: "start", source: "echo", parent: "x" }, "")).to.throw(
        /actor_done/,
      );
    });
  });

  describe("with timers", () => {
    const machine = setUp.createMachine({
      context: { n: 0 },
      initial: "a",
      states: { a: { after: { 50: "b" }, on: { leave: "b", loop: { target: "a", reenter: true } } }, b: {} },
      on: {
        remind: { actions: raise({ type: "ring" }, { delay: 2 ** 40, id: "bell" }) },
        hush: { actions: cancel("bell") },
        twice: {
          actions: [
            raise({ type: "one" }, { delay: 1, id: "t" }),
            raise({ type: "two" }, { delay: 2, id: "t" }),
          ],
        },
        unset: { actions: [raise({ type: "one" }, { delay: 1, id: "t" }), cancel("t")] },
        later: { actions: sendTo(actor("stock", "tea"), { type: "take" }, { delay: 9.5 }) },
        never: { actions: raise({ type: "one" }, { delay: Infinity }) },
      },
    });
    const AFTER = "xstate.after.50.(machine).a";

    it("sets one when its state is entered, and leaves it with the state", () => {
      const order = new Rig(machine);
      const own = { to: undefined, onlyIfThere: false };
      expect(order.send({ type: "begin" })).to.deep.equal([
        { kind: "timer", id: AFTER, delayMs: 50, event: `{"type":"${AFTER}"}`, ...own },
      ]);
      expect(order.send({ type: "loop" }).map(({ kind }) => kind)).to.deep.equal(["cancel", "timer"]);
      expect(order.from({ kind: "timer", id: AFTER }, { type: AFTER })).to.deep.equal([
        { kind: "cancel", id: AFTER },
      ]);
      expect(order.value).to.equal("b");
    });

    it("takes the event of a state's timer from a timer alone", () => {
      const forged = Buffer.from(JSON.stringify({ type: AFTER }));
      expect(readIncoming(undefined, forged)).to.equal(undefined);
      expect(readIncoming({ kind: "mail", key: "stock/tea" }, forged)).to.equal(undefined);
      const done = Buffer.from(`{"type":"xstate.done.actor.pay"}`);
      expect(readIncoming({ kind: "timer", id: "x" }, done)).to.equal(undefined);
    });

    it("sets, cancels and replaces its own, and sends to others when it is time", () => {
      const order = new Rig(machine);
      order.send({ type: "leave" });
      const [bell] = order.send({ type: "remind" });
      expect(bell).to.include({ kind: "timer", id: "bell", delayMs: 2 ** 40 });
      expect(order.send({ type: "hush" })).to.deep.equal([{ kind: "cancel", id: "bell" }]);
      expect(order.send({ type: "twice" }))
        .to.have.length(1)
        .and.to.have.nested.property("[0].delayMs", 2);
      expect(order.send({ type: "unset" })).to.deep.equal([{ kind: "cancel", id: "t" }]);
      expect(order.send({ type: "later" })[0]).to.deep.include({
        kind: "timer",
        to: "stock/tea",
        delayMs: 10,
        onlyIfThere: false,
      });
      expect(() => order.send({ type: "never" })).to.throw(/delay of one is Infinity/);
    });

    it("names those that have no id so that no two of an actor are the same", () => {
      const order = new Rig(machine);
      order.send({ type: "leave" });
      const ids = [1, 2]
        .map(() => order.send({ type: "later" }).map((ask) => ask.kind === "timer" && ask.id))
        .flat();
      expect(new Set(ids).size).to.equal(2);
    });
  });

  describe("with messages and actions", () => {
    const machine = setUp.createMachine({
      context: { n: 3 },
      on: {
        take: { actions: sendTo(actor("stock", "tea"), ({ self }) => ({ type: "take", by: self })) },
        reply: {
          actions: sendTo(({ event }) => (event as unknown as { by: AnyActorRef }).by, { type: "taken" }),
        },
        own: { actions: sendTo(({ self }) => self, { type: "again" }) },
        forge: { actions: sendTo(actor("stock", "tea"), { type: "xstate.done.actor.pay" }) },
        nowhere: { actions: sendTo(actor("door", "1"), { type: "open" }) },
        stray: { actions: sendTo(() => createActor(createMachine({})), { type: "open" }) },
        many: {
          actions: enqueueActions(({ enqueue }) => {
            for (let at = 0; at < 257; at++) enqueue.sendTo(actor("stock", "tea"), { type: "take" });
          }),
        },
        large: { actions: sendTo(actor("stock", "tea"), { type: "take", all: "x".repeat(2 ** 20) }) },
        date: { actions: sendTo(actor("stock", "tea"), { type: "take", at: new Map() }) },
        notify: { actions: [{ type: "notify", params: ({ context }) => ({ n: context.n }) }, "bare"] },
        unnamed: { actions: enqueueActions(({ enqueue }) => enqueue(() => undefined)) },
        keep: { actions: assign({ kid: () => createActor(createMachine({})) }) },
      },
    });

    it("sends references that the other can answer to", () => {
      const [sent] = new Rig(machine).send({ type: "take" });
      expect(sent).to.deep.equal({
        ...{ kind: "send", to: "stock/tea", onlyIfThere: false },
        event: `{"type":"take","by":{"xstate$$type":1,"key":"order/17"}}`,
      });
      const other = new Rig(machine, "order/18");
      const by = { xstate$$type: 1, key: "order/17" };
      expect(other.from({ kind: "mail", key: "order/17" }, { type: "reply", by })[0]).to.include({
        to: "order/17",
      });
      // An event from outside has none, whatever it looks like.
      expect(() => other.send({ type: "reply", by })).to.throw(/no reference to an actor/);
    });

    it("sends to itself as to others", () => {
      expect(new Rig(machine).send({ type: "own" })[0]).to.include({
        kind: "send",
        to: "order/17",
        onlyIfThere: true,
      });
    });

    const REFUSED = [
      ["forge", /such events come from XState alone/],
      ["nowhere", /to door\/1, and there are no actors door/],
      ["stray", /no reference to an actor/],
      ["many", /sends 257 events at once; 256 are allowed/],
      ["large", /bytes beside its state; 1048576 are allowed/],
      ["date", /event take\.at is a Map, which JSON cannot hold/],
      ["unnamed", /action .* without a name/],
      ["keep", /context\.kid has a reference to an actor that is none of the run/],
    ] as const;
    for (const [type, words] of REFUSED)
      it(`fails an event that would ${type}`, () => {
        expect(() => new Rig(machine).send({ type })).to.throw(words);
      });

    it("puts by what a named action is given, and no more than it takes", () => {
      const asks = new Rig(machine).send({ type: "notify" });
      const given = { params: { n: 3 }, context: { n: 3 }, event: { type: "notify" } };
      expect(asks).to.deep.equal([
        { kind: "action", type: "notify", params: JSON.stringify(given) },
        { kind: "action", type: "bare", params: "{}" },
      ]);
    });

    it("asks for nothing that would be over with it", () => {
      const order = new Rig(
        setUp.createMachine({
          context: { n: 0 },
          initial: "a",
          states: {
            a: {
              invoke: { id: "pay", src: "work", input: { n: 1 } },
              after: { 5: "end" },
              on: { go: "end" },
            },
            end: { type: "final", entry: [sendTo(actor("stock", "tea"), { type: "take" }), "bare"] },
          },
        }),
      );
      order.send({ type: "begin" });
      expect(order.send({ type: "go" }).map(({ kind }) => kind)).to.deep.equal(["send", "action"]);
    });
  });

  it("refuses a state whose child this code has no logic for", () => {
    const spawning = (src: string): AnyStateMachine =>
      setup({ actors: { [src]: echo } }).createMachine({
        on: { go: { actions: spawnChild(src as never, { id: "kid" }) } },
      });
    const order = new Rig(spawning("first"));
    order.send({ type: "go" });
    const other = new Rig(spawning("second"));
    other.state = order.state;
    expect(() => other.send({ type: "go" })).to.throw(/^state_refused: .*first/);
  });

  it("is refused the machine that starts what lives in one process, at any depth, with the state", () => {
    const bad = setup({ actors: { tick: fromCallback(() => undefined) } }).createMachine({
      initial: "a",
      states: { a: { invoke: { src: "tick" } } },
    });
    const around = setup({ actors: { bad } }).createMachine({ invoke: { src: "bad" } });
    expect(() => new Rig(around).send({ type: "x" })).to.throw(
      /in bad: state a invokes tick, which is neither/,
    );
  });
});
