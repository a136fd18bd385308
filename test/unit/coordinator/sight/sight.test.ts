import { expect } from "chai";
import { Sight } from "../../../../src/coordinator/sight/sight.ts";
import { VirtualClock } from "../../../support/virtual-clock.ts";
import { World } from "../../../support/world.ts";

describe("the sight of a leader", () => {
  it("asks again that items are followed no more, until that is heard", async () => {
    const [clock, { state }] = [new VirtualClock(), await World.start()];
    const sight = new Sight(clock);
    const asked: number[] = [];
    let takes = true;
    sight.begin({ state, sample: (items) => asked.push(items) > 0 && takes });
    const reader = sight.follow();
    await clock.advance(1_000);
    reader?.end();
    takes = false;
    await clock.advance(2_000);
    takes = true;
    await clock.advance(3_000);
    expect(asked).to.deep.equal([16, 0, 0, 0]);
    sight.end();
  });

  it("tells a point and the items at work in one go, and the point alone where no items can be had", async () => {
    const [clock, { state }] = [new VirtualClock(), await World.start()];
    const sight = new Sight(clock);
    const reader = sight.follow();
    let takes = true;
    sight.begin({ state, sample: (_, told) => takes && (told({ items: [] }), true) });
    const kinds = async (): Promise<unknown> => (await reader?.next())?.entries.map(({ kind }) => kind);
    expect(await kinds()).to.deep.equal(["point", "atWork"]);
    takes = false;
    await clock.advance(1_000);
    expect(await kinds()).to.deep.equal(["point"]);
    sight.end();
  });

  it("remembers events of the cluster, and no beats", async () => {
    const sight = new Sight(new VirtualClock({ wallMs: 7 }));
    const worker = { worker_id: "W", incarnation: "I" };
    sight.event({ topic: "worker_heartbeat", payload: { ...worker, sequence: 1, state: "Ready", load: 0 } });
    sight.event({ topic: "worker_recovered", payload: worker });
    expect(sight.remembered().entries).to.deep.equal([
      {
        kind: "happening",
        happening: { atMs: 7, topic: "worker_recovered", fields: JSON.stringify(worker) },
      },
    ]);
  });
});
