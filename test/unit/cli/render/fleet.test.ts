import { expect } from "chai";
import {
  allocationSentence,
  allocationsText,
  fleetsText,
  fleetText,
} from "../../../../src/cli/render/fleet.ts";
import { fleetLine } from "../../../../src/cli/render/run-status.ts";
import type { Allocation, FleetSummary } from "../../../../src/client/fleets.ts";

const FLEET: FleetSummary = {
  ...{ name: "spot", provider: "exec", state: "active", want: 12, joined: 3, starting: 1, queued: 1 },
  ...{ ending: 0, machineHours: 1.254, cost: undefined, reason: "", min: 0, max: 40 },
};
const HALTED: FleetSummary = { ...FLEET, state: "halted", cost: 2.5, reason: "no such\u001b image" };

const ALLOCATION: Allocation = {
  ...{ allocation: "01JZ8Q6T0C5V9W3R7X2Y4B6D90", fleet: "spot", state: "gone", ref: "job 7" },
  ...{ reason: "idle", askedAtMs: 60_000, ranMs: 12_300 },
};

describe("fleets for a terminal", () => {
  it("are a line each, with what they cost and why they stand where they stand", () => {
    const [titles = "", first = "", second = ""] = fleetsText([FLEET, HALTED]).split("\n");
    expect(titles.split(/ {2,}/)).to.include.members(["FLEET", "WANT", "HOURS", "WHY"]);
    expect(first).to.match(/^spot +exec +active +12 +3 +1 +1 +0 +1.25 +- +-$/);
    expect(second)
      .to.match(/2\.50 +no such.* image$/)
      .and.not.include("\u001b");
    expect(fleetsText([])).to.include("[[fleet]]");
  });

  it("are a line of the run's status", () => {
    expect(fleetLine(FLEET)).to.equal(
      "fleet spot: active, wants 12, 3 joined, 2 on their way, 1.25 machine-hours",
    );
    expect(fleetLine({ ...HALTED, starting: 0, queued: 0 })).to.match(
      /^fleet spot: halted, wants 12, 3 joined, 1\.25 machine-hours, cost 2\.50: no such.* image$/,
    );
  });

  it("say why they are as large as they are, and show each allocation", () => {
    expect(
      fleetText({ fleet: FLEET, facts: ["an item takes 7 ms"], allocations: [], listTrouble: "" }),
    ).to.equal(`${fleetLine(FLEET)}\n  an item takes 7 ms\n`);
    expect(allocationsText([ALLOCATION], 120_000)).to.match(
      /01JZ8Q6T0C5V9W3R7X2Y4B6D90 +spot +gone +.+ +12 s +job 7 +idle\n$/,
    );
    expect(allocationSentence(ALLOCATION, 120_000)).to.equal(
      "It is an allocation of fleet spot: gone, asked for 1m ago, ref job 7, idle.",
    );
    expect(allocationsText([], 0)).to.equal("No worker was asked for.\n");
  });
});
