// The client of several coordinators, over real connections: it finds the one that leads, and finds the next one when that is gone.
import { expect } from "chai";
import type { Client as Calls } from "@connectrpc/connect";
import { createClient } from "@connectrpc/connect";
import { systemClock } from "../../../src/base/clock.ts";
import { failure } from "../../../src/base/errors.ts";
import { HeartbeatService } from "../../../src/gen/rollout/v1/heartbeat_pb.ts";
import { OperatorService } from "../../../src/gen/rollout/v1/run_pb.ts";
import { silentLogger } from "../../../src/observe/log.ts";
import { openClient } from "../../../src/transport/client.ts";
import type { Client, ClientOptions } from "../../../src/transport/client.ts";
import { newIdentity, newRunId, TestAuthority } from "../../support/certificates.ts";
import { CoordinatorGroup } from "./coordinator-group.ts";
import type { GroupOptions } from "./coordinator-group.ts";
import { eventually } from "../../support/eventually.ts";
import { pace } from "../../support/pace.ts";
import { startDeafListener, restartableAddress } from "../../support/listeners.ts";
import { failureOf } from "../../support/rejection.ts";
import { startTcpProxy } from "../../support/tcp-proxy.ts";
import { openBeats } from "./test-clients.ts";
import { startTestServer } from "../../support/test-server.ts";

interface Opened {
  readonly client: Client;
  readonly run: Calls<typeof OperatorService>;
  readonly heartbeat: Calls<typeof HeartbeatService>;
}

describe("the client of several coordinators", () => {
  const closing: (() => void | Promise<void>)[] = [];

  afterEach(async () => {
    for (const close of closing.splice(0).reverse()) await close();
  });

  async function groupOf(count: number, options: GroupOptions = {}): Promise<CoordinatorGroup> {
    const group = await CoordinatorGroup.start(count, options);
    closing.push(() => group.close());
    return group;
  }

  function open(group: CoordinatorGroup, options: Partial<ClientOptions> = {}): Promise<Opened> {
    return openAs("operator", group, options);
  }

  async function openAs(
    role: "operator" | "worker",
    group: CoordinatorGroup,
    options: Partial<ClientOptions> = {},
  ): Promise<Opened> {
    const client = openClient({
      address: group.addresses,
      runId: group.runId,
      credentials: await group.ca.issue(newIdentity(group.runId, role)),
      clock: systemClock,
      log: silentLogger,
      ...options,
    });
    closing.push(() => client.close());
    const { transport } = client;
    return {
      client,
      run: createClient(OperatorService, transport),
      heartbeat: createClient(HeartbeatService, transport),
    };
  }

  describe("finds the leader", () => {
    it("that a coordinator names, and asks nobody else from then on", async () => {
      const group = await groupOf(3);
      group.lead(2);
      const { run } = await open(group);
      for (let call = 0; call < 3; call++) await run.getRun({});
      expect(group.members.map(({ calls }) => calls.length)).to.deep.equal([1, 0, 3]);
    });

    it("that it was not given, of a coordinator that follows", async () => {
      const group = await groupOf(3);
      group.lead(2);
      const { run } = await open(group, { address: group.member(0).address });
      await run.getRun({});
      await run.getRun({});
      expect(group.members.map(({ calls }) => calls.length)).to.deep.equal([1, 0, 2]);
    });

    it("that nobody names, by asking each once in a round", async () => {
      const group = await groupOf(4);
      group.lead(3, false);
      const { run } = await open(group);
      await run.getRun({});
      for (const { calls } of group.members) expect(calls.length).to.be.at.most(1);
      expect(group.member(3).calls).to.deep.equal(["getRun"]);
    });

    it("behind coordinators that are gone", async () => {
      const group = await groupOf(3);
      group.lead(2, false);
      await group.member(0).die();
      await group.member(1).die();
      await (await open(group)).run.getRun({});
    });

    it("when one begins to lead while it is asked for", async () => {
      const group = await groupOf(2);
      const { run } = await open(group);
      const asked = run.getRun({});
      await eventually("both are asked twice", () => group.members.every(({ calls }) => calls.length >= 2));
      group.lead(1, false);
      await asked;
    });

    it("of whom an older leader is still named by one that does not know better", async () => {
      const group = await groupOf(3);
      const old = group.lead(0);
      const { run } = await open(group);
      await run.getRun({});
      await old.die();
      group.lead(2);
      group.member(1).hint = { address: old.address, epoch: 1 };
      await run.getRun({});
      expect(group.member(2).calls).to.deep.equal(["getRun"]);
    });
  });

  describe("takes a stream", () => {
    it("to the leader with all that was sent on it", async () => {
      const group = await groupOf(3);
      group.lead(2);
      const { heartbeat } = await openAs("worker", group);
      const stream = await openBeats(heartbeat);
      await stream.beat(2n);
      expect(group.members.map(({ calls }) => calls.length)).to.deep.equal([1, 0, 1]);
    });

    it("to its end when the leader dies, and the next one to the next leader", async () => {
      const group = await groupOf(3);
      const first = group.lead(0);
      const { heartbeat } = await openAs("worker", group);
      const stream = await openBeats(heartbeat);
      const ended = failureOf(stream.ended());
      await first.die();
      expect((await ended).code).to.equal("coordinator_silent");
      group.lead(1);
      await (await openBeats(heartbeat)).beat(2n);
    });

    it("away from a leader that was superseded as soon as another one has answered", async () => {
      const group = await groupOf(2);
      group.lead(0);
      const { heartbeat, client } = await openAs("worker", group);
      const stream = await openBeats(heartbeat);
      const ended = failureOf(stream.ended());
      group.lead(1);
      client.doubt();
      await openBeats(heartbeat);
      await ended;
    });

    it("that is refused by all only so often as a round has coordinators", async () => {
      const group = await groupOf(3);
      const { heartbeat } = await openAs("worker", group);
      expect((await failureOf(openBeats(heartbeat))).code).to.equal("no_leader_found");
      expect(group.members.map(({ calls }) => calls.length)).to.deep.equal([1, 1, 1]);
    });
  });

  describe("goes by a name only to this run's coordinator", () => {
    it("and not to one of another CA", async () => {
      const group = await groupOf(1, { retryAfterMs: 60_000 });
      const stranger = await startTestServer(
        { runId: group.runId, ca: await TestAuthority.make() },
        { access: {}, routes: () => undefined },
      );
      closing.push(() => stranger.close(0));
      group.member(0).hint = { address: stranger.address, epoch: 9 };
      const { run } = await open(group);
      const error = await failureOf(run.getRun({}));
      expect(error.message).to.contain(`the certificate of ${stranger.address} is not this run's`);
    });

    it("and not to one of another run, nor to a worker", async () => {
      const group = await groupOf(1, { retryAfterMs: 60_000 });
      let strangers = 0;
      for (const identity of [newIdentity(newRunId(), "coordinator"), newIdentity(group.runId, "worker")]) {
        const stranger = await startTestServer(group, {
          access: { "rollout.v1.OperatorService/GetRun": ["operator"] },
          credentials: await group.ca.authority.issue({ identity }),
          routes: (router) => void router.service(OperatorService, { getRun: () => ({}) }),
        }).catch(() => undefined);
        // A worker's certificate is none that a listener takes.
        if (stranger === undefined) continue;
        closing.push(() => stranger.close(0));
        group.member(0).hint = { address: stranger.address, epoch: 9 };
        const { run } = await open(group);
        const error = await failureOf(run.getRun({}));
        expect(error.code).to.be.oneOf(["coordinator_not_trusted", "no_leader_found"]);
        expect(error.message).to.contain("is not this run's coordinator's");
        strangers++;
      }
      expect(strangers).to.be.above(0);
    });

    for (const address of ["nonsense", "127.0.0.1:0", "", "unknown", "a b:1"])
      it(`and to no address that is none: "${address}"`, async () => {
        const group = await groupOf(1, { retryAfterMs: 60_000 });
        group.member(0).hint = { address, epoch: 9 };
        const { run } = await open(group);
        expect((await failureOf(run.getRun({}))).code).to.equal("not_leader");
      });

    it("and remembers only so many that were named", async () => {
      const group = await groupOf(1);
      const { run } = await open(group, { limits: { maxHinted: 2, roundCeilingMs: 1 } });
      const [follower] = group.members;
      for (let epoch = 0; epoch < 5; epoch++) {
        if (follower !== undefined) follower.hint = { address: await restartableAddress(), epoch };
        const { message } = await failureOf(run.getRun({}, { timeoutMs: 60 }));
        expect(message.split("nothing listens").length - 1).to.be.at.most(2);
      }
    });
  });

  describe("does not hammer", () => {
    it("waits between rounds, at least for as long as it is told", async () => {
      const group = await groupOf(2, { retryAfterMs: 60_000 });
      const { run } = await open(group);
      const error = await failureOf(run.getRun({}));
      expect(error.code).to.equal("no_leader_found");
      expect(group.members.map(({ calls }) => calls.length)).to.deep.equal([1, 1]);
    });

    it("shares the wait between its calls", async () => {
      const group = await groupOf(2, { retryAfterMs: 60_000 });
      const { run } = await open(group);
      const said = await failureOf(run.getRun({}));
      expect((await failureOf(run.listWorkers({}))).message).to.equal(said.message);
      expect(group.members.map(({ calls }) => calls)).to.deep.equal([["getRun"], ["getRun"]]);
    });

    it("looks for the leader once at a time, however many calls wait for it", async () => {
      const group = await groupOf(2, { retryAfterMs: 30 });
      const { run } = await open(group);
      const calls = Promise.all(Array.from({ length: 20 }, () => run.getRun({})));
      calls.catch(() => undefined);
      await eventually("rounds", () => group.member(0).calls.length >= 20 + 5);
      const before = group.member(0).calls.length;
      await eventually("five more", () => group.member(0).calls.length >= before + 5);
      expect(group.member(0).calls.length).to.be.at.most(before + 5 + 1);
      group.lead(1);
      await calls;
    });

    it("passes over one that took long to say nothing, round after round", async () => {
      const group = await groupOf(2);
      const silent = await startDeafListener("silent");
      closing.push(() => silent.close());
      group.lead(1);
      const address = [silent.address, ...group.addresses];
      const limits = { handshakeTimeoutMs: 100, slowSilenceMs: 50, roundCeilingMs: 20 };
      const { run } = await open(group, { address, limits });
      await run.getRun({});
      group.member(1).leads = false;
      for (const member of group.members) member.hint = undefined;
      const before = group.member(0).calls.length;
      const given = new AbortController();
      const asking = failureOf(run.getRun({}, { signal: given.signal }));
      await eventually("ten rounds", () => group.member(0).calls.length >= before + 10);
      given.abort();
      await asking;
      // Once at the beginning, and then by a probe beside the rounds, a second and more apart.
      expect(silent.count).to.be.within(1, 5);
    });
  });

  describe("says", () => {
    it("of each address what became of it", async () => {
      const group = await groupOf(2, { retryAfterMs: 60_000 });
      const [gone, deaf] = [await restartableAddress(), await startDeafListener()];
      closing.push(() => deaf.close());
      const nobody = await restartableAddress();
      group.member(1).hint = { address: nobody, epoch: 4 };
      const address = [gone, deaf.address, ...group.addresses];
      const { run } = await open(group, { address });
      const error = await failureOf(run.getRun({}));
      expect(error.code).to.equal("no_leader_found");
      for (const said of [
        `nothing listens at ${gone}`,
        `the coordinator at ${deaf.address} does not answer`,
        `${group.member(0).address} follows and knows no leader`,
        `${group.member(1).address} follows ${nobody} (epoch 4)`,
        `nothing listens at ${nobody}`,
      ])
        expect(error.message).to.contain(said);
    });

    it("the last word of one in whose visit the time ran out", async () => {
      const group = await groupOf(2);
      const proxy = await startTcpProxy(Number(group.member(0).address.split(":").at(-1)));
      closing.push(() => proxy.close());
      const { run } = await open(group, { address: [proxy.address, group.member(1).address] });
      const given = new AbortController();
      const asking = failureOf(run.getRun({}, { signal: given.signal }));
      await eventually("the second round", () => group.member(0).calls.length > 1);
      given.abort();
      await asking;
      proxy.cut();
      const error = await failureOf(run.getRun({}, { timeoutMs: 300 }));
      expect(error.code).to.equal("no_leader_found");
      expect(error.message).to.contain(`${proxy.address} follows`);
    });

    it("what all of them say once, with all addresses", async () => {
      const group = await groupOf(2);
      await group.close();
      const error = await failureOf((await open(group)).run.getRun({}));
      expect(error.code).to.equal("coordinator_refused_connection");
      expect(error.message).to.equal(`nothing listens at ${error.params["address"] ?? ""}`);
      expect(error.params["address"]?.split(", ")).to.have.members(group.addresses);
    });

    it("what the leader itself has refused, as it is", async () => {
      const group = await groupOf(2, {
        operator: { getRun: () => Promise.reject(failure("run_sealed", {})) },
      });
      group.lead(1);
      expect((await failureOf((await open(group)).run.getRun({}))).code).to.equal("run_sealed");
      expect(group.member(1).calls).to.have.length(1);
    });
  });

  it("asks one alone where it is told to, and takes its refusal for an answer", async () => {
    const group = await groupOf(2);
    group.lead(1);
    const { run } = await open(group, { address: group.member(0).address, isAlone: true });
    const error = await failureOf(run.getRun({}));
    expect([error.code, error.params["address"]]).to.deep.equal(["not_leader", group.member(1).address]);
    expect(group.members.map(({ calls }) => calls.length)).to.deep.equal([1, 0]);
  });

  it("leaves a leader whose link is cut for one that leads since", async () => {
    const group = await groupOf(2);
    group.lead(0);
    const proxy = await startTcpProxy(group.member(0).server?.port ?? 0);
    closing.push(() => proxy.close());
    const address = [proxy.address, group.member(1).address];
    const limits = { pingIntervalMs: 50, pingTimeoutMs: 100, handshakeTimeoutMs: 200, roundCeilingMs: 50 };
    const { run } = await open(group, { address, limits });
    await run.getRun({});
    proxy.cut();
    group.lead(1);
    await run.getRun({});
    // On a busy machine the first answer may come after the time of a ping, and the call is made again.
    expect(new Set(group.member(1).calls)).to.deep.equal(new Set(["getRun"]));
  });

  describe("waits for none that broke off", () => {
    /** Longer than a test may take. */
    const SLOW = { handshakeTimeoutMs: 600_000, connectTimeoutMs: 600_000 };
    const QUICK = { handshakeTimeoutMs: 100 * pace(), connectTimeoutMs: 100 * pace() };

    /** A stream to the first of two, which leads behind a link that can be cut, and then is. */
    async function cutOff(
      limits: typeof SLOW,
    ): Promise<Opened & { group: CoordinatorGroup; heal: () => void }> {
      const group = await groupOf(2);
      const proxy = await startTcpProxy(group.member(0).server?.port ?? 0);
      closing.push(() => proxy.close());
      group.lead(0);
      group.member(1).hint = { address: proxy.address, epoch: 1 };
      const address = [group.member(1).address, proxy.address];
      const pings = { pingIntervalMs: 50, pingTimeoutMs: 100, roundCeilingMs: 50 };
      const opened = await openAs("worker", group, { address, limits: { ...limits, ...pings } });
      const stream = await openBeats(opened.heartbeat);
      // It leads under a later epoch than this client has heard of, and is named with it.
      group.member(1).hint = { address: proxy.address, epoch: 2 };
      proxy.cut();
      expect((await failureOf(stream.ended())).code).to.equal("coordinator_silent");
      return { ...opened, group, heal: () => proxy.heal() };
    }

    it("when another one leads meanwhile, whatever the one that follows says", async () => {
      const { group, heartbeat } = await cutOff(SLOW);
      expect((await failureOf(openBeats(heartbeat))).code).to.equal("no_leader_found");
      expect((await failureOf(openBeats(heartbeat))).code).to.equal("no_leader_found");
      group.lead(1);
      await (await openBeats(heartbeat)).beat(2n);
      expect(group.member(0).calls).to.deep.equal(["beatStream"]);
    });

    it("and comes back to it when it can be reached, where it leads still", async () => {
      const { group, heartbeat, heal } = await cutOff(QUICK);
      expect((await failureOf(openBeats(heartbeat))).code).to.equal("no_leader_found");
      heal();
      await eventually("it is found", () =>
        openBeats(heartbeat).then(
          () => true,
          () => false,
        ),
      );
      expect(group.member(1).leads).to.equal(false);
    });
  });

  it("uses new credentials with every coordinator", async () => {
    const group = await groupOf(2);
    group.lead(0);
    const { client, run } = await open(group);
    await run.getRun({});
    client.setCredentials(await group.ca.issue(newIdentity(group.runId, "worker")));
    expect((await failureOf(run.getRun({}))).code).to.equal("permission_denied");
    group.lead(1);
    client.setCredentials(await group.ca.issue(newIdentity(group.runId, "operator")));
    await run.getRun({});
  });

  it("ends its search when it is closed", async () => {
    const group = await groupOf(2);
    const { client, run } = await open(group);
    const asked = failureOf(run.getRun({}));
    await eventually("it is asked", () => group.member(0).calls.length > 0);
    client.close();
    expect((await asked).code).to.equal("interrupted");
  });
});
