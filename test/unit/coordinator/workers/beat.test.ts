import { expect } from "chai";
import { systemClock } from "../../../../src/base/clock.ts";
import { newUlid, ulidFromBytes } from "../../../../src/base/ids.ts";
import type { IncarnationId } from "../../../../src/base/ids.ts";
import { systemRandom } from "../../../../src/base/random.ts";
import { heartbeatKey, workerKey } from "../../../../src/storage/keys.ts";
import { World } from "../../../support/world.ts";
import { incarnationId, workerId } from "../../../support/world-worker.ts";

const DAY_MS = 86_400_000;
/** The greatest that there is. */
const LAST = ulidFromBytes<IncarnationId>(new Uint8Array(16).fill(255));
const plugins = [{ name: "mock", version: "1" }];

describe("a heartbeat", () => {
  let reactor: World;

  beforeEach(async () => {
    reactor = await World.start({ workersMax: 2 });
  });

  describe("of an unknown worker", () => {
    it("registers it, on stable storage before it is answered", async () => {
      expect(await reactor.beat({ state: "Init", slots: 3, plugins, load: 0.5 })).to.equal("accepted");
      expect(reactor.stateOf()).to.equal("Init+Alive");
      expect(reactor.written.durability).to.equal("sync");
      expect(reactor.events.events).to.deep.equal([
        {
          topic: "worker_registered",
          payload: { worker_id: workerId(1), incarnation: incarnationId(1), slots: 3, plugins },
        },
        {
          topic: "worker_heartbeat",
          payload: {
            worker_id: workerId(1),
            incarnation: incarnationId(1),
            sequence: 1,
            state: "Init",
            load: 0.5,
          },
        },
      ]);
    });

    it("registers it in whatever state it says it is", async () => {
      await reactor.beat({ workerId: workerId(1), sequence: 90, state: "Ready" });
      await reactor.beat({ workerId: workerId(2), sequence: 90, state: "Draining" });
      expect([reactor.stateOf(workerId(1)), reactor.stateOf(workerId(2))]).to.deep.equal([
        "Ready+Alive",
        "Draining+Alive",
      ]);
    });

    it("is refused when the registry is full, and changes nothing", async () => {
      await reactor.beats({ workerId: workerId(1) }, { workerId: workerId(2) });
      reactor.takeTopics();
      expect(await reactor.beat({ workerId: workerId(3) })).to.equal("refused");
      expect(reactor.state.workers.size).to.equal(2);
      expect(reactor.written).to.deep.include({ puts: [], deletes: [] });
      expect(reactor.takeTopics()).to.deep.equal([]);
    });

    it("takes the place of who has failed longest when the registry is full, and of nobody who lives", async () => {
      await reactor.beat({ workerId: workerId(1) });
      await reactor.watch(3_000);
      await reactor.beat({ workerId: workerId(2) });
      await reactor.watch(3_000);
      expect([reactor.stateOf(workerId(1)), reactor.stateOf(workerId(2))]).to.deep.equal([
        "Ready+Failed",
        "Ready+Suspected",
      ]);
      expect(await reactor.beat({ workerId: workerId(3) })).to.equal("accepted");
      expect([...reactor.state.workers.keys()]).to.deep.equal([workerId(2), workerId(3)]);
      expect(reactor.takeTopics()).to.include("worker_removed");
      expect(await reactor.beat({ workerId: workerId(4) })).to.equal("refused");
    });

    it("is refused when its process begins more than a day ahead of the coordinator's clock", async () => {
      const inDays = (days: number): IncarnationId =>
        newUlid({ ...systemClock, wallMs: () => reactor.wallMs + days * DAY_MS }, systemRandom);
      expect(await reactor.beat({ incarnation: inDays(1.01) })).to.equal("ahead");
      expect(reactor.state.workers.size).to.equal(0);
      const soon = inDays(0.99);
      expect(await reactor.beat({ incarnation: soon })).to.equal("accepted");
      expect(await reactor.beat({ incarnation: LAST })).to.equal("ahead");
      expect(await reactor.beat({ incarnation: soon, sequence: 2 })).to.equal("accepted");
    });

    it("is not refused for being old, nor later because the coordinator's clock was set back", async () => {
      expect(await reactor.beat()).to.equal("accepted");
      reactor.wallMs = 0;
      expect(await reactor.beat({ sequence: 2 })).to.equal("accepted");
    });

    it("begins anew where a coordinator of 0.1 has let in a process of some year to come, once that has failed", async () => {
      const { wallMs } = reactor;
      reactor.wallMs = 2 ** 48;
      expect(await reactor.beat({ incarnation: LAST })).to.equal("accepted");
      reactor.wallMs = wallMs;
      expect(await reactor.beat()).to.equal("superseded");
      await reactor.watch(6_000);
      expect(reactor.stateOf()).to.equal("Ready+Failed");
      expect(await reactor.beat()).to.equal("accepted");
      expect(reactor.stateOf()).to.equal("Ready+Alive");
    });

    it("is taken again once there is room", async () => {
      await reactor.beats({ workerId: workerId(1) }, { workerId: workerId(2), state: "Gone" });
      for (let sequence = 2; reactor.state.workers.size === 2; sequence++) {
        await reactor.watch(500);
        await reactor.beat({ workerId: workerId(1), sequence });
      }
      expect(await reactor.beat({ workerId: workerId(3) })).to.equal("accepted");
    });
  });

  describe("of a known worker", () => {
    beforeEach(async () => {
      await reactor.beat({ sequence: 5, load: 0.25, state: "Init" });
      reactor.takeTopics();
    });

    it("is kept as the latest one, and nothing else is written while nothing else is new", async () => {
      expect(await reactor.beat({ sequence: 6, load: 0.75, state: "Init" })).to.equal("accepted");
      expect(reactor.written.puts.map(({ key }) => key)).to.deep.equal([heartbeatKey(workerId(1))]);
      expect(reactor.written.durability).to.equal("flush");
      expect(reactor.events.of("worker_heartbeat")).to.have.length(1);
    });

    for (const [what, sequence] of [
      ["that is sent again", 5],
      ["that was overtaken by a newer one", 4],
    ] as const) {
      it(`${what} is answered and changes nothing`, async () => {
        reactor.pass(100);
        const before = structuredClone(reactor.state.workers);
        const late = { sequence, load: 1, slots: 9, state: "Gone" } as const;
        expect(await reactor.beats(late)).to.deep.equal([{ sequence, verdict: "accepted" }]);
        expect(reactor.state.workers).to.deep.equal(before);
        expect(reactor.written).to.deep.include({ puts: [], deletes: [] });
        expect(reactor.events.events).to.deep.equal([]);
      });
    }

    it("may leave numbers out", async () => {
      await reactor.beat({ sequence: 50, state: "Ready" });
      expect(await reactor.beat({ sequence: 51, state: "Ready" })).to.equal("accepted");
      expect(reactor.state.workers.get(workerId(1))?.sequence).to.equal(51);
    });

    it("writes the registry's row when slots or plugins are others", async () => {
      for (const [sequence, news] of [
        [6, { slots: 2 }],
        [7, { slots: 2, plugins }],
        [8, { slots: 2, plugins: [{ name: "mock", version: "2" }] }],
        [9, { slots: 2, plugins: [...plugins, ...plugins] }],
      ] as const) {
        await reactor.beat({ sequence, state: "Init", ...news });
        expect(reactor.written.puts.map(({ key }) => key)).to.include(workerKey(workerId(1)));
      }
      await reactor.beat({ sequence: 10, state: "Init", slots: 2, plugins: [...plugins, ...plugins] });
      expect(reactor.written.puts.map(({ key }) => key)).to.not.include(workerKey(workerId(1)));
    });

    it("is answered in the order of arrival, also within one turn", async () => {
      const answers = await reactor.beats({ sequence: 7 }, { sequence: 6 }, { sequence: 8 });
      expect(answers.map(({ sequence }) => sequence)).to.deep.equal([7, 6, 8]);
      expect(reactor.events.of("worker_heartbeat").map(({ sequence }) => sequence)).to.deep.equal([7, 8]);
    });
  });

  describe("moves the worker along", () => {
    it("from Init to Ready, Draining and Gone, each step in the log", async () => {
      await reactor.beat({ sequence: 1, state: "Init" });
      await reactor.beat({ sequence: 2, state: "Ready" });
      await reactor.beat({ sequence: 3, state: "Draining" });
      await reactor.beat({ sequence: 4, state: "Gone" });
      expect(reactor.stateOf()).to.equal("Gone+Removed");
      const steps = reactor.log.lines.map(({ fields }) => [fields["address"], fields["from"], fields["to"]]);
      expect(steps).to.deep.equal([
        [`worker/${workerId(1)}`, "Init+Alive", "Ready+Alive"],
        [`worker/${workerId(1)}`, "Ready+Alive", "Draining+Alive"],
        [`worker/${workerId(1)}`, "Draining+Alive", "Gone+Removed"],
      ]);
    });

    it("over beats that were lost: from Ready to Gone", async () => {
      await reactor.beat({ sequence: 1, state: "Ready" });
      await reactor.beat({ sequence: 3, state: "Gone" });
      const steps = reactor.log.lines.map(({ fields }) => [fields["from"], fields["to"]]);
      expect(steps.at(-1)).to.deep.equal(["Ready+Alive", "Gone+Removed"]);
      expect(reactor.takeTopics()).to.deep.equal(["worker_registered", "worker_deregistered"]);
    });

    it("never back", async () => {
      await reactor.beat({ sequence: 1, state: "Draining" });
      await reactor.beat({ sequence: 2, state: "Ready" });
      expect(reactor.stateOf()).to.equal("Draining+Alive");
      await reactor.beat({ sequence: 3, state: "Gone" });
      expect(await reactor.beat({ sequence: 4, state: "Ready" })).to.equal("accepted");
      expect(reactor.stateOf()).to.equal("Gone+Removed");
    });

    it("out for good: a worker that left is on stable storage as such, and its silence no failure", async () => {
      await reactor.beat({ sequence: 1 });
      await reactor.beat({ sequence: 2, state: "Gone" });
      expect(reactor.written.durability).to.equal("sync");
      reactor.takeTopics();
      await reactor.watch(30_000);
      expect(reactor.takeTopics()).to.deep.equal([]);
      expect(reactor.stateOf()).to.equal("Gone+Removed");
    });
  });

  describe("of another incarnation", () => {
    beforeEach(async () => {
      await reactor.beat({ incarnation: incarnationId(5), sequence: 40, state: "Draining", slots: 1 });
      reactor.takeTopics();
      reactor.pass(100);
    });

    it("that is newer begins anew, and says who was superseded by whom", async () => {
      const beat = { incarnation: incarnationId(6), sequence: 1, state: "Init", slots: 2, plugins } as const;
      expect(await reactor.beat(beat)).to.equal("accepted");
      expect(reactor.stateOf()).to.equal("Init+Alive");
      expect(reactor.written.durability).to.equal("sync");
      expect(reactor.events.of("worker_superseded")).to.deep.equal([
        { worker_id: workerId(1), incarnation: incarnationId(5), superseded_by: incarnationId(6) },
      ]);
      expect(reactor.takeTopics()).to.deep.equal(["worker_superseded", "worker_registered"]);
      expect(reactor.state.workers.get(workerId(1))).to.deep.include({ slots: 2, plugins, sequence: 1 });
    });

    it("that is older is told so, and changes nothing", async () => {
      const before = structuredClone(reactor.state.workers);
      expect(await reactor.beat({ incarnation: incarnationId(4), sequence: 99 })).to.equal("superseded");
      expect(reactor.state.workers).to.deep.equal(before);
      expect(reactor.written).to.deep.include({ puts: [], deletes: [] });
      expect(reactor.takeTopics()).to.deep.equal([]);
    });

    it("in one turn with the older one: both are answered rightly, whoever comes first", async () => {
      const newer = { incarnation: incarnationId(6), sequence: 1 };
      const older = { incarnation: incarnationId(5), sequence: 41 };
      expect((await reactor.beats(newer, older)).map(({ verdict }) => verdict)).to.deep.equal([
        "accepted",
        "superseded",
      ]);
      expect(
        (await reactor.beats({ ...older, workerId: workerId(2) }, { ...newer, workerId: workerId(2) })).map(
          ({ verdict }) => verdict,
        ),
      ).to.deep.equal(["accepted", "accepted"]);
    });

    it("takes the place of one that failed or left", async () => {
      await reactor.watch(6_000);
      expect(reactor.stateOf()).to.equal("Draining+Failed");
      await reactor.beat({ incarnation: incarnationId(6) });
      expect(reactor.stateOf()).to.equal("Ready+Alive");
      await reactor.beat({ incarnation: incarnationId(6), sequence: 2, state: "Gone" });
      await reactor.beat({ incarnation: incarnationId(7), state: "Init" });
      expect(reactor.stateOf()).to.equal("Init+Alive");
    });

    it("is refused by a restarted coordinator as well", async () => {
      await reactor.lead();
      expect(await reactor.beat({ incarnation: incarnationId(4) })).to.equal("superseded");
    });
  });

  describe("of a worker that an operator wants to leave", () => {
    const drain = async (): Promise<readonly boolean[]> => {
      const answers: boolean[] = [];
      const answer = (isKnown: boolean): void => void answers.push(isKnown);
      await reactor.step({ kind: "drainWorker", workerId: workerId(1), answer });
      return answers;
    };

    beforeEach(async () => {
      await reactor.beat({ state: "Ready" });
    });

    it("is answered so once that is on stable storage, also by the next coordinator", async () => {
      expect(await drain()).to.deep.equal([true]);
      expect(reactor.written.puts.map(({ key }) => key)).to.include(workerKey(workerId(1)));
      expect(reactor.written.durability).to.equal("sync");
      await reactor.lead();
      expect(await reactor.beat({ sequence: 2 })).to.equal("drain");
      expect(await drain(), "asked again").to.deep.equal([true]);
      expect(await reactor.beat({ sequence: 3, state: "Draining" })).to.equal("accepted");
    });

    it("is answered so when it was silent meanwhile", async () => {
      await reactor.watch(6_000);
      await drain();
      expect(reactor.stateOf()).to.equal("Ready+Failed");
      expect(await reactor.beat({ sequence: 2 })).to.equal("drain");
    });

    it("is answered as any other when it is of its next process, also after a restart", async () => {
      await drain();
      expect(await reactor.beat({ incarnation: incarnationId(2) })).to.equal("accepted");
      await reactor.lead();
      expect(await reactor.beat({ incarnation: incarnationId(2), sequence: 2 })).to.equal("accepted");
    });
  });
});
