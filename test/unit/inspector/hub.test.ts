// The hub over sessions of a test's own: what it asks and what pages are told. With a real coordinator: inspected-run.test.ts.
import { expect } from "chai";
import { AsyncQueue } from "../../../src/base/async-queue.ts";
import { failure } from "../../../src/base/errors.ts";
import { seededRandom } from "../../../src/base/random.ts";
import { Hub } from "../../../src/inspector/hub.ts";
import type { PageNews, RunNumbers } from "../../../src/inspector/page-messages.ts";
import type { ChartsNews, NewStep, RunSession, RunSource } from "../../../src/inspector/run-source.ts";
import { RecordingLogger } from "../../support/recording-logger.ts";
import { VirtualClock } from "../../support/virtual-clock.ts";

const away = failure("coordinator_silent", { address: "x:1" });

/** A coordinator as a connection shows it. */
class Session implements RunSession {
  looks = 0;
  wholeLooks = 0;
  isClosed = false;
  done = 0;
  isAway = false;
  readonly charts = new AsyncQueue<ChartsNews | Error>(100);

  look({ whole }: { readonly whole: boolean }): ReturnType<RunSession["look"]> {
    this.looks++;
    if (whole) this.wholeLooks++;
    if (this.isAway) return Promise.reject(away);
    return Promise.resolve({ status: { done: this.done } as RunNumbers, workers: [] });
  }

  async *watch(signal: AbortSignal): AsyncGenerator<ChartsNews> {
    signal.addEventListener("abort", () => this.charts.end());
    for await (const news of this.charts) {
      if (news instanceof Error) throw news;
      yield news;
    }
  }

  close(): void {
    this.isClosed = true;
  }

  say(...steps: readonly NewStep[]): void {
    this.charts.push({ steps, dropped: 0, happenings: [], history: undefined, atWork: undefined });
  }
}

const step = (at_ms: number, to = "B"): NewStep => ({
  ...{ at_ms, chart: "run", actor: "", event: "e", from: "A", to },
});

const NUMBERS = { pending: 0, delayed: 0, running: 0, done: 0, failed: 0, workers: 0 };

describe("the hub of the pages", () => {
  let clock: VirtualClock;
  let hub: Hub;
  let told: PageNews[];
  let sessions: Session[];
  /** Why none is opened. */
  let refusal: Error | undefined;

  beforeEach(() => {
    [clock, told, sessions, refusal] = [new VirtualClock(), [], [], undefined];
    const source: RunSource = {
      open: () => {
        if (refusal !== undefined) return Promise.reject(refusal);
        const session = new Session();
        sessions.push(session);
        return Promise.resolve(session);
      },
    };
    hub = new Hub({ source, clock, random: seededRandom(1), log: new RecordingLogger() });
  });

  const follow = (): (() => void) => hub.follow((news) => void told.push(news));
  const last = (): Session => sessions.at(-1) ?? new Session();
  const of = <Kind extends PageNews["kind"]>(kind: Kind, from = told): Extract<PageNews, { kind: Kind }>[] =>
    from.filter((each): each is Extract<PageNews, { kind: Kind }> => each.kind === kind);
  const numbers = (from = told): number[] =>
    of("steps", from).flatMap(({ steps }) => steps.map(({ number }) => number));

  it("asks nothing until somebody looks, each second in which something goes on, and nothing more when nobody does", async () => {
    await clock.advance(60_000);
    expect(sessions).to.be.empty;
    expect(of("link", [...hub.whole()])[0], "that is no trouble").to.include({
      ...{ connected: false, reason: null },
    });
    const leave = follow();
    await clock.advance(7_500);
    const looks = (): number[] => [last().looks, last().wholeLooks];
    expect(looks()).to.deep.equal([3, 3]);
    await clock.advance(1_000);
    // Items go on: only numbers change.
    for (let at = 0; at < 9; at++) {
      last().say({ ...step(at), chart: "work-item" });
      await clock.advance(1_000);
    }
    expect(looks()).to.deep.equal([9, 6]);
    // Anything else may change the rest.
    for (let at = 0; at < 9; at++) {
      last().say(step(at));
      await clock.advance(1_000);
    }
    expect(looks()).to.deep.equal([18, 15]);
    leave();
    await clock.advance(60_000);
    expect([sessions.length, ...looks(), last().isClosed]).to.deep.equal([1, 18, 15, true]);
    expect(clock.armed).to.equal(0);
    expect(of("link", [...hub.whole()])[0]).to.include({ connected: false });
  });

  it("tells what has changed, and a page that comes everything", async () => {
    follow();
    await clock.advance(3_000);
    expect(of("status")).to.have.length(1);
    last().done = 7;
    last().say(step(1), step(2));
    await clock.advance(2_000);
    expect(of("status").map(({ status }) => status.done)).to.deep.equal([0, 7]);
    expect(numbers()).to.deep.equal([1, 2]);
    const whole = [...hub.whole()];
    expect(whole.map(({ kind }) => kind)).to.deep.equal(["link", "status", "workers", "steps", "events"]);
    expect(numbers(whole)).to.deep.equal([1, 2]);
    expect(of("workers", whole)[0]).to.include({ anew: true });
  });

  it("puts the course of the run together, and begins it anew when it is told so", async () => {
    follow();
    await clock.advance(0);
    const tell = async (anew: boolean, ...times: readonly number[]): Promise<unknown> => {
      const points = times.map((at_ms) => ({ at_ms, ...NUMBERS }));
      const history = { anew, interval_ms: 1_000, points };
      last().charts.push({ steps: [], dropped: 0, happenings: [], history, atWork: undefined });
      await clock.advance(0);
      const [whole] = of("history", [...hub.whole()]);
      return [whole?.anew, whole?.points.map(({ at_ms }) => at_ms)];
    };
    expect(await tell(true, 1, 2)).to.deep.equal([true, [1, 2]]);
    expect(await tell(false, 3)).to.deep.equal([true, [1, 2, 3]]);
    expect(of("history").at(-1)).to.deep.include({ anew: false, points: [{ at_ms: 3, ...NUMBERS }] });
    expect(await tell(true, 2, 4)).to.deep.equal([true, [2, 4]]);
  });

  it("says that the coordinator is away and why, and finds it again, for ever, without telling a step twice", async () => {
    refusal = away;
    follow();
    await clock.advance(1_000);
    expect(of("link").at(-1)).to.include({ connected: false });
    expect(of("link").at(-1)?.reason).to.include(away.message).and.include(away.hint);
    refusal = undefined;
    await clock.advance(5_000);
    expect(of("link").at(-1)).to.include({ connected: true, reason: null });
    last().say(step(1), step(2));
    await clock.advance(0);
    for (let time = 0; time < 5; time++) {
      const before = sessions.length;
      if (time % 2 === 0) last().charts.push(away);
      else last().isAway = true;
      await clock.advance(1_000);
      expect(of("link").filter(({ connected }) => !connected)).to.have.length(2 + time);
      await clock.advance(5_000);
      expect(sessions.length).to.be.above(before);
      expect(sessions.slice(0, -1).every(({ isClosed }) => isClosed)).to.equal(true);
      last().say(step(1), step(2), step(3 + time));
      await clock.advance(0);
    }
    expect(of("link").at(-1)).to.include({ connected: true });
    expect(numbers()).to.deep.equal([1, 2, 3, 4, 5, 6, 7]);
  });

  it("goes on without steps where the coordinator has none to tell", async () => {
    follow();
    await clock.advance(0);
    last().charts.end();
    await clock.advance(6_000);
    expect([sessions.length, last().looks]).to.deep.equal([1, 3]);
    expect(of("link").at(-1)).to.include({ connected: true });
  });

  it("draws a line of the timeline for events of the cluster, once, with a drain where the chart begins one", async () => {
    follow();
    await clock.advance(0);
    const happenings = [
      { at_ms: 5, topic: "work_stolen", fields: { victim_id: "V\u001b[2J", items: 3 } },
      { at_ms: 6, topic: "of_a_newer_one", fields: {} },
      { at_ms: 6, topic: "toString", fields: {} },
    ];
    const drain = {
      ...step(4, "Draining+Alive"),
      ...{ chart: "worker-lifecycle", actor: "W", from: "Ready+Alive" },
    };
    for (const steps of [[drain], [drain, { ...drain, at_ms: 9, from: "Draining+Suspected" }]])
      last().charts.push({ steps, dropped: 0, happenings, history: undefined, atWork: undefined });
    await clock.advance(0);
    const events = of("events").flatMap((each) => each.events);
    expect(events.map(({ at_ms, topic }) => [at_ms, topic])).to.deep.equal([
      [4, "drain_started"],
      [5, "work_stolen"],
    ]);
    expect(events[0]?.words).to.equal("worker W drains");
    expect(events[1]?.words).to.match(/^3 items went from worker V.* to one with nothing to do$/);
    expect(events[1]?.words).to.not.include("\u001b");
  });

  it("keeps no more than a page can use, and says what is missing", async () => {
    follow();
    await clock.advance(0);
    for (let at = 0; at < 50; at++) {
      last().say(...Array.from({ length: 20 }, (_, nth) => step(at * 20 + nth)));
      await clock.advance(0);
    }
    const [steps] = of("steps", [...hub.whole()]);
    expect([steps?.steps.length, steps?.dropped, steps?.steps[0]?.number]).to.deep.equal([500, 500, 501]);
  });
});
