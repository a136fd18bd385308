import { expect } from "chai";
import { WorkerLiveness, WorkerState } from "../../../../src/gen/rollout/v1/common_pb.ts";
import type { ListWorkersResponse } from "../../../../src/gen/rollout/v1/run_pb.ts";
import { useLedCluster } from "../../../support/led-cluster.ts";
import { workerId } from "../../../support/world-worker.ts";
import { failureOf } from "../../../support/rejection.ts";
import { beatMessage } from "../../../support/worker-client.ts";

describe("the service of operators", () => {
  const led = useLedCluster();

  beforeEach(async () => {
    for (const number of [2, 3, 1]) {
      const { beats, worker } = await led.join({ id: workerId(number) });
      await beats.beat({ beat: beatMessage(worker) });
    }
  });

  const idsOf = ({ workers }: ListWorkersResponse): string[] => workers.map((info) => info.workerId);

  it("lists workers as they are, under the leader's epoch", async () => {
    const listing = await led.operator.run.listWorkers({});
    expect(idsOf(listing)).to.deep.equal([1, 2, 3].map(workerId));
    expect(listing).to.deep.include({ more: false });
    expect(listing.coordinator?.coordEpoch).to.equal(0n);
    const [first] = listing.workers;
    expect(first).to.include({
      state: WorkerState.READY,
      liveness: WorkerLiveness.ALIVE,
      load: 0.5,
      slots: 1,
    });
    expect(first?.lastBeatAgeMs).to.be.a("number");
  });

  it("lists workers in pages", async () => {
    const first = await led.operator.run.listWorkers({ limit: 2 });
    expect([idsOf(first), first.more]).to.deep.equal([[1, 2].map(workerId), true]);
    const afterWorkerId = first.workers.at(-1)?.workerId ?? "";
    const last = await led.operator.run.listWorkers({ limit: 2, afterWorkerId });
    expect([idsOf(last), last.more]).to.deep.equal([[workerId(3)], false]);
  });

  it("takes a limit above its own for its own", async () => {
    expect(idsOf(await led.operator.run.listWorkers({ limit: 2 ** 32 - 1 }))).to.have.length(3);
  });

  it("refuses a page after what is no id", async () => {
    const error = await failureOf(led.operator.run.listWorkers({ afterWorkerId: "0A" }));
    expect(error.code).to.equal("request_invalid");
    expect(error.params["reason"]).to.equal("after_worker_id is no ULID");
  });

  it("refuses calls of workers and of enrolment bundles", async () => {
    for (const role of ["worker", "enrolment"] as const) {
      const { run } = await led.join({ role });
      expect((await failureOf(run.listWorkers({}))).code).to.equal("permission_denied");
    }
    expect(led.listening.audit.map(({ reason }) => reason)).to.deep.equal([
      "role_not_allowed",
      "role_not_allowed",
    ]);
  });
});
