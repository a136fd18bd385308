import { expect } from "chai";
import { RoleSteps } from "../../../../src/coordinator/sight/role-steps.ts";
import { Sight } from "../../../../src/coordinator/sight/sight.ts";
import { VirtualClock } from "../../../support/virtual-clock.ts";

const FREE = { event: "lease.free", from: "Candidate.Following", to: "Candidate.Claiming" };
const WON = { event: "lease.won", from: "Candidate.Claiming", to: "Leader" };

describe("the steps of a coordinator's role", () => {
  it("are seen by the leadership that they led to, those of before with their own times", async () => {
    const clock = new VirtualClock({ wallMs: 1_000 });
    const steps = new RoleSteps(clock);
    steps.note({ event: "xstate.init", from: "", to: "Candidate.Following" });
    steps.note(FREE);
    await clock.advance(500);
    const sight = new Sight(clock);
    steps.showTo(sight, "127.0.0.1:7");
    steps.note(WON);
    const common = { chart: "coordinator-role", actor: "127.0.0.1:7" };
    expect(sight.remembered().entries).to.deep.equal([
      { kind: "transition", transition: { ...common, ...FREE, atMs: 1_000 } },
      { kind: "transition", transition: { ...common, ...WON, atMs: 1_500 } },
    ]);
  });

  it("are forgotten from the oldest on, and told to no leadership but the last", () => {
    const clock = new VirtualClock();
    const steps = new RoleSteps(clock);
    const [former, next] = [new Sight(clock), new Sight(clock)];
    steps.showTo(former, "a");
    for (let at = 0; at < 100; at++) steps.note({ ...FREE, event: `look-${at}` });
    steps.showTo(next, "a");
    steps.note(WON);
    const eventsOf = (sight: Sight): unknown[] =>
      sight.remembered().entries.map((one) => one.kind === "transition" && one.transition.event);
    expect(eventsOf(former)).to.have.length(100);
    expect(eventsOf(next)).to.have.length(33);
    expect(eventsOf(next)[0]).to.equal("look-68");
    expect(eventsOf(next).at(-1)).to.equal("lease.won");
  });
});
