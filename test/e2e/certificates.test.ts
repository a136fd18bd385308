import { cp, mkdir, stat, writeFile } from "node:fs/promises";
import { connect } from "node:tls";
import { expect } from "chai";
import type { Authority } from "../../src/transport/tls/authority.ts";
import type { Credentials, Role } from "../../src/transport/tls/identity.ts";
import { newIdentity, newWorkerId } from "../support/certificates.ts";
import { withCluster } from "../support/cluster.ts";
import type { Cluster, Settings } from "../support/cluster.ts";
import { concurrentTests } from "../support/concurrent.ts";
import { startDeafListener, restartableAddress } from "../support/listeners.ts";
import { authorityIn, writeCredentials } from "../support/real-authority.ts";

/** Credentials of a new bearer of this run. */
function issue(authority: Authority, cluster: Cluster, role: Role): Promise<Credentials> {
  return authority.issue({ identity: newIdentity(cluster.runId, role) });
}

/** The serial number of the certificate that the coordinator shows to new connections. */
function servedSerial(cluster: Cluster, credentials: Credentials): Promise<string> {
  const [host, port] = cluster.address.split(":");
  return new Promise((resolve, reject) => {
    const socket = connect({
      host,
      port: Number(port),
      ALPNProtocols: ["h2"],
      ca: credentials.caPem,
      cert: credentials.certificatePem,
      key: credentials.keyPem,
      checkServerIdentity: () => undefined,
    });
    socket.once("error", reject);
    socket.once("secureConnect", () => {
      resolve(socket.getPeerX509Certificate()?.serialNumber ?? "none");
      socket.destroy();
    });
  });
}

/** Heartbeats that are late by less are late because of other work on this machine. */
const CALM: Settings = { "liveness.heartbeat_interval": "1s", "liveness.clock_skew_budget": "1900ms" };

describe("certificates", () => {
  const it = concurrentTests(4);

  it("of a CA of one's own are read again at SIGHUP, and nobody who is connected notices", async () => {
    await withCluster(CALM, async (cluster) => {
      const ca = await authorityIn(cluster.file("ca"));
      const write = (name: string, credentials: Credentials): Promise<string[]> =>
        writeCredentials(cluster.file(name), credentials);
      const flags = await write("coordinator", await issue(ca, cluster, "coordinator"));
      const coordinator = await cluster.startCoordinator({ args: flags });
      const worker = await cluster.startWorker({
        args: await write("worker", await issue(ca, cluster, "worker")),
      });
      const operator = await issue(ca, cluster, "operator");
      const operatorFlags = await write("operator", operator);
      const before = await servedSerial(cluster, operator);

      await write("coordinator", await issue(ca, cluster, "coordinator"));
      coordinator.send("SIGHUP");
      await coordinator.logLine({ message: "the coordinator's certificate was renewed" });
      const after = await servedSerial(cluster, operator);
      expect(after).to.not.equal(before);
      const list = await cluster.run("worker", "list", "--json", ...operatorFlags);
      expect(JSON.parse(list.stdout)).to.include({ worker_id: await worker.id(), liveness: "alive" });

      await writeFile(cluster.file("coordinator/cert.pem"), "not a certificate\n");
      coordinator.send("SIGHUP");
      expect(await coordinator.logLine({ level: "error" }))
        .to.have.property("err")
        .that.contains("cert.pem");
      expect(await servedSerial(cluster, operator)).to.equal(after);
      await coordinator.nextEvent("worker_heartbeat", await worker.identity());
      expect(coordinator.seen("worker_suspected")).to.deep.equal([]);
      expect(coordinator.seen("worker_registered")).to.have.length(1);
    });
  });

  it("of two CAs are both good while one takes over from the other", async () => {
    await withCluster(CALM, async (cluster) => {
      const [oldCa, newCa] = [await authorityIn(cluster.file("old")), await authorityIn(cluster.file("new"))];
      const both = oldCa.certificatePem + newCa.certificatePem;
      const first = await issue(oldCa, cluster, "coordinator");
      const flags = await writeCredentials(cluster.file("coordinator"), first);
      const coordinator = await cluster.startCoordinator({ args: flags });
      const join = async (ca: Authority): Promise<void> => {
        const credentials = { ...(await issue(ca, cluster, "worker")), caPem: both };
        await cluster.startWorker({ args: await writeCredentials(cluster.file(newWorkerId()), credentials) });
      };
      await join(oldCa);
      await writeCredentials(cluster.file("coordinator"), { ...first, caPem: both });
      coordinator.send("SIGHUP");
      await coordinator.logLine({ message: "the coordinator's certificate was renewed" });
      await join(newCa);
      expect(coordinator.seen("worker_suspected")).to.deep.equal([]);
    });
  });

  it("of a worker name the worker: it is who its certificate says, and no other", async () => {
    await withCluster({}, async (cluster) => {
      const ca = await authorityIn(cluster.file("ca"));
      const workerId = newWorkerId();
      const identity = { runId: cluster.runId, role: "worker", id: workerId } as const;
      const flags = await writeCredentials(cluster.file("worker"), await ca.issue({ identity }));
      await cluster.configure({ "worker.coordinator_addr": await restartableAddress() });
      const refused = await cluster.run("worker", "run", "--worker-id", newWorkerId(), ...flags);
      expect(refused).to.include({ code: 2, stdout: "" });
      expect(refused.stderr).to.contain(`it is for worker ${workerId}, and this is worker `);
      const worker = cluster.launchWorker({ args: flags });
      expect(await worker.id()).to.equal(workerId);
    });
  });

  for (const [how, setUp] of [
    ["one small file", "file"],
    ["nothing but flags", "flags"],
    ["the bundle alone", "bundle"],
  ] as const) {
    it(`from \`rollout ca issue\` are all that another machine needs, with ${how}`, async () => {
      await withCluster({}, async (cluster) => {
        const coordinator = await cluster.startCoordinator();
        await mkdir(cluster.file("elsewhere"));
        const out = "elsewhere/enrolment.pem";
        const issued = await cluster.run("ca", "issue", "--out", out, "--json");
        expect(JSON.parse(issued.stdout)).to.deep.include({
          file: out,
          role: "enrolment",
          run_id: cluster.runId,
          coordinator_addr: cluster.address,
        });
        expect((await stat(cluster.file(out))).mode & 0o777).to.equal(0o600);
        const { runId, address } = cluster;
        const lines = [
          `run_id = "${runId}"`,
          `coordinator_addr = "${address}"`,
          `enrolment = "enrolment.pem"`,
        ];
        if (setUp === "file")
          await writeFile(
            cluster.file("elsewhere/rollout.toml"),
            lines.toSpliced(1, 0, "[worker]").join("\n"),
          );
        const flags = ["--run-id", runId, "--coordinator-addr", address, "--enrolment", "enrolment.pem"];
        const args = { file: [], flags, bundle: ["--enrolment", "enrolment.pem"] }[setUp];
        const worker = await cluster.startWorker({ directory: "elsewhere", args });
        await coordinator.event("worker_registered", await worker.identity());
        await stat(cluster.file(`elsewhere/data/state/workers/${await worker.id()}`));
      });
    });
  }

  it("for other machines name an address that they reach: that of loopback is asked for again", async () => {
    await withCluster({}, async (cluster) => {
      await authorityIn(cluster.file("data/tls"));
      await cluster.configure({ "transport.listen_addr": "0.0.0.0:50051" });
      const issue = ["ca", "issue", "--out", "enrolment.pem"];
      const refused = await cluster.run(...issue);
      expect(refused).to.include({ code: 2, stdout: "" });
      expect(refused.stderr).to.contain("--coordinator-addr HOST:PORT");
      expect(await stat(cluster.file("enrolment.pem")).catch(() => undefined)).to.equal(undefined);
      const issued = await cluster.run(...issue, "--coordinator-addr", "head.example:50051", "--json");
      expect(JSON.parse(issued.stdout)).to.include({ coordinator_addr: "head.example:50051" });
      await cluster.configure({ "transport.listen_addr": "127.0.0.1:50051" });
      const second = await cluster.run(...issue);
      expect(second).to.include({ code: 2, stdout: "" });
      expect(second.stderr).to.contain("enrolment.pem is there already").and.to.contain("rollout ca revoke");
      expect(await cluster.run("ca", "issue", "--out", "tunnel.pem")).to.include({ code: 0 });
    });
  });

  it("of a worker that is revoked end its process, and nobody else's; the next process is another worker", async () => {
    await withCluster({}, async (cluster) => {
      const coordinator = await cluster.startCoordinator();
      const [revoked, other] = [await cluster.startWorker(), await cluster.startWorker()];
      const id = await revoked.id();
      const answer = await cluster.run("ca", "revoke", id, "--json");
      expect(JSON.parse(answer.stdout)).to.include({ bearer_id: id, is_worker: true, in_force: true });
      expect(await revoked.ended).to.deep.equal({ code: 3, signal: null });
      expect(revoked.stderr.at(-1)).to.contain(`worker ${id} was revoked`);
      expect(await cluster.listed(id)).to.include({ revoked: true });
      await coordinator.event("certificate_revoked", { bearer_id: id, workers: 0 });
      await coordinator.nextEvent("worker_heartbeat", await other.identity());
      const next = await cluster.startWorker();
      expect([id, await other.id()]).to.not.include(await next.id());
    });
  });

  it("that are revoked while no coordinator runs are refused from its start on; its own machine gets new ones", async () => {
    await withCluster({}, async (cluster) => {
      await cluster.startCoordinator();
      await cluster.coordinator.stop();
      await cp(cluster.file("data/tls/enrolment.pem"), cluster.file("leaked.pem"));
      const offline = await cluster.run("ca", "revoke", "leaked.pem", "--json");
      expect(JSON.parse(offline.stdout)).to.include({ enrolled: 0, in_force: false });
      const coordinator = await cluster.startCoordinator();
      const thief = cluster.launchWorker({ args: ["--enrolment", "leaked.pem", "--state-dir", "thief"] });
      await coordinator.logLine({ reason: "certificate_revoked" });
      const good = await cluster.startWorker();
      await coordinator.event("worker_registered", await good.identity());
      expect(coordinator.seen("worker_registered")).to.have.length(1);
      expect(await thief.ended).to.deep.equal({ code: 3, signal: null });
      expect(thief.stderr.join("\n")).to.match(
        /it refuses the certificate of the bundle .*, which was revoked/,
      );
    });
  });

  it("are revoked in the database also where of several coordinators one hangs up and another is gone", async () => {
    const deaf = await startDeafListener();
    try {
      await withCluster({}, async (cluster) => {
        await cluster.startCoordinator();
        await cluster.coordinator.stop();
        await cluster.configure({ "transport.advertised_addr": deaf.address });
        const addresses = `${deaf.address},${await restartableAddress()}`;
        const revoke = ["ca", "revoke", "data/tls/enrolment.pem", "--json", "--coordinator-addr", addresses];
        const offline = await cluster.run(...revoke);
        expect(offline.stderr).to.equal("");
        expect(JSON.parse(offline.stdout)).to.include({ in_force: false });
      });
    } finally {
      await deaf.close();
    }
  });

  it("for an operator let commands be run from elsewhere", async () => {
    await withCluster({}, async (cluster) => {
      await cluster.startCoordinator();
      const worker = await cluster.startWorker();
      await cluster.run("ca", "issue", "--role", "operator", "--out", "operator.pem");
      const files = ["--ca-file", "--cert-file", "--key-file"].flatMap((flag) => [flag, "operator.pem"]);
      const list = await cluster.run("worker", "list", "--json", "--tls-dir", "nowhere", ...files);
      expect(list.stderr).to.equal("");
      expect(JSON.parse(list.stdout)).to.include({ worker_id: await worker.id() });
    });
  });

  it("are not made where there is no CA", async () => {
    await withCluster({}, async (cluster) => {
      const args = ["--coordinator-addr", "head.example:50051", "--out", "enrolment.pem"];
      const refused = await cluster.run("ca", "issue", ...args);
      expect(refused).to.include({ code: 2, stdout: "" });
      expect(refused.stderr).to.contain("run this on the coordinator's machine");
      expect(await stat(cluster.file("data")).catch(() => undefined)).to.equal(undefined);
    });
  });
});
