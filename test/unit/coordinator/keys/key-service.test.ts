import { expect } from "chai";
import type { Client } from "@connectrpc/connect";
import { createClient, createRouterTransport } from "@connectrpc/connect";
import { keyService } from "../../../../src/coordinator/rpc/key-service.ts";
import { operatorService } from "../../../../src/coordinator/rpc/operator-service.ts";
import { planSubmission } from "../../../../src/coordinator/rpc/submissions.ts";
import { KeyAction, KeyRefusalReason, KeyService } from "../../../../src/gen/rollout/v1/keys_pb.ts";
import { ItemState, KeyPhase, OperatorService } from "../../../../src/gen/rollout/v1/run_pb.ts";
import { ITEMS_PREFIX, MAIL_PREFIX } from "../../../../src/storage/keys.ts";
import { linesOf, World } from "../../../support/world.ts";
import type { WorldOptions } from "../../../support/world.ts";
import { successOf } from "../../../support/world-worker.ts";
import type { WorldWorker } from "../../../support/world-worker.ts";
import { eventually } from "../../../support/eventually.ts";
import { VirtualClock } from "../../../support/virtual-clock.ts";

const keyOf = (text: string): string => text.split(" ")[0] ?? "";
const TOO_LARGE = { kind: "too_large", message: "too large" } as const;

interface Desk {
  readonly world: World;
  readonly worker: WorldWorker;
  readonly keys: Client<typeof KeyService>;
  readonly operator: Client<typeof OperatorService>;
  /** By which calls wait. */
  readonly clock: VirtualClock;
}

async function deskOf(options: WorldOptions = {}): Promise<Desk> {
  const world = await World.start({ keys: { totalPartitions: 16 }, ...options });
  let stepped = Promise.resolve();
  const clock = new VirtualClock();
  const leader = world.leader((input) => {
    stepped = stepped.then(() => world.step(input)).then(() => world.settle());
    return true;
  });
  const transport = createRouterTransport(
    (router) => {
      router.service(KeyService, keyService(leader, world.store, clock));
      router.service(OperatorService, operatorService(leader, world.store, { clock }));
    },
    {
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
  const worker = await world.worker(1, { slots: 2, credit: 8 });
  const [keys, operator] = [createClient(KeyService, transport), createClient(OperatorService, transport)];
  return { world, worker, keys, operator, clock };
}

describe("the service of keys", () => {
  it("says how a key stands, with its head, who has that, and its state", async () => {
    const { world, worker, keys } = await deskOf();
    await world.submit(["a 1", "a 2", "b 1"], { keyOf });
    const running = await keys.getKey({ key: "a" });
    expect(running.key).to.deep.include({ key: "a", phase: KeyPhase.RUNNING, items: 2, worker: worker.id });
    expect(running.key?.owner).to.equal(worker.id);
    const [first] = worker.held.filter(({ text }) => text === "a 1");
    if (first === undefined) return expect.fail("nothing was given out");
    expect(running.key?.head).to.equal(Buffer.from(first.id).toString("hex"));
    await worker.report([first], { ...successOf(first), keyed: { basedOn: 0, state: Buffer.from("one") } });
    const { key, state } = await keys.getKey({ key: "a", withState: true });
    expect([Buffer.from(state ?? []).toString(), key?.stateBytes, key?.items]).to.deep.equal(["one", 3, 1]);
    expect(worker.held.find(({ text }) => text === "a 2")?.keyed).to.deep.equal({
      ...{ key: "a", commit: key?.stateCommit, state: new Uint8Array(Buffer.from("one")), stateVersion: 0 },
    });
  });

  it("lists keys a page at a time, each once, and those alone that are asked for", async () => {
    const { world, worker, keys } = await deskOf();
    await world.submit(
      Array.from({ length: 40 }, (_, at) => `k${at} x`),
      { keyOf },
    );
    const [failed] = worker.held;
    if (failed === undefined) return expect.fail("nothing was given out");
    await worker.report([failed], TOO_LARGE);
    const listed: string[] = [];
    for (let after = ""; ;) {
      const page = await keys.listKeys({ after, limit: 7 });
      listed.push(...page.keys.map(({ key }) => key));
      after = page.after;
      if (after === "") break;
    }
    expect(listed).to.have.length(40);
    expect(new Set(listed).size).to.equal(40);
    const parked = await keys.listKeys({ phases: [KeyPhase.PARKED] });
    expect(parked.keys).to.have.length(1);
    expect(parked.keys[0]).to.deep.include({ parkedBy: "failed", phase: KeyPhase.PARKED });
    expect(parked.keys[0]?.error).to.deep.include({ class: "too_large", message: "too large" });
  });

  it("lists keys with what is in them, in answers of a bounded size, each key once", async () => {
    const { world, worker, keys } = await deskOf();
    const names = ["a", "b", "c", "d", "e"];
    await world.submit(
      names.flatMap((name) => [`${name} 1`, `${name} 2`]),
      { keyOf },
    );
    const state = Buffer.alloc(400 * 1_024, "x");
    for (let round = 0; round < names.length; round++) {
      const item = worker.held.find(({ text }) => text.endsWith(" 1"));
      if (item === undefined) return expect.fail("nothing was given out");
      await worker.report([item], { ...successOf(item), keyed: { basedOn: 0, state } });
      await worker.ask(1);
    }
    const listed: string[] = [];
    for (let after = "", pages = 0; ; pages++) {
      const page = await keys.listKeys({ after, withContents: true });
      expect(page.contents).to.have.length(page.keys.length);
      expect(page.keys.length, "three states of that size are more than an answer has").to.be.lessThan(3);
      for (const [at, { key }] of page.keys.entries()) {
        const { state: kept, next } = page.contents[at] ?? {};
        listed.push(`${key} ${kept?.length ?? 0} ${Buffer.from(next ?? []).toString()}`);
      }
      after = page.after;
      if (after === "" || pages > names.length) break;
    }
    expect(listed.sort()).to.deep.equal(names.map((name) => `${name} ${state.length} ${name} 2`));
    expect((await keys.listKeys({})).contents).to.deep.equal([]);
  });

  it("lists with each key what waits for it, in order, as much as is asked for, and the one that has failed first", async () => {
    const { world, worker, keys } = await deskOf();
    await world.submit(["a 1", "a 2", "a 3", "b 1", "c 1", "d 1"], { keyOf });
    await worker.ask(6);
    await worker.report(worker.held, TOO_LARGE);
    await world.submit(["e 1", "e 2"], { keyOf, submission: "01SVBM1SS10N00000000000002" });
    const waiting = async (mail: number): Promise<string[]> => {
      const page = await keys.listKeys({ withContents: true, mail });
      const told = page.contents.map((contents) => {
        const texts = contents.waiting.map(({ payload }) => Buffer.from(payload).toString());
        return `${texts.join(", ")}${contents.hasMore ? " …" : ""}`;
      });
      return told.sort();
    };
    expect(await waiting(3)).to.deep.equal(["a 1, a 2, a 3", "b 1", "c 1", "d 1", "e 1, e 2"]);
    expect(await waiting(2))
      .to.include("a 1, a 2 …")
      .and.include("e 1, e 2");
    expect(await waiting(0)).to.deep.equal(["", "", "", "", ""]);
  });

  it("lists keys that begin with a text, and those alone whose states have changed since", async () => {
    const { world, worker, keys } = await deskOf();
    await world.submit(["order/1 x", "order/2 x", "orders/3 x"], { keyOf });
    const finish = async (text: string): Promise<void> => {
      const item = worker.held.find((held) => held.text === text);
      if (item === undefined) return expect.fail(`${text} was not given out`);
      const based = { basedOn: item.keyed?.commit ?? 0, state: Buffer.from("s") };
      await worker.report([item], { ...successOf(item), keyed: based });
      await worker.ask(1);
    };
    await finish("order/1 x");
    const all = await keys.listKeys({ prefix: "order/" });
    expect(all.keys.map(({ key }) => key).sort()).to.deep.equal(["order/1", "order/2"]);
    const since = (): Promise<string[]> =>
      keys
        .listKeys({ prefix: "order/", fromCommit: all.commit })
        .then(({ keys: found }) => found.map(({ key }) => key));
    expect(await since()).to.deep.equal([]);
    for (const text of ["orders/3 x", "order/2 x"]) await finish(text);
    expect(await since()).to.deep.equal(["order/2"]);
  });

  it("tells the items of a key that have succeeded, the last one first, page by page", async () => {
    const { world, worker, keys } = await deskOf();
    worker.plugins = [{ name: "order", version: "1", stateVersion: 1 }];
    await worker.beat();
    await world.submit(["a 1", "b 1", "a 2", "a 3", "a 4"], { keyOf });
    expect((await keys.listKeyHistory({ key: "a" })).results).to.deep.equal([]);
    for (const text of ["a 1", "a 2", "b 1", "a 3", "a 4"]) {
      const item = worker.held.find((held) => held.text === text);
      if (item === undefined) return expect.fail(`${text} was not given out`);
      const keyed = { basedOn: item.keyed?.commit ?? 0, state: Buffer.from(text), stateVersion: 1 };
      await worker.report([item], text === "a 3" ? TOO_LARGE : { ...successOf(item), keyed });
      if (text === "a 3") await keys.steerKeys({ action: KeyAction.SKIP, keys: ["a"] });
      await worker.ask(1);
    }
    const told: string[] = [];
    for (let after = "", pages = 0; pages < 9; pages++) {
      const page = await keys.listKeyHistory({ key: "a", after, limit: 2 });
      told.push(...page.results.map(({ payload }) => Buffer.from(payload).toString()));
      after = page.after;
      if (after === "") break;
    }
    expect(told).to.deep.equal(["a 4", "a 2", "a 1"]);
    const ofOther = (await keys.listKeyHistory({ key: "a", limit: 1 })).after;
    expect((await keys.listKeyHistory({ key: "b", after: ofOther })).results).to.deep.equal([]);
  });

  describe("lets a call wait", () => {
    const WAIT_MS = 4_000;

    it("until the state of the key changes, and for no other reason", async () => {
      const { world, worker, keys, clock } = await deskOf();
      await world.submit(["a 1", "a 2"], { keyOf });
      const { after } = await keys.getKey({ key: "a" });
      const waiting = keys.getKey({ key: "a", withState: true, after, waitMs: WAIT_MS });
      await eventually("it waits", () => clock.armed > 0);
      await world.submit(["a 3", "b 1"], { keyOf, submission: "01SVBM1SS10N00000000000002" });
      const [first] = worker.held;
      if (first === undefined) return expect.fail("nothing was given out");
      expect(clock.armed, "what arrives is no news").to.equal(1);
      await worker.report([first], { ...successOf(first), keyed: { basedOn: 0, state: Buffer.from("one") } });
      const news = await waiting;
      expect([Buffer.from(news.state ?? []).toString(), news.after === after]).to.deep.equal(["one", false]);
      expect([clock.armed, news.end]).to.deep.equal([0, false]);
    });

    it("until the key parks, appears or is removed", async () => {
      const { world, worker, keys, clock } = await deskOf();
      const coming = keys.getKey({ key: "a", after: "0", waitMs: WAIT_MS });
      await eventually("it waits", () => clock.armed > 0);
      await world.submit(["a 1"], { keyOf });
      const { after } = await coming;
      const parking = keys.getKey({ key: "a", after, waitMs: WAIT_MS });
      await eventually("it waits", () => clock.armed > 0);
      await worker.report([...worker.held], TOO_LARGE);
      const parked = await parking;
      expect(parked.key?.parkedBy).to.equal("failed");
      await keys.steerKeys({ action: KeyAction.SKIP, keys: ["a"] });
      const idle = await keys.getKey({ key: "a" });
      const going = keys
        .getKey({ key: "a", after: idle.after, waitMs: WAIT_MS })
        .catch((error: unknown) => error);
      await eventually("it waits", () => clock.armed > 0);
      await keys.steerKeys({ action: KeyAction.RETIRE, keys: ["a"] });
      expect(String(await going)).to.include("a");
    });

    it("and answers with the present state when the time is over, and at once to a caller that knows an older state", async () => {
      const { world, keys, clock } = await deskOf();
      await world.submit(["a 1"], { keyOf });
      const { after } = await keys.getKey({ key: "a" });
      expect((await keys.getKey({ key: "a", after: "7.going", waitMs: WAIT_MS })).after).to.equal(after);
      const waiting = keys.getKey({ key: "a", after, waitMs: WAIT_MS });
      await eventually("it waits", () => clock.armed > 0);
      await clock.advance(WAIT_MS);
      expect((await waiting).after).to.equal(after);
    });

    it("beside at most 1,023 others, and forgets calls that have ended", async () => {
      const { world, keys, clock } = await deskOf();
      await world.submit(["a 1"], { keyOf });
      const { after } = await keys.getKey({ key: "a" });
      const many = Array.from({ length: 1_025 }, () => keys.getKey({ key: "a", after, waitMs: WAIT_MS }));
      await many.at(-1);
      expect(clock.armed, "the last one did not wait").to.equal(1_024);
      await clock.advance(WAIT_MS);
      await Promise.all(many);
      const again = keys.getKey({ key: "a", after, waitMs: WAIT_MS });
      await eventually("it waits", () => clock.armed > 0);
      await clock.advance(WAIT_MS);
      await again;
    });
  });

  it("pauses, resumes, skips and retires keys, and gives the reason for each that it cannot", async () => {
    const { world, worker, keys } = await deskOf();
    await world.submit(["a 1", "a 2", "b 1"], { keyOf });
    await worker.report(
      worker.held.filter(({ text }) => text === "a 1"),
      TOO_LARGE,
    );
    const refused = async (action: KeyAction, key: string): Promise<(KeyRefusalReason | undefined)[]> =>
      (await keys.steerKeys({ action, keys: [key] })).refused.map(({ reason }) => reason);
    expect(await refused(KeyAction.RESUME, "a")).to.deep.equal([KeyRefusalReason.HEAD_FAILED]);
    expect(await refused(KeyAction.SKIP, "b")).to.deep.equal([KeyRefusalReason.NOT_FAILED]);
    expect(await refused(KeyAction.RETIRE, "b")).to.deep.equal([KeyRefusalReason.NOT_IDLE]);
    expect(await refused(KeyAction.PAUSE, "none")).to.deep.equal([KeyRefusalReason.UNKNOWN]);
    expect(await refused(KeyAction.SKIP, "a")).to.deep.equal([]);
    expect(worker.texts).to.include("a 2");
    for (const item of [...worker.held]) await worker.report([item]);
    expect(await refused(KeyAction.RETIRE, "a")).to.deep.equal([]);
    expect((await keys.listKeys({})).keys.map(({ key }) => key)).to.deep.equal(["b"]);
    await world.submit(["a 3"], { keyOf, submission: "01SVBM1SS10N00000000000009" });
    const anew = { key: "a", commit: 0, state: null, stateVersion: 0 };
    expect(worker.held.at(-1)?.keyed, "it begins anew").to.deep.equal(anew);
  });

  it("says where an item stands in its key", async () => {
    const { world, worker, operator } = await deskOf();
    await world.submit(["a 1", "a 2", "a 3"], { keyOf });
    const [head] = worker.held;
    const items = await world.rowsUnder(ITEMS_PREFIX);
    expect([items.length, await world.countUnder(MAIL_PREFIX)]).to.deep.equal([3, 2]);
    const third = await idOf(world, "a 3");
    const { item } = await operator.getItem({ name: third });
    expect(item).to.deep.include({ key: "a", keyPhase: KeyPhase.RUNNING, aheadInKey: 2 });
    expect([item?.state, item?.keyHead]).to.deep.equal([
      ItemState.FRESH,
      Buffer.from(head?.id ?? []).toString("hex"),
    ]);
  });

  it("counts items without keys alone before one that has none", async () => {
    const { world, worker, operator } = await deskOf();
    const ofKey = (text: string): string => (text.startsWith("plain") ? "" : "a");
    world.pass(1);
    await world.step({ kind: "pause", reason: "lunch", answer: () => undefined });
    await world.submit(["plain 1", "a 1", "a 2", "plain 2"], { keyOf: ofKey });
    const { item } = await operator.getItem({ name: await idOf(world, "plain 2", ofKey) });
    expect([item?.ahead, item?.key, worker.texts]).to.deep.equal([1, undefined, []]);
  });
});

async function idOf(world: World, text: string, ofKey = keyOf): Promise<string> {
  const planned = await planSubmission(
    world.store,
    linesOf([text], { keyOf: ofKey, submission: "01SVBM1SS10N00000000000007" }),
  );
  if (planned.kind !== "planned") return expect.fail("it is planned");
  const [counted] = planned.batch.counted;
  return Buffer.from(counted?.id ?? []).toString("hex");
}

describe("a submission with keys", () => {
  it("is refused whole when a partition would have more keys than it may, and what was there goes on", async () => {
    const { world, worker } = await deskOf({ keys: { totalPartitions: 1, maxKeysPerPartition: 2 } });
    await world.submit(["a 1", "b 1"], { keyOf });
    const verdict = await world.submit(["b 2", "c 1"], { keyOf, submission: "01SVBM1SS10N00000000000002" });
    expect(verdict).to.deep.equal({ kind: "partitionFull", key: "c", partition: 0, limit: 2 });
    expect(await world.countUnder(ITEMS_PREFIX)).to.equal(2);
    expect(worker.texts).to.deep.equal(["a 1", "b 1"]);
    await world.submit(["b 2"], { keyOf, submission: "01SVBM1SS10N00000000000003" });
    expect(await world.countUnder(ITEMS_PREFIX)).to.equal(3);
  });

  it("names the item of an event for ever: known when it comes again, refused with another payload", async () => {
    const { world } = await deskOf();
    const eventOf = (text: string): string => text.split(" ")[1] ?? "";
    const plan = (texts: readonly string[], submission: string) =>
      planSubmission(world.store, linesOf(texts, { keyOf, eventOf, submission }));
    await world.submit(["a e1 x", "a e2 y", "b e1 x"], { keyOf, eventOf });
    const again = await plan(["a e1 x", "a e3 z", "a e3 z"], "01SVBM1SS10N00000000000002");
    if (again.kind !== "planned") return expect.fail(`it is ${again.kind}`);
    const { added, known, duplicates, counted } = again.batch;
    expect([added.length, known, duplicates, counted]).to.deep.equal([1, 2, 0, []]);
    for (const texts of [["a e1 other"], ["a e4 one", "a e4 two"]])
      expect((await plan(texts, "01SVBM1SS10N00000000000003")).kind).to.equal("reused");
  });

  it("is counted by rows: 8 for an item of an idle key with a state, 10 for one that waits behind another", async () => {
    const { world, worker } = await deskOf({ isChecked: false });
    await world.submit(["a 0", "b 0"], { keyOf });
    const finish = async (): Promise<void> => {
      for (const item of [...worker.held])
        await worker.report([item], {
          ...successOf(item),
          keyed: { basedOn: item.keyed?.commit ?? 0, state: Buffer.from("s") },
        });
    };
    await finish();
    let rows = 0;
    const step = world.step.bind(world);
    world.step = async (...inputs) => {
      await step(...inputs);
      const { puts, deletes } = world.written;
      const shared = ["meta/", "completions/", "submissions/", "heartbeats/"];
      rows += [...puts.map(({ key }) => key), ...deletes].filter(
        (key) => !shared.some((prefix) => key.startsWith(prefix)),
      ).length;
    };
    await world.submit(["a 1"], { keyOf, submission: "01SVBM1SS10N00000000000002" });
    await finish();
    expect(rows).to.be.at.most(8);
    rows = 0;
    await world.submit(["b 1"], { keyOf, submission: "01SVBM1SS10N00000000000003" });
    await world.submit(["b 2"], { keyOf, submission: "01SVBM1SS10N00000000000004" });
    await finish();
    await finish();
    expect(rows).to.be.at.most(8 + 10);
  });
});
