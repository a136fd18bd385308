// Several coordinators as real processes over one Postgres: one leads, the others follow and say who does, and another takes over when
// it is killed, or asked to make room.
import { expect } from "chai";
import { readFile, writeFile } from "node:fs/promises";
import { CoordinatorRole, CoordinatorService } from "../../src/gen/rollout/v1/coordinator_pb.ts";
import { createClient } from "@connectrpc/connect";
import { RolloutError } from "../../src/base/errors.ts";
import { parseAddress } from "../../src/base/address.ts";
import { sleep, systemClock } from "../../src/base/clock.ts";
import { loadConfig } from "../../src/config/load.ts";
import { openOperatorClient } from "../../src/compose/operator-client.ts";
import { OperatorService, RunState } from "../../src/gen/rollout/v1/run_pb.ts";
import { TOPICS } from "../../src/observe/events.ts";
import { silentLogger } from "../../src/observe/log.ts";
import { readCertificatePem } from "../../src/transport/tls/certificate-reading.ts";
import { operatorFiles } from "../../src/transport/tls/host-credentials.ts";
import { useClosers } from "../support/closers.ts";
import type { Cluster, Settings } from "../support/cluster.ts";
import { withCluster } from "../support/cluster.ts";
import { eventually } from "../support/eventually.ts";
import { GATED_MANIFEST, gatedItems, writeGatedFunction } from "./gated-items.ts";
import { restartableAddress } from "../support/listeners.ts";
import { pace } from "../support/pace.ts";
import { failureOf } from "../support/rejection.ts";
import type { RolloutProcess } from "../support/rollout-process.ts";
import { askMonitor } from "./monitor.ts";
import { usePostgresDatabase } from "../support/postgres-database.ts";
import { readJournal } from "../support/run-observer.ts";
import type { TcpProxy } from "../support/tcp-proxy.ts";
import { startTcpProxy } from "../support/tcp-proxy.ts";

/** A coordinator is deaf when it is not answered for two and a half heartbeats: on a busy machine that takes half a second by itself. */
const QUICK = {
  "coordinator.heartbeat_interval": "500ms",
  "coordinator.failover_threshold": "2s",
} as const;

/** Where nobody is to take over from a leader that is silent. */
const CALM = { "coordinator.failover_threshold": "15s" } as const;

/** As they are, however busy this machine is: longer than the defaults, and the longest heartbeat that the rule allows with this threshold. */
const SLOW = {
  ROLLOUT_COORDINATOR_HEARTBEAT_INTERVAL: "5s",
  ROLLOUT_COORDINATOR_FAILOVER_THRESHOLD: "15s",
} as const;

/** The third that is started is to take over first. */
const WEIGHTS: Readonly<Record<string, number>> = { c2: 7 };

/** Between a coordinator and everybody else there is a network that can be cut, and another one between it and the store. */
interface Place {
  readonly name: string;
  readonly listenAddr: string;
  readonly network: TcpProxy;
  readonly store: TcpProxy;
  /** More settings of its coordinator. */
  readonly env: Readonly<Record<string, string>>;
}

/** As `rollout status --json` has it. */
interface ShownCoordinator {
  readonly address: string;
  readonly role: string;
  readonly present: boolean;
  readonly epoch: number | null;
  readonly snapshot_number: number | null;
  readonly rehearsal_ms: number | null;
}

/** A coordinator, and calls to it and to no other. */
interface Member {
  /** As others reach it. */
  readonly address: string;
  readonly place: Place;
  readonly process: RolloutProcess;
  readonly run: ReturnType<typeof createClient<typeof OperatorService>>;
  readonly coordinators: ReturnType<typeof createClient<typeof CoordinatorService>>;
}

describe("several coordinators over one store", () => {
  const closeLater = useClosers();
  const database = usePostgresDatabase();

  const onPostgres = (): Settings => ({
    "storage.path": undefined,
    "storage.url": database.urlWithoutPassword,
    "storage.password_file": database.passwordFile,
  });

  /** Members are started one after the other: the first makes the CA. */
  async function withMembers(
    count: number,
    use: (members: Member[], cluster: Cluster) => Promise<void>,
    settings: Settings = {},
    env: Place["env"] = {},
  ): Promise<void> {
    const places: Place[] = [];
    for (let number = 0; number < count; number++) places.push(await placeOf(`c${number}`, env));
    const addresses = places.map(({ network }) => network.address);
    await withCluster(
      { ...QUICK, ...onPostgres(), "worker.coordinator_addr": addresses, ...settings },
      async (cluster) => {
        const members: Member[] = [];
        for (const place of places) members.push(await join(cluster, place));
        await use(members, cluster);
      },
    );
  }

  async function placeOf(name: string, env: Place["env"] = {}): Promise<Place> {
    const listenAddr = await restartableAddress();
    const [network, store] = [await proxyTo(listenAddr), await proxyTo(new URL(database.url).host)];
    return { name, listenAddr, network, store, env };
  }

  async function proxyTo(address: string): Promise<TcpProxy> {
    const proxy = await startTcpProxy(parseAddress(address)?.port ?? 0);
    closeLater(() => proxy.close());
    return proxy;
  }

  function launch(cluster: Cluster, place: Place): RolloutProcess {
    const url = new URL(database.urlWithoutPassword);
    url.host = place.store.address;
    return cluster.launchCoordinator({
      env: {
        ROLLOUT_STORAGE_URL: url.href,
        ROLLOUT_TRANSPORT_LISTEN_ADDR: place.listenAddr,
        ROLLOUT_TRANSPORT_ADVERTISED_ADDR: place.network.address,
        ROLLOUT_COORDINATOR_WEIGHT: String(WEIGHTS[place.name] ?? 1),
        ROLLOUT_COORDINATOR_MONITOR_ADDR: "127.0.0.1:0",
        ...place.env,
      },
    });
  }

  async function join(cluster: Cluster, place: Place): Promise<Member> {
    const { address } = place.network;
    const process = launch(cluster, place);
    if (place.name === "c0") await process.event("coordinator_leading");
    else await process.event("coordinator_following");
    const config = await loadConfig("operator", {
      ...{
        file: cluster.file("rollout.toml"),
        environment: {},
        workingDirectory: cluster.directory,
        topics: TOPICS,
      },
      flags: { "coordinator-addr": address },
    });
    const client = await openOperatorClient(config, silentLogger, { isAlone: true });
    closeLater(() => client.close());
    const { transport } = client;
    return {
      ...{ address, process, place },
      run: createClient(OperatorService, transport),
      coordinators: createClient(CoordinatorService, transport),
    };
  }

  async function refusalOf(member: Member): Promise<RolloutError> {
    return failureOf(member.run.getRun({}));
  }

  it("one leads, and the others refuse every call with who does; one of them ends in good order; all keep out whom the leader has revoked", async () => {
    await withMembers(
      3,
      async ([leader, ...followers], cluster) => {
        await leader?.run.getRun({});
        for (const follower of followers) {
          await eventually(
            "it knows the leader",
            async () => (await refusalOf(follower)).params["epoch"] === "0",
          );
          const { code, params } = await refusalOf(follower);
          expect([code, params["address"]]).to.deep.equal(["not_leader", leader?.address]);
          const followed = follower.process.seen("coordinator_following").at(-1);
          expect([followed?.leader_address, followed?.epoch]).to.deep.equal([leader?.address, 0]);
        }
        for (const member of [leader, ...followers])
          await eventually("all are seen", async () => {
            const { coordinators } = (await member?.coordinators.describe({})) ?? { coordinators: [] };
            const seen = coordinators.map(({ role, present, epoch }) => [role, present, epoch]);
            return (
              JSON.stringify(seen.sort()) ===
              JSON.stringify([
                [1, true, 0],
                [1, true, 0],
                [3, true, 0],
              ])
            );
          });

        const [follower, leaves] = followers;
        leaves?.process.send("SIGTERM");
        expect(await leaves?.process.ended).to.deep.equal({ code: 0, signal: null });
        expect(leaves?.process.seen("coordinator_stopped")[0]?.epoch).to.equal(null);
        await leader?.run.getRun({});

        const { certFile } = operatorFiles(cluster.file("data/tls"));
        const reading = readCertificatePem(await readFile(certFile, "utf8"));
        if (reading.kind !== "identified") throw new Error("an operator's certificate is ours");
        await follower?.coordinators.describe({});
        const { code, stderr } = await cluster.run("ca", "revoke", reading.facts.identity.id);
        expect(code, stderr).to.equal(0);
        for (const member of [leader, follower])
          await eventually("its calls are refused", () =>
            member?.coordinators.describe({}).then(
              () => false,
              (error: unknown) => error instanceof RolloutError && error.code === "certificate_refused",
            ),
          );
      },
      CALM,
    );
  });

  it("each of them is shown by `rollout status`, with what it has applied and rehearsed", async () => {
    await withMembers(
      2,
      async ([leader, follower], cluster) => {
        await eventually("the follower has rehearsed", async () => {
          const { coordinators } = (await leader?.coordinators.describe({})) ?? { coordinators: [] };
          return coordinators.some(
            ({ address, rehearsalMs }) => address === follower?.address && rehearsalMs,
          );
        });
        const { stdout } = await cluster.run("status", "--json");
        const { coordinators: shown } = JSON.parse(stdout) as { coordinators: ShownCoordinator[] };
        expect(shown.find(({ role }) => role === "following")?.rehearsal_ms).to.be.a("number");
        const roles = Object.fromEntries(shown.map(({ address, role, epoch }) => [address, { role, epoch }]));
        expect(roles).to.deep.equal({
          [leader?.address ?? ""]: { role: "leader", epoch: 0 },
          [follower?.address ?? ""]: { role: "following", epoch: 0 },
        });
        for (const { present, snapshot_number } of shown) {
          expect(present).to.equal(true);
          expect(snapshot_number).to.be.above(0);
        }
        const { stdout: text } = await cluster.run("status");
        expect(text).to.match(/^COORDINATOR +ROLE +LEADS SINCE +EPOCH +WEIGHT +SNAPSHOT +REHEARSED$/m);
        expect(text).to.match(/leader +\d{4}-\S+Z, [\w ]+ +0 +1 +/);
        expect(text).to.match(/following +- +0 +1 +\d+ +in \d+ ms, /);
        if (leader === undefined || follower === undefined) throw new Error("there are two");
        for (const { process, address, place } of [leader, follower]) {
          const { status, body } = await askMonitor(process, "/readyz");
          const role = process === leader.process ? "leader" : "following";
          expect([status, body["ready"], body["role"]]).to.deep.equal([200, true, role]);
          expect([body["address"], body["leader"], body["epoch"]]).to.deep.equal([
            address,
            leader.address,
            0,
          ]);
          expect(body["snapshot_number"]).to.be.above(0);
          if (role === "leader") continue;
          expect(body["rehearsal_ms"]).to.be.a("number");
          place.store.cut();
          const cut = await eventually("it is not ready", async () => {
            const answer = await askMonitor(process, "/readyz");
            return answer.status === 503 && answer.body;
          });
          expect([cut["ready"], cut["reason"]]).to.deep.equal([false, "the database does not answer"]);
          place.store.heal();
          await eventually(
            "it is ready again",
            async () => (await askMonitor(process, "/readyz")).status === 200,
          );
        }
      },
      // A read of a database that is cut off is given up after some of it.
      { "coordinator.failover_threshold": "5s" },
    );
  });

  it("a coordinator without its database, leading or starting, is not ready, says why, and is ready when the database is back", async () => {
    const becomes = (process: RolloutProcess, ready: boolean, reason?: string): Promise<unknown> =>
      eventually(`ready is ${ready}`, async () => {
        const { status, body } = await askMonitor(process, "/readyz");
        return status === (ready ? 200 : 503) && body["ready"] === ready && body["reason"] === reason;
      });
    await withMembers(
      1,
      async ([leader], cluster) => {
        if (leader === undefined) throw new Error("there is one");
        const late = await placeOf("c1");
        await becomes(leader.process, true);
        for (const { store } of [leader.place, late]) store.cut();
        const starting = launch(cluster, late);
        await becomes(leader.process, false, "the database does not say that it leads");
        await becomes(starting, false, "the database is being opened");
        for (const { isRunning } of [leader.process, starting]) expect(isRunning).to.equal(true);
        for (const { store } of [leader.place, late]) store.heal();
        await becomes(leader.process, true);
        await becomes(starting, true);
        expect(leader.process.seen("coordinator_fenced")).to.deep.equal([]);
      },
      // A leader lives on without its database for four fifths of it.
      { "coordinator.failover_threshold": "1m" },
    );
  });

  it("with a heartbeat of 5 s and a threshold of 15 s another one leads at once when the leader is asked to make room, and that one follows", async () => {
    await withMembers(
      2,
      async ([former, next], cluster) => {
        await eventually("the other one is seen", async () => {
          const { coordinators } = (await former?.coordinators.describe({})) ?? { coordinators: [] };
          return coordinators.filter(({ present }) => present).length === 2;
        });
        const env = { ROLLOUT_WORKER_COORDINATOR_ADDR: former?.address ?? "" };
        const { code, stdout, stderr } = await cluster.runWith({ env }, "coordinator", "step-down", "--json");
        expect(code, stderr).to.equal(0);
        const { took_ms, ...told } = JSON.parse(stdout) as { readonly took_ms: number };
        expect(told).to.deep.equal({ from: former?.address, to: next?.address, epoch: 1 });
        console.log(`    hands over in ${took_ms} ms`);
        const leading = await next?.process.event("coordinator_leading");
        expect([leading?.epoch, leading?.quiet_ms]).to.deep.equal([1, null]);
        await former?.process.event("coordinator_following", {
          leader_address: next?.address ?? null,
          epoch: 1,
        });
        await next?.run.getRun({});
        // Asked once more for the same leadership, the next one stays.
        await next?.coordinators.stepDown({ epoch: 0 });
        await next?.run.getRun({});
        expect(former?.process.isRunning).to.equal(true);
      },
      {},
      SLOW,
    );
  });

  it("a leader that is alone is not asked to make room", async () => {
    await withMembers(
      1,
      async ([only]) => {
        const refused = await failureOf(only?.coordinators.stepDown({ epoch: 0 }) ?? Promise.resolve());
        expect(refused.code).to.equal("no_successor");
        await only?.run.getRun({});
      },
      CALM,
    );
  });

  it("another one leads when the leader is killed, and says how long it was silent", async () => {
    await withMembers(2, async ([former, next], cluster) => {
      await former?.process.kill();
      const leading = await next?.process.event("coordinator_leading");
      const thresholdMs = cluster.durationMs("coordinator.failover_threshold");
      expect(leading?.epoch).to.equal(1);
      expect(leading?.quiet_ms).to.be.at.least(thresholdMs);
      await next?.run.getRun({});
    });
  });

  it("the heaviest of the live ones takes over, and none while a majority is away", async () => {
    await withMembers(
      3,
      async ([first, second, third], cluster) => {
        for (const follower of [second, third])
          await eventually("all are seen", async () => {
            const { coordinators } = (await follower?.coordinators.describe({})) ?? { coordinators: [] };
            return coordinators.filter(({ present }) => present).length === 3;
          });
        await first?.process.kill();
        expect((await third?.process.event("coordinator_leading"))?.epoch).to.equal(1);
        await second?.process.event("coordinator_following", { epoch: 1 });
        await third?.process.kill();
        await eventually("it is alone", async () => {
          const { coordinators } = (await second?.coordinators.describe({})) ?? { coordinators: [] };
          return coordinators.filter(({ present }) => present).length === 1;
        });
        await sleep(systemClock, 2 * cluster.durationMs("coordinator.failover_threshold"));
        expect(second?.process.seen("coordinator_leading")).to.deep.equal([]);
        if (third === undefined) throw new Error("there are three");
        await join(cluster, third.place);
        // It has waited for as long as it takes already; the other one has only begun to.
        expect((await second?.process.event("coordinator_leading"))?.epoch).to.equal(2);
      },
      { "coordinator.election_quorum": "majority" },
    );
  });

  it("a leader that is cut from the store ends, and another one leads", async () => {
    await withMembers(2, async ([former, next]) => {
      former?.place.store.cut();
      const fenced = await former?.process.event("coordinator_fenced");
      expect(await former?.process.ended).to.deep.equal({ code: null, signal: "SIGABRT" });
      const leading = await next?.process.event("coordinator_leading");
      expect([fenced?.epoch, leading?.epoch]).to.deep.equal([0, 1]);
    });
  });

  it("a leader that reaches the store, and that nobody reaches, resigns for another", async () => {
    await withMembers(3, async ([former, ...followers]) => {
      for (const follower of followers)
        await eventually("it hears the leader", async () => {
          const { coordinators, incarnation } = await follower.coordinators.describe({});
          return coordinators.find((each) => each.incarnation === incarnation)?.hearsLeader;
        });
      former?.place.network.cut();
      const leading = await Promise.race(followers.map((each) => each.process.event("coordinator_leading")));
      expect([leading.epoch, leading.quiet_ms]).to.deep.equal([1, null]);
      await former?.process.event("coordinator_following", { epoch: 1 });
      expect(former?.process.seen("coordinator_fenced")).to.deep.equal([]);
      await former?.process.logLine({ message: "this coordinator makes room for another" });
    });
  });

  it("a leader that was stopped is fenced when it goes on, and the one that leads stays", async () => {
    await withMembers(2, async ([former, next]) => {
      former?.process.send("SIGSTOP");
      const leading = await next?.process.event("coordinator_leading");
      expect(leading?.epoch).to.equal(1);
      former?.process.send("SIGCONT");
      expect(await former?.process.ended).to.deep.equal({ code: null, signal: "SIGABRT" });
      expect(former?.process.seen("coordinator_fenced")).to.have.length(1);
      await next?.run.getRun({});
      expect(next?.process.seen("coordinator_fenced")).to.deep.equal([]);
    });
  });

  it("kill_the_primary, with the default times", async () => {
    const settings = {
      "coordinator.heartbeat_interval": "1s",
      "coordinator.failover_threshold": "5s",
      "worker.slots": 2,
      "worker.plugins": [GATED_MANIFEST],
      // No worker is given up for the slowness of this machine: what it has would run again.
      "liveness.coordinator_failure_timeout": "20s",
      "liveness.worker_self_fence_timeout": "15s",
    } as const;
    const items = 120;
    const early = 20;
    await withMembers(
      3,
      async ([primary, ...followers], cluster) => {
        await writeGatedFunction(cluster.directory);
        const workers = [cluster.launchWorker(), cluster.launchWorker(), cluster.launchWorker()];
        for (const worker of workers) {
          const { incarnation } = await worker.identity();
          await primary?.process.event("worker_heartbeat", { incarnation, state: "Ready" });
        }
        // All but the first are in flight or wait for as long as the primary lives.
        const values = [...gatedItems(0, early), ...gatedItems(early, items, { gate: "killed", ms: 50 })];
        expect(await cluster.submit(values, "--seal")).to.include({ added: items });
        const seen = await eventually("work is in flight, and some is done", async () => {
          const { run } = (await primary?.run.getRun({})) ?? {};
          return run !== undefined && run.done === early && run.executing > 0 && run;
        });
        const published = await eventually("a follower has applied a snapshot", async () => {
          const { coordinators, incarnation } = (await followers[0]?.coordinators.describe({})) ?? {};
          return coordinators?.find((each) => each.incarnation === incarnation)?.snapshotNumber;
        });

        const first = followers[0]?.process;
        if (first === undefined) throw new Error("there are three");
        await eventually("one that follows counts the workers", async () => {
          const { status, body } = await askMonitor(first, "/health");
          return status === 200 && body["active_workers"] === 3 && body["all_workers"] === 3;
        });

        const beganMs = systemClock.monotonicMs();
        await primary?.process.kill();
        await writeFile(cluster.file("killed"), "");
        const next = await Promise.race(
          followers.map(async (each) => ({
            each,
            leading: await each.process.event("coordinator_leading"),
          })),
        );
        const leadingMs = systemClock.monotonicMs() - beganMs;
        await eventually("the successor records results", async () => {
          const { run } = await next.each.run.getRun({});
          return run !== undefined && run.done > early;
        });
        const tookMs = systemClock.monotonicMs() - beganMs;
        console.log(
          `    leads after ${Math.round(leadingMs)} ms (quiet ${next.leading.quiet_ms} ms, replay ${next.leading.replay_ms} ms), ` +
            `records results after ${Math.round(tookMs)} ms`,
        );
        expect(tookMs).to.be.below(30_000 * Math.max(cluster.pace, pace()));

        const run = await eventually("the run is complete", async () => {
          const { run: found } = await next.each.run.getRun({});
          return found?.state === RunState.COMPLETE && found;
        });
        expect([run.done, run.failed, run.conflicts]).to.deep.equal([items, 0, 0]);
        expect(run.done).to.be.above(seen.done);
        const executions = readJournal(cluster.file("journal"));
        expect(new Set(executions.map(({ item }) => item)).size, "nothing was lost").to.equal(items);
        expect(executions.length, "nothing ran twice").to.equal(items);
        for (const worker of workers) expect(worker.isRunning, "workers stayed up").to.equal(true);
        expect(next.each.process.seen("worker_registered"), "the successor knew its workers").to.deep.equal(
          [],
        );
        const { body: readiness } = await askMonitor(next.each.process, "/readyz");
        expect(readiness).to.include({ ready: true, role: "leader", leader: next.each.address, epoch: 1 });
        const { body: numbers } = await askMonitor(next.each.process, "/health");
        expect(numbers).to.deep.equal({ active_workers: 3, all_workers: 3 });
        // The last word of the one that was killed may be younger than its lease.
        const leader = await eventually("the successor is the only leader that is there", async () => {
          const { coordinators } = await next.each.coordinators.describe({});
          const leaders = coordinators.filter(
            ({ role, present }) => present && role === CoordinatorRole.LEADER,
          );
          return leaders.length === 1 && leaders[0]?.address === next.each.address && leaders[0];
        });
        expect(leader.epoch).to.equal(1);
        expect(leader.snapshotNumber).to.be.above(published);
      },
      settings,
    );
  });
});
