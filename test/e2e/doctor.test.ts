import { chmodSync, existsSync, mkdirSync, unlinkSync, writeFileSync } from "node:fs";
import { expect } from "chai";
import { newRunId } from "../support/certificates.ts";
import { withCluster } from "../support/cluster.ts";
import type { Cluster } from "../support/cluster.ts";
import { concurrentTests } from "../support/concurrent.ts";
import { restartableAddress } from "../support/listeners.ts";
import { AwsMetadataServer } from "../support/metadata-server.ts";

interface FindingLine {
  readonly subject: string;
  readonly verdict: string;
  readonly detail: string;
  readonly hint: string | null;
  readonly code: string | null;
}

describe("rollout doctor", () => {
  const it = concurrentTests(3);

  const examine = async (
    cluster: Cluster,
    ...words: string[]
  ): Promise<{ code: number | null; findings: Map<string, FindingLine> }> => {
    const { code, stdout } = await cluster.run("doctor", "--json", ...words);
    const lines = stdout.trimEnd().split("\n");
    const findings = lines.map((line) => JSON.parse(line) as FindingLine);
    return { code, findings: new Map(findings.map((finding) => [finding.subject, finding])) };
  };

  it("finds everything in order, warns of missing workers, and is a gate", async () => {
    await withCluster({}, async (cluster) => {
      const coordinator = await cluster.startCoordinator();
      const lonely = await examine(cluster, "-c", ".");
      expect(lonely.code).to.equal(0);
      expect(lonely.findings.get("workers")).to.include({
        verdict: "warning",
        hint: "start one with `rollout worker run -c .`",
      });
      expect(lonely.findings.get("leader")?.detail).to.match(/:\d+ leads in epoch 0, since \d{4}-\S+Z, /);
      expect(lonely.findings.get("database")?.detail).to.include(`pid ${coordinator.pid}`);

      await cluster.startWorker();
      const { code, stdout } = await cluster.run("doctor");
      expect(code).to.equal(0);
      expect(stdout).to.match(/workers +1 of 1 known workers can take items\n/);
      expect(stdout).to.match(/everything is in place\n$/);

      await coordinator.kill();
      const alone = await examine(cluster, "-c", ".");
      expect(alone.code).to.equal(3);
      expect(alone.findings.get("coordinator")).to.include({
        verdict: "failure",
        code: "coordinator_refused_connection",
        hint: "start the coordinator with `rollout coordinator run -c .`, or correct the address",
      });
      expect(alone.findings.get("database")?.detail).to.match(
        /nobody has it open, its rows are whole, and it is of this run$/,
      );
      expect(alone.findings.get("state directory")?.verdict).to.equal("good");

      // Nothing of the look is left that the next coordinator would stumble over.
      expect(existsSync(cluster.file("data/rollout.db.lock"))).to.equal(false);
      await cluster.startCoordinator();
    });
  });

  it("says, as `status` does, that workers are there and none can execute the plugin of the run", async () => {
    await withCluster({}, async (cluster) => {
      const coordinator = await cluster.startCoordinator();
      const worker = await cluster.startWorker();
      await coordinator.event("worker_registered", await worker.identity());
      writeFileSync(
        cluster.file("infer.toml"),
        'name = "infer"\nversion = "1"\nbackend = "command"\n[command]\ncommand = ["true"]\n',
      );
      await cluster.submit([1, 2], "--plugin", "infer.toml");
      const status = await cluster.run("status");
      expect(status.stdout.split("\n")[0]).to.match(/ No worker can execute the plugin infer\.$/);
      const { code, findings } = await examine(cluster);
      expect(code).to.equal(0);
      expect(findings.get("workers")).to.include({
        verdict: "warning",
        detail: "none of 1 known workers can execute the run's plugin infer",
      });
    });
  });

  it("looks into a database that nobody has open, and at the place of one that is not there", async () => {
    await withCluster({}, async (cluster) => {
      await (await cluster.startCoordinator()).kill();
      const database = async (): Promise<FindingLine | undefined> =>
        (await examine(cluster)).findings.get("database");
      await cluster.configure({ run_id: newRunId() });
      expect((await database())?.code).to.equal("store_other_run");
      await cluster.configure({ run_id: cluster.runId });
      unlinkSync(cluster.file("data/rollout.db/CURRENT"));
      expect((await database())?.code).to.equal("store_broken");

      writeFileSync(cluster.file("file"), "");
      await cluster.configure({ "storage.path": "./file", "worker.state_dir": "./file" });
      const { findings } = await examine(cluster);
      expect(findings.get("database")).to.include({ verdict: "failure", code: "store_unusable" });
      expect(findings.get("database")?.detail).to.match(/: it is a file, not a directory$/);
      expect(findings.get("state directory")?.detail).to.match(/: it is a file, not a directory$/);
      await cluster.configure({ "storage.path": "./later/db" });
      expect((await database())?.detail).to.include("it will be made");
      expect(existsSync(cluster.file("later"))).to.equal(false);
    });
  });

  it("looks at the machine where there is no configuration, but not in place of one that is named", async () => {
    await withCluster({}, async (cluster) => {
      unlinkSync(cluster.file("rollout.toml"));
      const { code, findings } = await examine(cluster);
      expect(code).to.equal(0);
      expect([...findings.keys()]).to.include.members(["machine", "configuration", "plugin"]);
      expect(findings.get("configuration")).to.include({ verdict: "warning" });
      expect((await cluster.run("doctor", "-c", "rollout.toml")).stderr).to.match(/^error: cannot read the/);
    });
  });

  it("asks the metadata server that workers would ask for notices", async () => {
    const server = await AwsMetadataServer.start();
    server.misbehave({ kind: "slow", delayMs: 1_100 }, 2);
    const address = server.url.slice("http://".length);
    try {
      await withCluster({ "worker.preemption": "auto", "worker.metadata_addr": address }, async (cluster) => {
        const notices = async (): Promise<FindingLine | undefined> =>
          (await examine(cluster)).findings.get("preemption notices");
        expect(await notices()).to.include({ verdict: "warning" });
        const quick = await notices();
        expect(quick?.verdict).to.equal("good");
        expect(quick?.detail).to.include(`of aws answers at ${address}`);
        await server.close();
        expect((await notices())?.detail).to.include(`no metadata server answers at ${address}`);
      });
    } finally {
      await server.close();
    }
  });

  it("looks at every plugin of this machine's workers, without a coordinator", async () => {
    const write = (cluster: Cluster, name: string, backend: string, ...lines: string[]): string => {
      const head = [`name = "${name}"`, 'version = "1"', `backend = "${backend}"`, `[${backend}]`];
      writeFileSync(cluster.file(`${name}.toml`), [...head, ...lines, ""].join("\n"));
      return `${name}.toml`;
    };
    await withCluster({}, async (cluster) => {
      writeFileSync(cluster.file("data.txt"), "");
      writeFileSync(cluster.file("there.ts"), "");
      const nobody = `http://${await restartableAddress()}/v1`;
      const plugins = [
        write(cluster, "fine", "command", 'command = ["cat"]'),
        write(cluster, "by-item", "command", 'command = ["{.program}"]'),
        write(cluster, "script", "module", 'module = "there.ts"'),
        write(cluster, "server", "http", `url = "${nobody}"`),
        "nowhere.toml",
        write(cluster, "wrong", "command", 'comand = ["cat"]'),
        write(cluster, "no-program", "command", 'command = ["nonesuch-program"]'),
        write(cluster, "no-right", "process", 'command = ["./data.txt"]'),
        write(
          cluster,
          "no-launch",
          "http",
          'url = "http://127.0.0.1:{port}"',
          'launch = ["nonesuch-server"]',
        ),
        write(cluster, "no-module", "machine", 'module = "absent.ts"'),
        "fine.toml",
      ];
      await cluster.configure({ "worker.plugins": plugins });
      const { stdout } = await cluster.run("doctor", "--json");
      const found = stdout
        .trimEnd()
        .split("\n")
        .map((line) => JSON.parse(line) as FindingLine)
        .filter(({ subject }) => subject === "plugin");
      expect(found.map(({ verdict, code }) => code ?? verdict)).to.deep.equal([
        ...["good", "good", "good", "warning"],
        ...["manifest_unreadable", "config_unknown_key"],
        ...["backend_broken", "backend_broken", "backend_broken", "backend_broken"],
        "plugin_repeated",
      ]);
      const said = found.map(({ detail }) => detail).join("\n");
      for (const words of [
        "the connection was refused",
        "nonesuch-program",
        "may not be executed",
        "absent.ts",
      ])
        expect(said).to.include(words);
    });
  });

  it("names what is wrong with a key and with the place of the database, and asks no further without a key", async () => {
    await withCluster({}, async (cluster) => {
      await cluster.startCoordinator();
      chmodSync(cluster.file("data/tls/operator.key.pem"), 0o644);
      mkdirSync(cluster.file("elsewhere"));
      writeFileSync(cluster.file("elsewhere/file"), "");
      await cluster.configure({ "storage.path": "./elsewhere/file/db" });
      const { code, findings } = await examine(cluster);
      expect(code).to.equal(2);
      expect(findings.get("operator certificate")?.code).to.equal("tls_key_exposed");
      expect(findings.get("database")?.code).to.equal("store_unusable");
      expect([...findings.keys()]).not.to.include("coordinator");
    });
  });
});
