// The protocol of `@statelyai/inspect`, spoken by a coordinator and a worker, and read by that package's own receiver.
import { readFile } from "node:fs/promises";
import { expect } from "chai";
import { withCluster } from "../support/cluster.ts";
import { concurrentTests } from "../support/concurrent.ts";
import { eventually } from "../support/eventually.ts";
import { StatelyRelay } from "./stately-relay.ts";

const SECRET = "the-payload-is-nobodys-business";

describe("an inspector of Stately's", () => {
  const it = concurrentTests(2);

  it("is told by a coordinator and a worker of their charts, actors first and in order, also of a drain, and of no payload", async () => {
    const relay = await StatelyRelay.open();
    try {
      const settings = { "inspect.stately": relay.url, "mock.sleep": "300ms" };
      await withCluster(settings, async (cluster) => {
        const received = await relay.receive();
        const coordinator = await cluster.startCoordinator();
        const worker = await cluster.startWorker();
        const { worker_id: id } = await worker.identity();
        await cluster.submit(Array.from({ length: 40 }, (_, at) => ({ secret: SECRET, at })));
        // Items are sampled once a second.
        await eventually(
          "steps of an item and an attempt",
          () =>
            received.sessions("work-item").some((item) => received.of(item).length >= 3) &&
            received.sessions("execution").some((attempt) => received.of(attempt).length >= 2),
        );
        expect((await cluster.run("worker", "drain", id)).code).to.equal(0);
        expect((await worker.ended).code).to.equal(0);
        await eventually("the worker's goodbye", () =>
          received.states(`worker-lifecycle/${id}`).at(-1)?.includes("Removed"),
        );
        await coordinator.stop();

        const drain = received.states(`spot-drain/${id}`);
        expect([drain[0], drain.at(-1)]).to.deep.equal(['"Idle"', '"Drained"']);
        expect(drain).to.include('{"Draining":"Finishing"}');
        const life = received
          .states(`worker-lifecycle/${id}`)
          .map((state) => state.replace(/"liveness".*/, ""));
        expect(life.slice(-2)).to.deep.equal(['{"lifecycle":"Draining",', '{"lifecycle":"Gone",']);
        const [role = ""] = received.sessions("coordinator-role");
        expect(received.states(role)).to.include.members([
          '"Leader"',
          '{"Candidate":{"Following":"Willing"}}',
        ]);
        expect(received.states(`run/${cluster.runId}`)).to.deep.equal(['{"Open":"Active"}']);

        // A snapshot follows its event, and both follow their actor, whose parent was there before.
        const known = new Set<string>();
        for (const [at, event] of received.events.entries()) {
          if (event.type === "@xstate.actor") {
            known.add(event.sessionId);
            if (event.parentId !== undefined) expect(known).to.include(event.parentId);
            expect(JSON.parse(event.definition ?? "")).to.include.keys("id", "states");
          } else {
            expect(known).to.include(event.sessionId);
            if (event.type !== "@xstate.event") continue;
            const own = received.events.slice(at + 1).find(({ sessionId }) => sessionId === event.sessionId);
            expect(own).to.deep.include({ type: "@xstate.snapshot", event: event.event });
          }
        }
        const all = relay.messages.join("\n");
        expect(all).not.to.include(SECRET);
        expect(all).not.to.include("PRIVATE KEY");
        expect(all).not.to.include((await readFile(cluster.file("data/tls/ca.pem"), "utf8")).slice(30, 60));
        for (const said of [coordinator.describe(), worker.describe()])
          expect(said).not.to.include("t0p-s3cret");
      });
    } finally {
      await relay.close();
    }
  });

  it("on another machine is refused, unless the user says so, without the address's token", async () => {
    await withCluster({ "inspect.stately": "wss://inspector.example/?token=t0p-s3cret" }, async (cluster) => {
      const refused = await cluster.run("coordinator", "run");
      expect(refused.code).to.equal(2);
      expect(refused.stderr).to.include("wss://inspector.example").and.include("inspect.stately_remote");
      expect(refused.stderr).not.to.include("t0p-s3cret");
      // There is no such name: nothing is delayed by that.
      await cluster.configure({ "inspect.stately_remote": "true" });
      const coordinator = await cluster.startCoordinator();
      await coordinator.logLine({ message: "the inspector cannot be told of charts" });
      expect((await cluster.run("status")).code).to.equal(0);
    });
  });
});
