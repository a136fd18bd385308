import { expect } from "chai";
import { AsyncQueue } from "../../../src/base/async-queue.ts";
import { announced } from "../../../src/client/slow-input.ts";
import { VirtualClock } from "../../support/virtual-clock.ts";

describe("an input that keeps its reader waiting", () => {
  it("is named once, after a second, and gives every chunk", async () => {
    const clock = new VirtualClock();
    const input = new AsyncQueue<string>(8);
    let said = 0;
    const got: string[] = [];
    const reading = (async () => {
      for await (const chunk of announced(input, clock, () => void said++)) got.push(chunk);
    })();
    input.push("a");
    await clock.advance(900);
    input.push("b");
    await clock.advance(900);
    expect(said).to.equal(0);
    await clock.advance(200);
    expect(said).to.equal(1);
    input.push("c");
    await clock.advance(5_000);
    input.end();
    await reading;
    expect([said, got]).to.deep.equal([1, ["a", "b", "c"]]);
  });
});
