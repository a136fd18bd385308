import { expect } from "chai";
import { systemClock } from "../../../src/base/clock.ts";
import { LeaderEar } from "../../../src/compose/leader-ear.ts";
import { ACCESS } from "../../../src/coordinator/rpc/leader.ts";
import { CoordinatorService } from "../../../src/gen/rollout/v1/coordinator_pb.ts";
import { silentLogger } from "../../../src/observe/log.ts";
import type { Credentials, Role } from "../../../src/transport/tls/identity.ts";
import { newIdentity, newRunId, TestAuthority } from "../../support/certificates.ts";
import { useClosers } from "../../support/closers.ts";
import { eventually } from "../../support/eventually.ts";
import { startTcpProxy } from "../../support/tcp-proxy.ts";
import { startTestServer } from "../../support/test-server.ts";

describe("whether a follower hears the leader", () => {
  const closeLater = useClosers();
  const runId = newRunId();
  let ca: TestAuthority;

  before(async () => {
    ca = await TestAuthority.make();
  });

  async function ear(role: Role = "coordinator"): Promise<LeaderEar> {
    const credentials: Credentials = await ca.issue(newIdentity(runId, role));
    const listening = new LeaderEar({
      ...{ runId, clock: systemClock, log: silentLogger, heartbeatIntervalMs: 100 },
      credentials: () => credentials,
    });
    closeLater(() => listening.close());
    return listening;
  }

  /** Its address, and a way to cut it. */
  async function leader() {
    const server = await startTestServer(
      { runId, ca },
      {
        access: ACCESS,
        routes: (router) => void router.service(CoordinatorService, { describe: () => ({}) }),
      },
    );
    const proxy = await startTcpProxy(server.port);
    closeLater(() => proxy.close());
    closeLater(() => server.close(0));
    return proxy;
  }

  it("is unknown at first, then so as long as the leader answers", async () => {
    const [{ hears }, { address }] = [await ear(), await leader()];
    expect(hears(address)).to.equal(undefined);
    await eventually("it hears", () => hears(address) === true);
  });

  it("is no while the network to the leader is cut, and yes when it is back", async () => {
    const [{ hears }, proxy] = [await ear(), await leader()];
    await eventually("it hears", () => hears(proxy.address) === true);
    proxy.cut();
    await eventually("it does not hear", () => hears(proxy.address) === false);
    proxy.heal();
    await eventually("it hears again", () => hears(proxy.address) === true);
  });

  it("is judged anew for another leader", async () => {
    const [{ hears }, one, other] = [await ear(), await leader(), await leader()];
    await eventually("it hears", () => hears(one.address) === true);
    expect(hears(other.address)).to.equal(undefined);
    await eventually("it hears the other", () => hears(other.address) === true);
  });

  it("stays unknown for a follower whose calls the leader refuses", async () => {
    const [{ hears }, { address }] = [await ear("worker"), await leader()];
    hears(address);
    await systemClockTurns();
    for (let asked = 0; asked < 20; asked++) {
      expect(hears(address)).to.equal(undefined);
      await systemClockTurns();
    }
  });
});

/** Long enough for a call to this process to be answered. */
async function systemClockTurns(): Promise<void> {
  for (let turn = 0; turn < 50; turn++) await new Promise<void>((resolve) => systemClock.nextTurn(resolve));
}
