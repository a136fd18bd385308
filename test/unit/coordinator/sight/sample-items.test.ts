import { expect } from "chai";
import type { Filled } from "../../../../src/coordinator/turn/operator-message.ts";
import type { AtWork } from "../../../../src/gen/rollout/v1/run_pb.ts";
import { World } from "../../../support/world.ts";

describe("the items at work that somebody looks at", () => {
  let world: World;

  beforeEach(async () => {
    world = await World.start();
    await world.submit(["a", "b", "c", "d"]);
  });

  const sample = (items: number): Promise<Filled<AtWork>> =>
    world.ask((answer) => ({ kind: "sampleItems", items, answer }));
  const seen = async (items: number): Promise<string[]> =>
    (await sample(items)).items.map(({ item }) => item);
  /** Steps of items that were told of, as they are logged. */
  const steps = (): unknown[] =>
    world.log.lines
      .filter(
        ({ message, fields }) => message === "transition" && String(fields["address"]).startsWith("item/"),
      )
      .map(({ fields: { event, from, to } }) => [event, from, to]);

  it("are some of those that workers have, the same ones for as long as they have them", async () => {
    const worker = await world.worker(1, { credit: 3 });
    const first = await seen(2);
    expect(first).to.have.length(2);
    expect(await seen(2)).to.deep.equal(first);
    const [done, ...others] = worker.held;
    await worker.report(done === undefined ? [] : [done]);
    const [second] = first.slice(1);
    const later = await seen(2);
    expect(later[0]).to.equal(second);
    expect(later).to.have.length(2);
    expect(others).to.have.length(2);
  });

  it("say who has them, under which attempt, and since when by the wall clock", async () => {
    const { id: worker } = await world.worker(1, { credit: 1 });
    const assignedAtMs = world.wallMs;
    world.pass(1_500);
    const [found] = (await sample(9)).items;
    expect(found).to.deep.include({ worker, attempt: 1, assignedAtMs });
  });

  it("have their steps told, and no others have", async () => {
    const worker = await world.worker(1, { credit: 2 });
    await sample(1);
    await worker.report([...worker.held]);
    expect(steps()).to.deep.equal([["item.succeeded", "Running", "Done"]]);
  });

  it("are none any more when nobody looks", async () => {
    const worker = await world.worker(1, { credit: 2 });
    await sample(2);
    expect(await seen(0)).to.deep.equal([]);
    await worker.report([...worker.held]);
    expect(steps()).to.deep.equal([]);
  });
});
