// Three coordinators as real processes, each in the directory that `rollout init --coordinators` has written for its host, over one
// Postgres; a worker and commands that know only the address of one that follows. The leader is killed.
import { copyFile, readFile, writeFile } from "node:fs/promises";
import { expect } from "chai";
import type { Cluster } from "../support/cluster.ts";
import { withCluster } from "../support/cluster.ts";
import { restartableAddress } from "../support/listeners.ts";
import { usePostgresDatabase } from "../support/postgres-database.ts";
import type { RolloutProcess } from "../support/rollout-process.ts";

interface Host {
  readonly address: string;
  /** Relative to the cluster's. */
  readonly directory: string;
  readonly process: RolloutProcess;
}

/** The settings of the cluster that are no places, for the configuration of each host. */
function timesOf(cluster: Cluster): string {
  const ms = (factor: number): string => `"${Math.round(factor * cluster.pace)}ms"`;
  return `
[liveness]
heartbeat_interval = ${ms(100)}
clock_skew_budget = ${ms(150)}
worker_self_fence_timeout = ${ms(8_000)}
coordinator_failure_timeout = ${ms(10_000)}
[coordinator]
heartbeat_interval = ${ms(500)}
failover_threshold = ${ms(3_000)}
`;
}

describe("three coordinators, as init has written them", () => {
  const database = usePostgresDatabase();

  async function withHosts(
    use: (cluster: Cluster, hosts: readonly [Host, Host, Host]) => Promise<void>,
  ): Promise<void> {
    await withCluster({}, async (cluster) => {
      const addresses = [await restartableAddress(), await restartableAddress(), await restartableAddress()];
      const { code, stderr } = await cluster.run(
        "init",
        "--dir",
        "hosts",
        "--coordinators",
        addresses.join(),
      );
      if (code !== 0) throw new Error(stderr);
      const join = async (at: number): Promise<Host> => {
        const address = addresses[at] ?? "";
        const directory = `hosts/${address.replace(":", "-")}`;
        const file = cluster.file(`${directory}/rollout.toml`);
        const text = (await readFile(file, "utf8")).replace(/^url = .*$/m, `url = "${database.url}"`);
        await writeFile(file, text + timesOf(cluster));
        const process = cluster.launchCoordinator({ directory });
        await process.event(at === 0 ? "coordinator_leading" : "coordinator_following");
        return { address, directory, process };
      };
      await use(cluster, [await join(0), await join(1), await join(2)]);
    });
  }

  it("are one to a worker and to commands that know one follower: results go on, a revoked bundle stays out", async () => {
    await withHosts(async (cluster, [first, second, third]) => {
      const aim = ["--config", "hosts", "--coordinator-addr", third.address];
      const bundleOf = ({ directory }: Host): string => `${directory}/data/tls/enrolment.pem`;
      const config = ["--config", `${second.directory}/rollout.toml`, "--coordinator-addr", third.address];
      const join = (bundle: string, state: string): RolloutProcess =>
        cluster.launch(["worker", "run", ...config, "--enrolment", bundle, "--state-dir", state]);
      const worker = join(bundleOf(second), "state");
      await first.process.event("worker_heartbeat", { state: "Ready" });
      const submit = async (lines: string, ...flags: string[]): Promise<void> => {
        await writeFile(cluster.file("items.jsonl"), lines);
        const { code, stderr } = await cluster.run("submit", "items.jsonl", ...aim, ...flags);
        expect(code, stderr).to.equal(0);
      };
      await submit('{"id":"one"}\n{"id":"two"}\n');
      const results = cluster.launch(["results", "--follow", ...aim]);
      await results.until("two results", () => (results.stdout.length >= 2 ? true : undefined));
      // The coordinator of that host replaces its own as soon as it knows.
      await copyFile(cluster.file(bundleOf(third)), cluster.file("leaked.pem"));
      const revoked = await cluster.run("ca", "revoke", "leaked.pem", ...aim);
      expect(revoked.code, revoked.stderr).to.equal(0);

      await first.process.kill();
      await submit('{"id":"three"}\n', "--seal");
      expect(await results.ended).to.deep.equal({ code: 0, signal: null });
      const ids = results.stdout.map((line) => (JSON.parse(line) as { id: string }).id);
      expect(ids.toSorted()).to.deep.equal(["one", "three", "two"]);
      expect(worker.isRunning).to.equal(true);
      const late = join("leaked.pem", "late");
      expect((await late.ended).code).to.equal(3);
      expect(late.stderr.at(-1)).to.contain("revoked");
    });
  });
});
