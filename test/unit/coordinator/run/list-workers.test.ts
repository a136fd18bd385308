import { expect } from "chai";
import { incarnationId, ReactorHarness, workerId } from "../../../support/reactor-harness.ts";

describe("the listing of workers", () => {
  let reactor: ReactorHarness;

  beforeEach(async () => {
    reactor = await ReactorHarness.start();
    for (const number of [3, 1, 5, 2, 4]) await reactor.beat({ workerId: workerId(number) });
  });

  const ids = (listing: Awaited<ReturnType<ReactorHarness["list"]>>): string[] =>
    listing.workers.map(({ id }) => id);

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
    reactor = await ReactorHarness.start();
    for (const number of [1, 3, 4]) await reactor.beat({ workerId: workerId(number) });
    expect(ids(await reactor.list(workerId(2)))).to.deep.equal([3, 4].map(workerId));
  });

  it("says everything about a worker", async () => {
    const plugins = [{ name: "mock", version: "1" }];
    reactor.stall(120);
    await reactor.beat({ sequence: 2, state: "Draining", load: 0.5, slots: 4, plugins });
    reactor.stall(30);
    const [listed] = (await reactor.list("", 1)).workers;
    expect(listed).to.deep.equal({
      id: workerId(1),
      incarnation: incarnationId(1),
      lifecycle: "Draining",
      liveness: "Alive",
      load: 0.5,
      slots: 4,
      plugins,
      registeredAtWallMs: 1_700_000_000_000,
      lastBeatAgeMs: 30,
      held: 0,
      cordonReason: "",
      trouble: "",
      isRevoked: false,
    });
  });

  it("says what trouble a worker has, for as long as the worker says so", async () => {
    const trouble = async (): Promise<string | undefined> => (await reactor.list("", 1)).workers[0]?.trouble;
    await reactor.beat({ sequence: 2, trouble: "loading, for 12 s" });
    expect(await trouble()).to.equal("loading, for 12 s");
    await reactor.beat({ sequence: 3 });
    expect(await trouble()).to.equal("");
    await reactor.beat({ sequence: 4, trouble: "loading, for 20 s" });
    await reactor.restart();
    expect(await trouble()).to.equal("");
  });

  it("has no age for a worker that was not heard since the coordinator started, and its last load", async () => {
    await reactor.beat({ sequence: 2, load: 0.75 });
    await reactor.restart();
    const [listed] = (await reactor.list("", 1)).workers;
    expect(listed).to.include({ lastBeatAgeMs: undefined, load: 0.75, lifecycle: "Ready" });
  });
});
