import { expect } from "chai";
import { ulidFromBytes } from "../../../../src/base/ids.ts";
import type { WorkerId } from "../../../../src/base/ids.ts";
import { WorkerLiveness, WorkerState } from "../../../../src/gen/rollout/v1/common_pb.ts";
import type { ListWorkersResponse } from "../../../../src/gen/rollout/v1/run_pb.ts";
import { useClosers } from "../../../support/closers.ts";
import { workerId } from "../../../support/reactor-harness.ts";
import { failureOf } from "../../../support/rejection.ts";
import type { ListeningCoordinator } from "../../../support/test-coordinator.ts";
import { newTestCluster, startListeningCoordinator } from "../../../support/test-coordinator.ts";
import { beatMessage, workerClient } from "../../../support/worker-client.ts";
import type { WorkerClient } from "../../../support/worker-client.ts";

describe("the service of operators", () => {
  const closeLater = useClosers();
  let listening: ListeningCoordinator;
  let operator: WorkerClient;

  beforeEach(async () => {
    listening = await startListeningCoordinator(await newTestCluster());
    closeLater(() => listening.stop());
    operator = await join({ role: "operator" });
    for (const number of [2, 3, 1]) {
      const { beats, worker } = await join({ id: workerId(number) });
      await beats.beat({ beat: beatMessage(worker) });
    }
  });

  async function join(options: Parameters<typeof workerClient>[1]): Promise<WorkerClient> {
    const joined = await workerClient(listening, options);
    closeLater(joined.close);
    return joined;
  }

  const idsOf = ({ workers }: ListWorkersResponse): string[] =>
    workers.map(({ workerId: bytes }) => ulidFromBytes<WorkerId>(bytes));

  it("lists workers as they are, under the leader's epoch", async () => {
    const listing = await operator.run.listWorkers({});
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
    expect(first?.lastBeatAgeMs).to.be.a("bigint");
  });

  it("lists them in pages", async () => {
    const first = await operator.run.listWorkers({ limit: 2 });
    expect([idsOf(first), first.more]).to.deep.equal([[1, 2].map(workerId), true]);
    const afterWorkerId = first.workers.at(-1)?.workerId ?? new Uint8Array();
    const last = await operator.run.listWorkers({ limit: 2, afterWorkerId });
    expect([idsOf(last), last.more]).to.deep.equal([[workerId(3)], false]);
  });

  it("takes a limit above its own for its own", async () => {
    expect(idsOf(await operator.run.listWorkers({ limit: 2 ** 32 - 1 }))).to.have.length(3);
  });

  it("refuses a page after what is no id", async () => {
    const error = await failureOf(operator.run.listWorkers({ afterWorkerId: new Uint8Array(3) }));
    expect(error.code).to.equal("request_invalid");
    expect(error.params["reason"]).to.equal("after_worker_id is not 16 bytes");
  });

  it("is not there for workers and for those who want to become one", async () => {
    for (const role of ["worker", "enrolment"] as const) {
      const { run } = await join({ role });
      expect((await failureOf(run.listWorkers({}))).code).to.equal("permission_denied");
    }
    expect(listening.audit.map(({ reason }) => reason)).to.deep.equal([
      "role_not_allowed",
      "role_not_allowed",
    ]);
  });
});
