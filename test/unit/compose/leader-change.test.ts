// Real coordinators one after the other over one store, a real worker and the library's client, who know only the address of a coordinator
// that follows: nothing of theirs is started again when another one leads.
import { writeFile } from "node:fs/promises";
import { expect } from "chai";
import { systemClock } from "../../../src/base/clock.ts";
import { failure } from "../../../src/base/errors.ts";
import { RolloutClient } from "../../../src/compose/rollout-client.ts";
import { EventJournal } from "../../../src/observe/event-journal.ts";
import type { Backend, Outcome } from "../../../src/worker/backends/backend.ts";
import { newIdentity } from "../../support/certificates.ts";
import { useClosers } from "../../support/closers.ts";
import { eventually } from "../../support/eventually.ts";
import { fixedPlugins } from "../../support/fixed-plugins.ts";
import type { Follower } from "../../support/follower.ts";
import { startFollower } from "../../support/follower.ts";
import { writeCredentials } from "../../support/real-authority.ts";
import { RecordingEmitter } from "../../support/recording-emitter.ts";
import { failureOf } from "../../support/rejection.ts";
import { startTcpProxy } from "../../support/tcp-proxy.ts";
import { useTemporaryDirectory } from "../../support/temporary-directory.ts";
import type { ListeningCoordinator, TestCluster } from "../../support/test-coordinator.ts";
import { newTestCluster, startListeningCoordinator } from "../../support/test-coordinator.ts";
import type { StartedWorker } from "../../support/test-worker.ts";
import type { WorkerTestOptions } from "../../support/test-worker.ts";
import { startWorker } from "../../support/test-worker.ts";

describe("a run whose leader changes", () => {
  const closeLater = useClosers();
  const directory = useTemporaryDirectory();
  let cluster: TestCluster;
  let follower: Follower;
  let leader: ListeningCoordinator;
  let client: RolloutClient;
  let executed: string[];

  /** The next leader, at an address of its own, which the follower knows only when it is told. */
  async function lead(): Promise<ListeningCoordinator> {
    const { runId } = cluster;
    const journal = new EventJournal({ events: new RecordingEmitter(), runId, clock: systemClock });
    const started = await startListeningCoordinator(cluster, { events: journal, eventFeed: journal });
    leader = started;
    closeLater(() => started.stop());
    return started;
  }

  const tell = (): void => follower.follow(leader.server.address, leader.coordinator.epoch);

  async function takeOver(): Promise<void> {
    await leader.stop();
    await lead();
    tell();
  }

  async function connect(): Promise<RolloutClient> {
    const { runId, ca } = cluster;
    const words = await writeCredentials(
      directory.file("tls"),
      await ca.issue(newIdentity(runId, "operator")),
    );
    await writeFile(directory.file("rollout.toml"), `run_id = "${runId}"\n`);
    const settings: Record<string, string | string[]> = { "coordinator-addr": [follower.address] };
    for (let at = 0; at < words.length; at += 2) settings[words[at]?.slice(2) ?? ""] = words[at + 1] ?? "";
    const connected = await RolloutClient.connect({ config: directory.file("rollout.toml"), settings });
    closeLater(() => connected.close());
    return connected;
  }

  async function work(options: Partial<WorkerTestOptions> = {}): Promise<StartedWorker> {
    const backend: Backend = {
      execute: async ({ payload }): Promise<Outcome> => {
        executed.push(Buffer.from(payload).toString());
        return { kind: "success", output: payload };
      },
      close: async () => undefined,
    };
    const started = await startWorker(cluster, {
      ...{ address: [follower.address], work: { plugins: fixedPlugins(backend) }, ...options },
    });
    closeLater(() => started.worker.stop());
    return started;
  }

  beforeEach(async () => {
    [cluster, executed] = [await newTestCluster(), []];
    follower = await startFollower(cluster);
    closeLater(() => follower.close());
    await lead();
    tell();
    client = await connect();
  });

  it("lets a worker join, work, and go on with the next leader, each item once", async () => {
    const { worker, ended } = await work();
    const { incarnation } = worker;
    await client.submit(["one", "two"]);
    await eventually("both are done", async () => (await client.status()).done === 2);
    await takeOver();
    await client.submit(["three"], { seal: true });
    await eventually("all are done", async () => (await client.status()).state === "complete");
    expect(executed.toSorted()).to.deep.equal(['"one"', '"three"', '"two"']);
    expect([worker.incarnation, ended]).to.deep.equal([incarnation, []]);
  });

  it("lets a worker leave a leader that has fallen silent, though its connection stands", async () => {
    const proxy = await startTcpProxy(leader.server.port);
    closeLater(() => proxy.close());
    follower.follow(proxy.address, leader.coordinator.epoch);
    const { log } = await work({ selfFenceTimeoutMs: 400, failureTimeoutMs: 500 });
    await client.submit(["one"]);
    await eventually("it is done", async () => (await client.status()).done === 1);
    proxy.cut();
    // The former leader goes on, and hears nobody.
    await lead();
    tell();
    client = await connect();
    await client.submit(["two"], { seal: true });
    await eventually("all are done", async () => (await client.status()).state === "complete");
    expect(executed).to.deep.equal(['"one"', '"two"']);
    expect(log.lines.map(({ message }) => message)).to.include(
      "the coordinator does not answer; trying again",
    );
  });

  it("is followed by its results over the change: none twice, none missing", async () => {
    await work();
    const seen: (string | undefined)[] = [];
    const following = (async () => {
      for await (const { id } of client.results({ follow: true })) seen.push(id);
    })();
    await client.submit([{ id: "one" }, { id: "two" }]);
    await eventually("both are read", () => seen.length === 2);
    await takeOver();
    await client.submit([{ id: "three" }], { seal: true });
    await following;
    expect(seen.toSorted()).to.deep.equal(["one", "three", "two"]);
  });

  it("is followed by its events over the change, each once", async () => {
    const stop = new AbortController();
    const reasons: unknown[] = [];
    const following = (async () => {
      for await (const { topic, reason } of client.events({ follow: true, signal: stop.signal }))
        if (topic === "run_paused") reasons.push(reason);
    })();
    await client.pause("the first");
    await eventually("the first is told", () => reasons.length === 1);
    await takeOver();
    await client.resume();
    await client.pause("the second");
    await eventually("the second is told", () => reasons.length === 2);
    stop.abort();
    await following;
    expect(reasons).to.deep.equal(["the first", "the second"]);
  });

  it("answers a call that was made while nobody led", async () => {
    await leader.stop();
    const asked = client.status();
    const before = follower.calls.length;
    await eventually("it is asked for twice", () => follower.calls.length > before + 1);
    await lead();
    tell();
    expect(await asked).to.include({ state: "open" });
  });

  it("keeps out under the next leader whom the last one has revoked", async () => {
    const { runId, ca } = cluster;
    const bundle = newIdentity(runId, "enrolment");
    const credentials = await ca.issue(bundle);
    await client.calls.revoke({ bearerId: bundle.id });
    await takeOver();
    const late = await startWorker(cluster, {
      address: [follower.address],
      credentials: { kind: "enrolment", load: () => Promise.resolve(credentials) },
    });
    closeLater(() => late.worker.stop());
    await eventually("it is refused", () => late.fatal.length + late.ended.length > 0);
    const [error] = [...late.fatal, ...late.ended];
    expect(error).to.have.property("code").that.is.oneOf(["enrolment_refused", "certificate_revoked"]);
    expect(leader.audit.map(({ reason }) => reason)).to.include("certificate_revoked");
  });

  it("says of a command what each coordinator has said, when nobody leads", async () => {
    const { address } = leader.server;
    await leader.stop();
    const error = await failureOf(client.calls.getRun({}, { timeoutMs: 1_500 }));
    expect(error.code).to.equal("no_leader_found");
    expect(error.message).to.contain(`${follower.address} follows ${address}`);
    expect(error.message).to.contain(failure("coordinator_refused_connection", { address }).message);
  });
});
