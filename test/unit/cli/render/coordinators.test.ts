// The table of coordinators under the status of a run.
import { expect } from "chai";
import { coordinatorsText } from "../../../../src/cli/render/coordinators.ts";
import type { CoordinatorSummary } from "../../../../src/client/coordinators.ts";

const NOW_MS = Date.UTC(2026, 10, 3, 10);

function coordinator(port: number, change: Partial<CoordinatorSummary> = {}): CoordinatorSummary {
  return {
    ...{
      incarnation: `01C${String(port).padStart(23, "0")}`,
      address: `10.0.0.1:${port}`,
      role: "following",
    },
    ...{
      present: true,
      epoch: 4,
      weight: 1,
      snapshotNumber: 12,
      rehearsalMs: 40,
      rehearsedAtMs: NOW_MS - 5_000,
    },
    ...{ hearsLeader: true, electedAtMs: undefined },
    ...change,
  };
}

describe("the table of coordinators", () => {
  const leading: Partial<CoordinatorSummary> = {
    ...{ role: "leader", hearsLeader: undefined, rehearsalMs: undefined, rehearsedAtMs: undefined },
    electedAtMs: NOW_MS - 180_000,
  };

  it("election: the holder stands in it with since when it leads", () => {
    const text = coordinatorsText([coordinator(1), coordinator(2, leading)], NOW_MS);
    const [head, follower, leader] = text.split("\n");
    expect(head).to.match(/^COORDINATOR +ROLE +LEADS SINCE +EPOCH/);
    expect(follower).to.match(/^10\.0\.0\.1:1 +following +- +4 /);
    expect(leader).to.match(/^10\.0\.0\.1:2 +leader +2026-11-03T09:57:00\.000Z, 3m ago +4 /);
  });

  it("is empty for a single coordinator", () => {
    expect(coordinatorsText([coordinator(1, leading)], NOW_MS)).to.equal("");
  });
});
