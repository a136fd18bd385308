import { expect } from "chai";
import type { WorkerId } from "../../../../src/base/ids.ts";
import type { EnrolmentVerdict } from "../../../../src/coordinator/turn/input.ts";
import { FleetRig } from "../fleet/fleet-rig.ts";
import { newWorkerId } from "../../../support/certificates.ts";
import { World } from "../../../support/world.ts";

describe("a bundle that is revoked", () => {
  it("lets nobody in who had asked before its listener knew", async () => {
    const ledger = await World.start();
    const id = newWorkerId();
    const far = ledger.wallMs + 1_000_000;
    const bundle = { id, endsAtWallMs: far, warnFromWallMs: far, request: "a" };
    const verdicts: EnrolmentVerdict[] = [];
    const asks = {
      ...({ kind: "enrol", workerId: newWorkerId(), bundle } as const),
      answer: (verdict: EnrolmentVerdict) => void verdicts.push(verdict),
    };
    await ledger.step(asks, { kind: "revoke", id, withWorkers: false, answer: () => undefined }, asks);
    expect(verdicts).to.deep.equal([{ kind: "granted" }, { kind: "revoked", who: `enrolment ${id}` }]);
  });
});

describe("the bundle of an allocation", () => {
  it("lets its own worker in by one request, and nobody else, until it is over", async () => {
    const rig = await FleetRig.open({});
    rig.submit(1);
    await rig.pass(250);
    await rig.list([]);
    await rig.pass(250);
    const [id = ""] = await rig.launch();
    const ledger = await World.start();
    Object.assign(ledger.state, { fleets: rig.fleets });
    const ask = async (workerId: string, request = "a"): Promise<EnrolmentVerdict | undefined> => {
      const far = ledger.wallMs + 1_000_000;
      const bundle = { id, endsAtWallMs: far, warnFromWallMs: far, request };
      let verdict: EnrolmentVerdict | undefined;
      const answer = (said: EnrolmentVerdict): void => void (verdict = said);
      await ledger.step({ kind: "enrol", workerId: workerId as WorkerId, bundle, answer });
      return verdict;
    };
    const foreign = `it is for the worker of allocation ${id} alone`;
    expect(await ask(newWorkerId())).to.deep.equal({ kind: "refused", reason: foreign });
    expect(await ask(id)).to.deep.equal({ kind: "granted" });
    // The answer was lost, and it asks again.
    expect(await ask(id)).to.deep.equal({ kind: "granted" });
    const other = `the worker of allocation ${id} has joined by another request`;
    expect(await ask(id, "b")).to.deep.equal({ kind: "refused", reason: other });
    await rig.pass(1_000);
    await rig.list([]);
    expect(rig.stateOf(id)).to.equal("Failed");
    expect(await ask(id)).to.deep.equal({ kind: "refused", reason: `allocation ${id} is over` });
  });
});
