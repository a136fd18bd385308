import { expect } from "chai";
import { WorkerLiveness, WorkerState } from "../../../../src/gen/rollout/v1/common_pb.ts";
import { World } from "../../../support/world.ts";
import { incarnationId, workerId } from "../../../support/world-worker.ts";

describe("the listing of workers", () => {
  let reactor: World;

  beforeEach(async () => {
    reactor = await World.start();
    for (const number of [3, 1, 5, 2, 4]) await reactor.beat({ workerId: workerId(number) });
  });

  const ids = (listing: Awaited<ReturnType<World["list"]>>): string[] =>
    listing.workers.map((info) => info.workerId);

  it("is in order of id, whatever the order of joining", async () => {
    const listing = await reactor.list();
    expect(ids(listing)).to.deep.equal([1, 2, 3, 4, 5].map(workerId));
    expect(listing.more).to.equal(false);
  });

  it("goes on after the last one of a page until there are no more", async () => {
    const first = await reactor.list("", 2);
    expect([ids(first), first.more]).to.deep.equal([[1, 2].map(workerId), true]);
    const second = await reactor.list(workerId(2), 2);
    expect([ids(second), second.more]).to.deep.equal([[3, 4].map(workerId), true]);
    const last = await reactor.list(workerId(4), 2);
    expect([ids(last), last.more]).to.deep.equal([[workerId(5)], false]);
  });

  it("says that there are no more when a page is exactly full", async () => {
    expect((await reactor.list("", 5)).more).to.equal(false);
  });

  it("goes on behind a worker that is gone meanwhile", async () => {
    reactor = await World.start();
    for (const number of [1, 3, 4]) await reactor.beat({ workerId: workerId(number) });
    expect(ids(await reactor.list(workerId(2)))).to.deep.equal([3, 4].map(workerId));
  });

  it("says everything about a worker", async () => {
    const plugins = [{ name: "mock", version: "1", stateVersion: 2 }];
    reactor.pass(120);
    const drain = { state: "Draining.Finishing", cause: "gcp", leftMs: 20_000 };
    await reactor.beat({ sequence: 2, state: "Draining", load: 0.5, slots: 4, plugins, drain });
    reactor.pass(30);
    const [listed] = (await reactor.list("", 1)).workers;
    expect(listed).to.deep.equal({
      workerId: workerId(1),
      incarnation: incarnationId(1),
      state: WorkerState.DRAINING,
      liveness: WorkerLiveness.ALIVE,
      load: 0.5,
      slots: 4,
      plugins,
      registeredAtMs: 1_700_000_000_000,
      lastBeatAgeMs: 30,
      held: 0,
      revoked: false,
      drain: { state: "Draining.Finishing", cause: "gcp", leftMs: 19_970 },
    });
  });

  it("says what trouble a worker has, for as long as the worker says so", async () => {
    const trouble = async (): Promise<string | undefined> => (await reactor.list("", 1)).workers[0]?.trouble;
    await reactor.beat({ sequence: 2, trouble: "loading, for 12 s" });
    expect(await trouble()).to.equal("loading, for 12 s");
    await reactor.beat({ sequence: 3 });
    expect(await trouble()).to.equal(undefined);
    await reactor.beat({ sequence: 4, trouble: "loading, for 20 s" });
    await reactor.lead();
    expect(await trouble()).to.equal(undefined);
  });

  it("has no age for a worker that was not heard since the coordinator started, and its last load", async () => {
    await reactor.beat({ sequence: 2, load: 0.75 });
    await reactor.lead();
    const [listed] = (await reactor.list("", 1)).workers;
    expect(listed).to.include({ load: 0.75, state: WorkerState.READY });
    expect(listed?.lastBeatAgeMs).to.equal(undefined);
  });
});
