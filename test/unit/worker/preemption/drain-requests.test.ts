import { expect } from "chai";
import type { Hint } from "../../../../src/worker/preemption/compute-hint.ts";
import { DrainRequests } from "../../../../src/worker/preemption/compute-hint.ts";
import { Watching } from "./watching.ts";

const sigterm: Hint = { kind: "request", cause: "sigterm", targetMs: undefined, noticedAtMs: 1 };
const operator: Hint = { kind: "request", cause: "operator", targetMs: 5_000, noticedAtMs: 2 };

describe("drain requests", () => {
  it("reach everybody who watches, those who come later as well", async () => {
    const requests = new DrainRequests();
    const [early, late] = [new Watching(), new Watching()];
    early.start(requests);
    requests.say(sigterm);
    late.start(requests);
    requests.say(operator);
    expect(early.hints).to.deep.equal([sigterm, operator]);
    expect(late.hints).to.deep.equal([sigterm, operator]);
    await early.stop();
    await late.stop();
  });

  it("reach nobody who has stopped", async () => {
    const requests = new DrainRequests();
    const watching = new Watching();
    watching.start(requests);
    await watching.stop();
    requests.say(sigterm);
    watching.start(requests);
    await watching.over();
    expect(watching.hints).to.deep.equal([]);
  });

  it("stop in the middle when the listener has heard enough", async () => {
    const requests = new DrainRequests();
    requests.say(sigterm);
    requests.say(operator);
    const heard: Hint[] = [];
    const stopping = new AbortController();
    await requests.watch(stopping.signal, (hint) => {
      heard.push(hint);
      stopping.abort();
    });
    expect(heard).to.deep.equal([sigterm]);
  });
});
