import { expect } from "chai";
import { createActor, createMachine, setup } from "xstate";
import type { FullKey } from "../../../src/client/keys.ts";
import { checkActors } from "../../../src/compose/actor-check.ts";
import { writeActorState } from "../../../src/runtime/actor-state.ts";
import { ActorSteps } from "../../../src/worker/backends/actor/actor-step.ts";
import { defineActor } from "../../../src/worker/backends/actor/define-actor.ts";
import type { ActorMigration } from "../../../src/worker/backends/actor/define-actor.ts";

function stepsOf(migrations?: Readonly<Record<number, ActorMigration>>): ActorSteps {
  const machine = createMachine({
    initial: "off",
    states: {
      off: { on: { press: "lit" } },
      lit: {
        on: {
          press: "off",
          burn: { target: "off", guard: () => boom() },
          end: "gone",
        },
      },
      gone: { type: "final" },
    },
  });
  const definition = defineActor(migrations === undefined ? { machine } : { machine, migrations });
  return new ActorSteps("lamp", definition, migrations === undefined ? 1 : 2, createActor as never);
}

function boom(): boolean {
  throw new RangeError("it burns");
}

interface Kept {
  readonly value?: string;
  readonly status?: string;
  readonly version?: number;
  readonly next?: object;
}

function keyOf(key: string, { value, status = "active", version = 1, next }: Kept): FullKey {
  const snapshot = { status, value: value ?? "", context: {} };
  const state = writeActorState({
    type: "lamp",
    version,
    events: 1,
    tags: [],
    snapshot,
  });
  const kept = {
    state: value === undefined ? undefined : state,
    next: next && Buffer.from(JSON.stringify(next)),
    ...{ waiting: [], hasMore: false },
  };
  return { key, phase: "idle", ...kept } as unknown as FullKey;
}

async function check(keys: readonly FullKey[], steps = stepsOf()): ReturnType<typeof checkActors> {
  async function* all(): AsyncGenerator<FullKey> {
    yield* keys;
  }
  return checkActors(
    {
      types: new Map([["lamp", { steps, idleTtlMs: undefined }]]),
      createPromise: createActor as never,
    },
    all(),
  );
}

describe("a check of other code", () => {
  it("counts actors by type and state, and names each that would park, with the reason", async () => {
    const found = await check([
      keyOf("lamp/1", { value: "off" }),
      keyOf("lamp/2", { value: "off", next: { type: "press" } }),
      keyOf("lamp/3", { value: "on" }),
      keyOf("lamp/4", { value: "lit", next: { type: "burn" } }),
      keyOf("lamp/5", { next: { type: "press" } }),
      keyOf("door/1", { value: "off" }),
    ]);
    expect(found.groups).to.deep.equal([
      { type: "lamp", value: `"off"`, actors: 3, parks: 1 },
      { type: "lamp", value: `"on"`, actors: 1, parks: 1 },
      { type: "lamp", value: `"lit"`, actors: 1, parks: 1 },
      { type: "lamp", value: "", actors: 1, parks: 0 },
    ]);
    expect(found.parks.map(({ key }) => key)).to.deep.equal(["lamp/3", "lamp/4", "door/1"]);
    const [gone, burns, foreign] = found.parks.map(({ reason }) => reason);
    expect(gone).to.match(/^state_refused: the state of lamp\/3 does not fit/);
    expect(burns).to.match(/^its next event fails: .*it burns/);
    expect(foreign).to.equal("the plugin has no such type of actors");
  });

  it("migrates a state of an older version, and refuses a state of a later version", async () => {
    const migrated = stepsOf({
      1: (snapshot) => ({ ...snapshot, value: "lit" }),
    });
    const keys = [keyOf("lamp/1", { value: "on" }), keyOf("lamp/2", { value: "lit", version: 3 })];
    const { parks } = await check(keys, migrated);
    expect(parks).to.have.length(1);
    expect(parks[0]).to.have.property("reason").that.includes("it has state_version 3, and this code 2");
  });

  it("tries all waiting events of an actor, one after the other, each on the state that the event before has left", async () => {
    const events = (key: string, types: readonly string[]): FullKey => ({
      ...keyOf(key, { value: "off" }),
      waiting: types.map((type) => ({ payload: Buffer.from(JSON.stringify({ type })), origin: undefined })),
    });
    const cut = { ...events("lamp/4", ["press"]), hasMore: true };
    const all = [
      events("lamp/1", ["press", "press", "press"]),
      events("lamp/2", ["press", "press", "burn", "press", "burn"]),
      events("lamp/3", ["press", "end", "press", "burn"]),
    ];
    const found = await check([...all, cut]);
    expect([found.actors, found.events, found.cut]).to.deep.equal([4, 13, 1]);
    expect(found.parks.map(({ key }) => key)).to.deep.equal(["lamp/2"]);
    expect(found.parks[0]?.reason).to.match(/^event 5 of those that wait for it fails: .*it burns/);
  });

  it("finds that an event to a final actor parks nothing, and passes over keys that have nothing in them", async () => {
    const ended = keyOf("lamp/1", {
      value: "gone",
      status: "done",
      next: { type: "press" },
    });
    const { actors, parks } = await check([ended, keyOf("idle", {})]);
    expect([actors, parks]).to.deep.equal([1, []]);
  });

  it("tries children by their own machines, takes timers for events, and passes over work that is under way", async () => {
    const child = createMachine({
      initial: "a",
      states: { a: { after: { 5: "b" } }, b: {} },
    });
    const machine = setup({ actors: { child } }).createMachine({
      initial: "off",
      states: { off: {} },
    });
    const steps = new ActorSteps("lamp", defineActor({ machine }), 1, createActor as never);
    const childOf = (key: string, source: string, value: string, next?: object): FullKey => {
      const snapshot = { status: "active", value, context: {} };
      const state = writeActorState({
        type: "lamp",
        source,
        version: 1,
        events: 1,
        tags: [],
        snapshot,
      });
      return {
        key,
        phase: "idle",
        state,
        next: next && Buffer.from(JSON.stringify(next)),
        ...{ waiting: [], hasMore: false },
      } as unknown as FullKey;
    };
    const { actors, groups, parks } = await check(
      [
        keyOf("lamp/1", { value: "off", next: { paid: 5 } }),
        childOf("lamp/1/a", "child", "a", {
          type: "xstate.after.5.(machine).a",
        }),
        childOf("lamp/1/b", "child", "gone"),
        childOf("lamp/1/c", "other", "a"),
        keyOf("lamp/1/d", { next: { n: 1 } }),
        keyOf("lamp/1\0run/pay/1", { next: { n: 1 } }),
      ],
      steps,
    );
    expect(actors).to.equal(5);
    expect(groups.map(({ type }) => type)).to.include("lamp child");
    expect(parks.map(({ key }) => key)).to.deep.equal(["lamp/1/b", "lamp/1/c"]);
  });
});
