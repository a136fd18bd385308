import { expect } from "chai";
import type { SessionInput } from "../../../../src/coordinator/turn/session-frame.ts";
import { World } from "../../../support/world.ts";
import { reportOf } from "../../../support/world-worker.ts";

describe("a frame of a session", () => {
  it("is counted until it is dealt with and no longer, whatever is in it (C8)", async () => {
    const ledger = await World.start();
    const worker = await ledger.worker(1, { slots: 2 });
    await ledger.submit(["a"]);
    await worker.ask(1);
    const hello = worker.helloInput() as SessionInput;
    const from = { workerId: worker.id, port: worker.port };
    const frames: SessionInput[] = [
      hello,
      { kind: "credit", more: 1, ...from },
      { kind: "handedBack", attempts: [], ...from },
      { kind: "checkpoints", checkpoints: [], ...from },
      { kind: "withdrawCredit", ...from },
      { kind: "results", number: 1, reports: worker.held.map((item) => reportOf(item)), ...from },
    ];
    const settled: string[] = [];
    for (const frame of frames) {
      await ledger.step({ ...frame, settled: () => void settled.push(frame.kind) });
      expect(settled.splice(0)).to.deep.equal([frame.kind]);
    }
  });
});
