import { existsSync } from "node:fs";
import { writeFile } from "node:fs/promises";
import { expect } from "chai";
import { bundleText } from "../../src/transport/tls/bundle.ts";
import { newIdentity, newWorkerId } from "../support/certificates.ts";
import { withCluster } from "../support/cluster.ts";
import type { Cluster, WorkerProcess } from "../support/cluster.ts";
import { concurrentTests } from "../support/concurrent.ts";
import { eventually } from "../support/eventually.ts";
import { startDeafListener, restartableAddress } from "../support/listeners.ts";
import { askMonitor } from "./monitor.ts";
import { authorityIn } from "../support/real-authority.ts";

/** The one warning about the coordinator, which names the trouble and what to do. */
async function expectOneClearLine(worker: WorkerProcess, code: string, says: RegExp): Promise<void> {
  const warning = await worker.logLine({ level: "warn" });
  expect(warning).to.include({ code });
  expect(warning["message"])
    .to.match(says)
    .and.to.match(/; trying again$/);
  expect(warning).to.have.property("hint").that.is.a("string");
  const warnings = worker.log.filter(({ level }) => level !== "info" && level !== "debug");
  expect(warnings).to.have.length(1);
  expect(worker.stderr.join("\n")).to.not.match(/^\s+at /m);
  expect(worker.isRunning).to.equal(true);
}

/** An enrolment bundle of another CA; `caPem` is what its bearer trusts. */
async function foreignBundle(cluster: Cluster, caPem?: string): Promise<string> {
  const other = await authorityIn(cluster.file("other-tls"));
  const credentials = await other.issue({ identity: newIdentity(cluster.runId, "enrolment") });
  const file = cluster.file("foreign.pem");
  const trusted = { ...credentials, caPem: caPem ?? credentials.caPem };
  await writeFile(file, bundleText(trusted, [cluster.address]), { mode: 0o600 });
  return file;
}

/** A listener opens a second and a half after it is told to. */
const LATE = `
import { Server } from "node:net";
const { listen } = Server.prototype;
Server.prototype.listen = function (...args) {
  setTimeout(() => listen.apply(this, args), 1500);
  return this;
};
`;

describe("a command that is given before its coordinator listens", () => {
  it("waits for a coordinator that is starting on this machine, and for no other", async () => {
    await withCluster({}, async (cluster) => {
      await cluster.startCoordinator();
      await cluster.coordinator.stop();
      const refused = await cluster.run("status");
      expect([refused.code, refused.stderr]).to.satisfy(
        ([code, text]: [number, string]) => code === 3 && text.includes("nothing listens at"),
      );
      await writeFile(cluster.file("late.mjs"), LATE);
      cluster.launchCoordinator({ env: { NODE_OPTIONS: `--import ${cluster.file("late.mjs")}` } });
      await eventually("it has its database", () => existsSync(cluster.file("data/rollout.db.lock")));
      const { code, stderr } = await cluster.run("status", "--json");
      expect([code, stderr]).to.deep.equal([0, ""]);
    });
  });
});

describe("a worker that cannot reach its coordinator", () => {
  const it = concurrentTests(4);

  it("says that nothing listens, once, and joins by itself when the coordinator appears", async () => {
    await withCluster({}, async (cluster) => {
      await cluster.startCoordinator();
      await cluster.coordinator.stop();
      const worker = cluster.launchWorker({ env: { ROLLOUT_WORKER_MONITOR_ADDR: "127.0.0.1:0" } });
      await expectOneClearLine(worker, "coordinator_refused_connection", /^nothing listens at 127\.0\.0\.1:/);
      const readiness = async (): Promise<unknown> => {
        const { status, body } = await askMonitor(worker, "/readyz");
        return `${status} ${String(body["reason"])}`;
      };
      expect(await readiness()).to.equal("503 no coordinator knows it yet");
      const coordinator = await cluster.startCoordinator();
      await coordinator.event("worker_heartbeat", { ...(await worker.identity()), state: "Ready" });
      expect(await readiness()).to.equal("200 undefined");
      await coordinator.stop();
      await eventually("it says so", async () => (await readiness()) === "503 no coordinator answers");
    });
  });

  it("says that the name is not found", async () => {
    await withCluster({}, async (cluster) => {
      await cluster.startCoordinator();
      const worker = cluster.launchWorker({ args: ["--coordinator-addr", "coordinator.invalid:50051"] });
      await expectOneClearLine(
        worker,
        "coordinator_name_not_found",
        /coordinator\.invalid:50051 is not found/,
      );
    });
  });

  it("ends when its bundle is refused, joins with one that is not, and the refusal is on record", async () => {
    await withCluster({}, async (cluster) => {
      const coordinator = await cluster.startCoordinator();
      const { certificatePem } = await authorityIn(cluster.file("data/tls"));
      const bundle = await foreignBundle(cluster, certificatePem);
      const refused = cluster.launchWorker({ args: ["--enrolment", bundle] });
      expect(await refused.ended).to.deep.equal({ code: 3, signal: null });
      expect(refused.stderr.join("\n")).to.match(
        /it refuses the certificate of the bundle \(enrolment 01\w+\), which was revoked or is not of its CA/,
      );
      expect(await coordinator.logLine({ audit: true })).to.include({ reason: "certificate_not_trusted" });
      expect(coordinator.seen("worker_registered")).to.deep.equal([]);

      const issued = await cluster.run("ca", "issue", "--out", "good.pem");
      expect(issued).to.include({ code: 0, stderr: "" });
      const worker = cluster.launchWorker({ args: ["--enrolment", "good.pem"] });
      await coordinator.event("worker_heartbeat", { ...(await worker.identity()), state: "Ready" });
    });
  });

  it("says that it does not trust the server at that address", async () => {
    await withCluster({}, async (cluster) => {
      await cluster.startCoordinator();
      const worker = cluster.launchWorker({ args: ["--enrolment", await foreignBundle(cluster)] });
      await expectOneClearLine(worker, "coordinator_not_trusted", /it was not signed by this run's CA/);
    });
  });

  it("with a bundle of another run is refused at once, with both runs named", async () => {
    await withCluster({}, async (cluster) => {
      await cluster.startCoordinator();
      const otherRun = newWorkerId();
      await cluster.run("ca", "issue", "--run-id", otherRun, "--out", "other-run.pem");
      const refused = await cluster.run("worker", "run", "--enrolment", "other-run.pem");
      expect(refused).to.deep.include({ code: 2, stdout: "" });
      expect(refused.stderr).to.contain(`it belongs to run ${otherRun}, and this run is ${cluster.runId} (`);
    });
  });

  it("tries again and again, and logs no more than at first", async () => {
    const listener = await startDeafListener();
    try {
      await withCluster({}, async (cluster) => {
        await cluster.startCoordinator();
        const worker = cluster.launchWorker({ args: ["--coordinator-addr", listener.address] });
        await listener.connections(12);
        await expectOneClearLine(worker, "coordinator_silent", /does not answer/);
      });
    } finally {
      await listener.close();
    }
  });

  it("ends in good order when it is told to, although nobody hears its goodbye", async () => {
    await withCluster({}, async (cluster) => {
      await cluster.startCoordinator();
      const worker = cluster.launchWorker({ args: ["--coordinator-addr", await restartableAddress()] });
      await worker.logLine({ code: "coordinator_refused_connection" });
      expect(await worker.stop()).to.deep.equal({ code: 0, signal: null });
      expect(worker.log.at(-1)).to.include({ level: "warn" });
    });
  });
});
