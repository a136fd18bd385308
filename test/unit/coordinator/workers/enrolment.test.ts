import { expect } from "chai";
import type { EnrolmentVerdict } from "../../../../src/coordinator/turn/input.ts";
import { newWorkerId } from "../../../support/certificates.ts";
import { World } from "../../../support/world.ts";

describe("a bundle that is revoked", () => {
  it("lets nobody in who had asked before its listener knew", async () => {
    const ledger = await World.start();
    const id = newWorkerId();
    const bundle = { id, endsAtWallMs: ledger.wallMs + 1_000_000, warnFromWallMs: ledger.wallMs + 1_000_000 };
    const verdicts: EnrolmentVerdict[] = [];
    const asks = {
      ...({ kind: "enrol", workerId: newWorkerId(), bundle } as const),
      answer: (verdict: EnrolmentVerdict) => void verdicts.push(verdict),
    };
    await ledger.step(asks, { kind: "revoke", id, withWorkers: false, answer: () => undefined }, asks);
    expect(verdicts).to.deep.equal([{ kind: "granted" }, { kind: "revoked", who: `enrolment ${id}` }]);
  });
});
