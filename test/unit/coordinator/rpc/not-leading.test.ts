import { expect } from "chai";
import type { Epoch } from "../../../../src/base/ids.ts";
import type { RolloutError } from "../../../../src/base/errors.ts";
import type { KnownLeader } from "../../../../src/coordinator/lead/attendance.ts";
import { notLeader, refusedRoutes } from "../../../../src/coordinator/rpc/not-leading.ts";
import { useLedCluster } from "../../../support/led-cluster.ts";
import { failureOf } from "../../../support/rejection.ts";
import type { WorkerClient } from "../../../support/worker-client.ts";
import { beatMessage } from "../../../support/worker-client.ts";

describe("a coordinator that follows", () => {
  const led = useLedCluster();
  let leader: KnownLeader | undefined;
  let operator: WorkerClient;

  beforeEach(async () => {
    operator = await led.join({ role: "operator", isAlone: true });
    leader = { address: "127.0.0.1:9", epoch: 7 as Epoch };
    led.listening.server.setRoutes((router) => refusedRoutes(router, () => notLeader(leader, 249.5)));
  });

  function expectRefusal({ code, params }: RolloutError, address: string, epoch: string): void {
    expect([code, params]).to.deep.equal(["not_leader", { address, epoch, retry_after_ms: "250" }]);
  }

  it("refuses a call with who leads", async () => {
    expectRefusal(await failureOf(operator.run.getRun({})), "127.0.0.1:9", "7");
    const { beats, worker } = await led.join({ isAlone: true });
    expectRefusal(await failureOf(beats.beat({ beat: beatMessage(worker) })), "127.0.0.1:9", "7");
  });

  it("refuses streams of both ways and of one with it", async () => {
    const events = operator.run.watchEvents({ follow: true });
    expectRefusal(await failureOf(events[Symbol.asyncIterator]().next()), "127.0.0.1:9", "7");
    const { beats } = await led.join({ isAlone: true });
    const acks = beats.beatStream(silence());
    expectRefusal(await failureOf(acks[Symbol.asyncIterator]().next()), "127.0.0.1:9", "7");
  });

  it("says so while it knows no leader, and the new one as soon as it does", async () => {
    leader = undefined;
    expectRefusal(await failureOf(operator.run.getRun({})), "unknown", "unknown");
    leader = { address: "127.0.0.1:8", epoch: 8 as Epoch };
    expectRefusal(await failureOf(operator.run.getRun({})), "127.0.0.1:8", "8");
  });

  it("is the leader again for calls that come after its routes are back", async () => {
    led.listening.server.setRoutes(led.listening.coordinator.routes);
    await operator.run.getRun({});
  });
});

async function* silence(): AsyncGenerator<never> {
  await new Promise(() => undefined);
}
