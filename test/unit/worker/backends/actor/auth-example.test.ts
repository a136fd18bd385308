// Two machines as other systems show them, a login with a session that ends by itself and a machine whose second version has states of another
// shape, as durable actors: each step goes through the bytes of the state.
import { expect } from "chai";
import { assign, createActor, fromPromise, setup } from "xstate";
import type { ActorSnapshot } from "../../../../../src/runtime/actor-state.ts";
import { ActorSteps } from "../../../../../src/worker/backends/actor/actor-step.ts";
import { defineActor } from "../../../../../src/worker/backends/actor/define-actor.ts";
import type { ActorType } from "../../../../../src/worker/backends/actor/define-actor.ts";
import { ToyLedger } from "./toy-ledger.ts";

const auth = setup({
  types: {
    context: {} as { user: string | null; error: string | null; tries: number },
  },
  actors: {
    login: fromPromise<{ user: string }, { name: string }>(() => Promise.resolve({ user: "" })),
  },
}).createMachine({
  id: "auth",
  context: { user: null, error: null, tries: 0 },
  initial: "loggedOut",
  states: {
    loggedOut: { on: { login: "loggingIn" } },
    loggingIn: {
      entry: assign({ tries: ({ context }) => context.tries + 1 }),
      invoke: {
        id: "login",
        src: "login",
        input: ({ event }) => ({
          name: (event as unknown as { name: string }).name,
        }),
        onDone: {
          target: "loggedIn",
          actions: assign({
            user: ({ event }) => event.output.user,
            error: null,
          }),
        },
        onError: {
          target: "loggedOut",
          actions: assign({
            error: ({ event }) => (event.error as { message: string }).message,
          }),
        },
      },
      after: {
        5_000: {
          target: "loggedOut",
          actions: assign({ error: "it took too long" }),
        },
      },
      on: { cancel: "loggedOut" },
    },
    loggedIn: {
      after: { 60_000: "loggedOut" },
      on: { logout: "loggedOut", touch: { target: "loggedIn", reenter: true } },
    },
  },
});

const KEY = "auth/ada";
const INVOCATION = `${KEY}/login`;

function ledgerOf(type: string, definition: ActorType, version = 1): ToyLedger {
  return new ToyLedger(new ActorSteps(type, definition, version, createActor as never));
}

function shown(ledger: ToyLedger, key: string): [unknown, unknown] {
  const snapshot = ledger.stateOf(key)?.snapshot;
  return [snapshot?.value, snapshot?.context];
}

describe("a login as a durable actor", () => {
  const begun = (): ToyLedger => {
    const ledger = ledgerOf("auth", defineActor({ machine: auth }));
    ledger.send(KEY, { type: "login", name: "Ada" });
    return ledger;
  };

  it("waits for its promise, and logs out when its time is over", () => {
    const ledger = begun();
    ledger.settle(INVOCATION, "outcome", `{"user":"Ada"}`);
    expect(shown(ledger, KEY)).to.deep.equal(["loggedIn", { user: "Ada", error: null, tries: 1 }]);
    expect(ledger.nextMs, "the timer of the login has gone with its state").to.equal(60_000);
    ledger.advance();
    expect(shown(ledger, KEY)[0]).to.equal("loggedOut");
  });

  it("tells of a promise that fails", () => {
    const ledger = begun();
    ledger.settle(INVOCATION, "failure", "no such user");
    expect(shown(ledger, KEY)).to.deep.equal(["loggedOut", { user: null, error: "no such user", tries: 1 }]);
    expect(ledger.nextMs).to.equal(undefined);
  });

  it("hears of no timer and no promise of a state that it has left, nor of one that it has entered again", () => {
    const ledger = begun();
    ledger.send(KEY, { type: "cancel" });
    expect([ledger.nextMs, ledger.invocations]).to.deep.equal([undefined, []]);
    ledger.send(KEY, { type: "login", name: "Ada" });
    expect(ledger.invocations).to.deep.equal([INVOCATION]);
    ledger.settle(INVOCATION, "outcome", `{"user":"Ada"}`);
    ledger.send(KEY, { type: "touch" });
    ledger.send(KEY, { type: "logout" });
    ledger.advance();
    expect(shown(ledger, KEY)).to.deep.equal(["loggedOut", { user: "Ada", error: null, tries: 2 }]);
    expect(ledger.stateOf(KEY)?.events, "nothing has come but what was sent, and one end").to.equal(6);
  });

  it("gives up when its promise takes too long, and starts another one later", () => {
    const ledger = begun();
    ledger.advance();
    expect(shown(ledger, KEY)[1]).to.deep.include({
      error: "it took too long",
    });
    expect(ledger.invocations).to.deep.equal([]);
    ledger.send(KEY, { type: "login", name: "Ada" });
    expect(ledger.invocations).to.deep.equal([INVOCATION]);
  });
});

describe("a machine of two versions as a durable actor", () => {
  const first = setup({
    types: { context: {} as { count: number } },
  }).createMachine({
    context: { count: 0 },
    initial: "on",
    states: {
      on: {
        on: {
          count: {
            actions: assign({ count: ({ context }) => context.count + 1 }),
          },
        },
      },
    },
  });
  const second = setup({
    types: { context: {} as { total: number } },
  }).createMachine({
    context: { total: 0 },
    initial: "counting",
    states: {
      counting: {
        on: {
          count: {
            actions: assign({ total: ({ context }) => context.total + 10 }),
          },
        },
      },
    },
  });
  const migrate = (snapshot: ActorSnapshot): ActorSnapshot => ({
    ...snapshot,
    value: "counting",
    context: { total: (snapshot.context as { count: number }).count },
  });

  it("goes on by the second from where the first has left it", () => {
    const old = ledgerOf("counter", defineActor({ machine: first }));
    old.send("counter/1", { type: "count" });
    const ledger = ledgerOf("counter", defineActor({ machine: second, migrations: { 1: migrate } }), 2);
    for (const [key, row] of old.rows) ledger.rows.set(key, row);
    ledger.send("counter/1", { type: "count" });
    expect(shown(ledger, "counter/1")).to.deep.equal(["counting", { total: 11 }]);
    expect(ledger.stateOf("counter/1")).to.include({ version: 2, events: 2 });
  });

  it("is refused a state that its code does not fit", () => {
    const old = ledgerOf("counter", defineActor({ machine: first }));
    old.send("counter/1", { type: "count" });
    const ledger = ledgerOf("counter", defineActor({ machine: second }));
    for (const [key, row] of old.rows) ledger.rows.set(key, row);
    expect(() => ledger.send("counter/1", { type: "count" })).to.throw(/state_refused/);
  });
});
