import { expect } from "chai";
import type { Client } from "@connectrpc/connect";
import { createClient, createRouterTransport } from "@connectrpc/connect";
import { exportKeys, importKeys } from "../../../../src/client/moved-keys.ts";
import type { Imported } from "../../../../src/client/moved-keys.ts";
import { keyService } from "../../../../src/coordinator/rpc/key-service.ts";
import { KeyAction, KeyService } from "../../../../src/gen/rollout/v1/keys_pb.ts";
import { handlerErrors, rowOnTheWire } from "../../../../src/transport/errors.ts";
import { ConnectError } from "@connectrpc/connect";
import { silentLogger } from "../../../../src/observe/log.ts";
import { TASK_DIGEST, World } from "../../../support/world.ts";
import { successOf } from "../../../support/world-worker.ts";
import type { WorldWorker } from "../../../support/world-worker.ts";
import { VirtualClock } from "../../../support/virtual-clock.ts";

const keyOf = (text: string): string => text.split(" ")[0] ?? "";
const TASK = { digest: Buffer.from(TASK_DIGEST), plugin: "", summary: "" };
const TOO_LARGE = { kind: "too_large", message: "too large" } as const;
const NOTHING = {
  stopped: [],
  cancelled: [],
  invocations: [],
  children: [],
  sends: [],
  actions: [],
  final: undefined,
};

interface Desk {
  readonly world: World;
  readonly keys: Client<typeof KeyService>;
}

async function deskOf(): Promise<Desk> {
  const world = await World.start({ keys: { totalPartitions: 8 } });
  let stepped = Promise.resolve();
  const leader = world.leader((input) => {
    stepped = stepped.then(() => world.step(input)).then(() => world.settle());
    return true;
  });
  const transport = createRouterTransport(
    (router) => void router.service(KeyService, keyService(leader, world.store, new VirtualClock())),
    {
      router: { interceptors: [handlerErrors(silentLogger)] },
      transport: {
        interceptors: [
          (next) => async (request) => {
            const answer = await next(request);
            await stepped;
            return answer;
          },
        ],
      },
    },
  );
  return { world, keys: createClient(KeyService, transport) };
}

/** A run with actors: `a` has a state, a timer and mail; `b` waits for its first item; `c` is paused with a state. */
async function runToLeave(): Promise<Desk & { readonly worker: WorldWorker }> {
  const desk = await deskOf();
  const { world, keys } = desk;
  const worker = await world.worker(1, { slots: 4, credit: 2 });
  await world.submit(["a 1", "c 1"], { keyOf });
  for (const item of [...worker.held]) {
    const timers = [{ id: "later", delayMs: 60_000, event: Buffer.from("{}"), to: "", isOptional: false }];
    const asks = item.text === "a 1" ? { asks: { ...NOTHING, timers } } : {};
    const keyed = { basedOn: 0, state: Buffer.from(`state of ${item.text}`), stateVersion: 0, ...asks };
    await worker.report([item], { ...successOf(item), keyed });
  }
  await keys.steerKeys({ action: KeyAction.PAUSE, keys: ["c"] });
  await world.submit(["a 2", "a 3", "b 1", "c 2"], { keyOf, submission: "01SVBM1SS10N00000000000002" });
  return { ...desk, worker };
}

async function exported({ keys }: Desk): Promise<string[]> {
  const lines: string[] = [];
  for await (const line of exportKeys(keys, ""))
    lines.push(typeof line === "string" ? line : `${line.key}: ${line.why}`);
  return lines.sort();
}

async function imported({ keys }: Desk, lines: readonly string[]): Promise<Imported> {
  async function* all(): AsyncGenerator<string> {
    yield* lines;
  }
  try {
    return await importKeys(keys, all(), { file: "keys.jsonl", task: TASK });
  } catch (error) {
    throw rowOnTheWire(ConnectError.from(error)) ?? error;
  }
}

describe("keys that go to another run", () => {
  it("have their state, waiting items in order, timers and pause in the other run", async () => {
    const from = await runToLeave();
    const lines = await exported(from);
    expect(lines.map((line) => (JSON.parse(line) as { key: string }).key)).to.deep.equal(["a", "b", "c"]);
    const to = await deskOf();
    expect(await imported(to, lines)).to.deep.equal({ taken: 3, known: 0, there: [] });
    const worker = await to.world.worker(1, { slots: 4, credit: 8 });
    expect(worker.texts.toSorted()).to.deep.equal(["a 2", "b 1"]);
    const a = worker.held.find(({ text }) => text === "a 2");
    expect(Buffer.from(a?.keyed?.state ?? []).toString()).to.equal("state of a 1");

    expect(to.world.state.keys.timers.armed).to.equal(1);
    const before = from.world.state.keys.timers.peek()?.dueMs;
    expect(to.world.state.keys.timers.peek()?.dueMs).to.equal(before);
    if (a === undefined) return expect.fail("it was given out");
    const keyed = { basedOn: a.keyed?.commit ?? 0, state: Buffer.from("next") };
    await worker.report([a], { ...successOf(a), keyed: { ...keyed, stateVersion: 0 } });
    expect(worker.texts).to.include("a 3");
    const { key, state } = await to.keys.getKey({ key: "c", withState: true });
    expect([key?.parkedBy, key?.items, Buffer.from(state ?? []).toString()]).to.deep.equal([
      "paused",
      1,
      "state of c 1",
    ]);
    await to.world.lead();
    expect((await to.keys.getKey({ key: "c" })).key?.parkedBy, "also for the next leader").to.equal("paused");
    expect(to.world.fatal).to.deep.equal([]);
  });

  it("are imported once, whatever has happened to them since, and refused where another key of that name is", async () => {
    const from = await runToLeave();
    const lines = await exported(from);
    const to = await deskOf();
    const worker = await to.world.worker(1, { slots: 4, credit: 8 });
    await to.world.submit(["b other"], { keyOf });
    expect(await imported(to, lines)).to.deep.equal({ taken: 2, known: 0, there: ["b"] });
    for (const item of [...worker.held])
      await worker.report([item], {
        ...successOf(item),
        keyed: { basedOn: item.keyed?.commit ?? 0, state: Buffer.from("x"), stateVersion: 0 },
      });
    await to.world.lead();
    expect(await imported(to, lines)).to.deep.equal({ taken: 0, known: 2, there: ["b"] });
    const states = await Promise.all(["a", "c"].map((key) => to.keys.getKey({ key, withState: true })));
    expect(states.map(({ state }) => Buffer.from(state ?? []).toString())).to.deep.equal([
      "x",
      "state of c 1",
    ]);
  });

  it("get a commit number that no state of the run had before", async () => {
    const to = await deskOf();
    const worker = await to.world.worker(1, { slots: 1, credit: 1 });
    await to.world.submit(["a 0"], { keyOf });
    const [first] = worker.held;
    if (first === undefined) return expect.fail("it was given out");
    await worker.report([first], { ...successOf(first), keyed: { basedOn: 0, state: Buffer.from("old") } });
    const old = (await to.keys.getKey({ key: "a" })).key?.stateCommit ?? 0;
    await to.keys.steerKeys({ action: KeyAction.RETIRE, keys: ["a"] });
    await imported(to, await exported(await runToLeave()));
    const fresh = (await to.keys.getKey({ key: "a" })).key?.stateCommit ?? 0;
    expect(fresh).to.be.greaterThan(old);
    await worker.ask(4);
    const next = worker.held.find(({ text }) => text === "a 2");
    if (next === undefined) return expect.fail("it was given out");
    const keyed = { basedOn: fresh, state: Buffer.from("new"), stateVersion: 0 };
    await worker.report([next], { ...successOf(next), keyed });
    expect((await to.keys.getKey({ key: "a" })).key?.stateCommit).to.be.greaterThan(fresh);
  });

  it("are not exported while an item of theirs is with a worker, or has failed", async () => {
    const desk = await runToLeave();
    const { worker } = desk;
    await worker.ask(2);
    const a = worker.held.find(({ text }) => text === "a 2");
    if (a === undefined) return expect.fail("it was given out");
    expect(await exported(desk)).to.include("a: running");
    await worker.report([a], TOO_LARGE);
    expect(await exported(desk)).to.include("a: failed");
  });

  it("are refused when a line of the file is no exported key", async () => {
    const to = await deskOf();
    for (const line of ["{}", "nonsense", `{"rollout_key":2,"key":"a"}`]) {
      const refused = await imported(to, [line]).catch((error: unknown) => error);
      expect(refused).to.have.property("code", "input_unreadable");
    }
  });
});
