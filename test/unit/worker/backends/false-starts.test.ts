import { expect } from "chai";
import { seededRandom } from "../../../../src/base/random.ts";
import { FalseStarts } from "../../../../src/worker/backends/false-starts.ts";
import { VirtualClock } from "../../../support/virtual-clock.ts";

describe("false starts", () => {
  let clock: VirtualClock;
  let starts: FalseStarts;
  beforeEach(() => {
    clock = new VirtualClock();
    starts = new FalseStarts({ clock, random: seededRandom(1) });
  });

  /** A child that is started now and ends a second later. */
  async function oneMore({ works = false, reason = "no GPU" } = {}): Promise<number | undefined> {
    const startedAtMs = clock.monotonicMs();
    await clock.advance(1_000);
    return starts.count({ reason, startedAtMs }, works);
  }

  it("are waited after, and there is no use in another after three", async () => {
    expect(await oneMore()).to.be.within(0, 500);
    expect(await oneMore()).to.be.within(0, 1_000);
    expect(await oneMore()).to.equal(undefined);
  });

  it("are no reason to give up while another child works", async () => {
    for (let at = 0; at < 10; at++) expect(await oneMore({ works: true })).to.be.a("number");
    expect(await oneMore()).to.equal(undefined);
  });

  it("count as one when the processes were started side by side", async () => {
    const startedAtMs = clock.monotonicMs();
    await clock.advance(1_000);
    for (let at = 0; at < 10; at++) {
      expect(starts.count({ reason: "no GPU", startedAtMs }, false)).to.be.a("number");
      await clock.advance(10);
    }
    expect(starts.inRow).to.equal(1);
  });

  it("are forgotten when a child becomes ready", async () => {
    await oneMore();
    await oneMore();
    starts.over();
    expect([starts.inRow, starts.last]).to.deep.equal([0, undefined]);
    expect(await oneMore()).to.be.a("number");
  });

  it("tell the latest reason, and since when there are any", async () => {
    await oneMore({ reason: "first" });
    const sinceMs = clock.monotonicMs();
    await oneMore({ reason: "second" });
    expect(starts.last).to.deep.equal({ reason: "second", sinceMs });
  });
});
