// A worker whose certificate was revoked, as the coordinator counts on it and shows it. The listener keeps it out
// (src/transport). It may execute what it has, so that stays with it until it counts as lost.
import { expect } from "chai";
import { WorkerLiveness } from "../../../../src/gen/rollout/v1/common_pb.ts";
import type { WorkerCounts } from "../../../../src/gen/rollout/v1/run_pb.ts";
import { LIVENESS, World } from "../../../support/world.ts";
import { WorldOperator } from "../../../support/world-operator.ts";
import type { WorldWorker } from "../../../support/world-worker.ts";
import { seenRun } from "../../../support/worker-client.ts";

describe("a worker that is revoked", () => {
  let ledger: World;
  let operator: WorldOperator;
  let worker: WorldWorker;
  let other: WorldWorker;

  beforeEach(async () => {
    ledger = await World.start();
    operator = new WorldOperator(ledger);
    worker = await ledger.worker(1, { slots: 1, credit: 2 });
    await operator.submit(["a"]);
    other = await ledger.worker(2, { slots: 1, credit: 2 });
    await operator.ask((run) => run.revoke({ bearerId: worker.id }));
  });

  const counts = async (): Promise<WorkerCounts | undefined> =>
    (await operator.ask((run) => seenRun(run))).workers;

  const shown = async (): Promise<[boolean, boolean | undefined, WorkerLiveness | undefined]> => {
    const { workers } = await operator.ask((run) => run.listWorkers({}));
    const { info } = await operator.ask((run) => run.getWorker({ workerId: worker.id }));
    expect(workers.map(({ revoked }) => revoked).slice(1), "nobody else is").to.not.include(true);
    return [workers[0]?.revoked === true, info?.revoked, info?.liveness];
  };

  it("is shown as that, and counted as nothing else, at once, when it is lost and under the next leader", async () => {
    expect(await shown()).to.deep.equal([true, true, WorkerLiveness.ALIVE]);
    expect(await counts()).to.deep.include({ ready: 1, revoked: 1 });
    await ledger.watch(LIVENESS.coordinatorFailureTimeoutMs * 2, [other]);
    expect(await shown()).to.deep.equal([true, true, WorkerLiveness.FAILED]);
    expect(await counts()).to.deep.include({ ready: 1, suspected: 0, failed: 0, revoked: 1 });
    await ledger.lead();
    expect(await shown()).to.deep.equal([true, true, WorkerLiveness.FAILED]);
  });

  it("gets nothing more while its session ends", async () => {
    await operator.submit(["b", "c"]);
    expect([worker.texts, other.texts]).to.deep.equal([["a"], ["b", "c"]]);
  });

  it("keeps what it has until it counts as lost; then others get that", async () => {
    const { heartbeatIntervalMs, coordinatorFailureTimeoutMs } = LIVENESS;
    await ledger.watch(coordinatorFailureTimeoutMs - heartbeatIntervalMs, [other]);
    expect([worker.texts, other.texts], "it may still execute it").to.deep.equal([["a"], []]);
    await ledger.watch(coordinatorFailureTimeoutMs, [other]);
    expect(other.texts).to.deep.equal(["a"]);
  });
});
