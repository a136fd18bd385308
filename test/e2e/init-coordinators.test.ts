// The files that `rollout init --coordinators` writes for each host.
import { X509Certificate } from "node:crypto";
import { mkdir, readdir, readFile, stat, writeFile } from "node:fs/promises";
import { expect } from "chai";
import { systemClock } from "../../src/base/clock.ts";
import { parseCoordinatorHosts } from "../../src/compose/coordinator-hosts.ts";
import { loadConfig } from "../../src/config/load.ts";
import { loadBundle } from "../../src/transport/tls/bundle.ts";
import { loadCredentials } from "../../src/transport/tls/credential-files.ts";
import { operatorFiles } from "../../src/transport/tls/host-credentials.ts";
import { runProgram } from "../support/run-program.ts";
import { useTemporaryDirectory } from "../support/temporary-directory.ts";

const NOTHING = { environment: {}, flags: {}, topics: [] };
const HOSTS = ["h1.example", "h2.example", "10.0.0.3"];
const ADDRESSES = HOSTS.map((host) => `${host}:50051`);

interface Printed {
  readonly created: boolean;
  readonly run_id?: string;
  readonly coordinators: readonly { readonly address: string; readonly directory: string }[];
  readonly next: readonly string[];
}

describe("rollout init --coordinators", () => {
  const directory = useTemporaryDirectory();
  const init = (...args: string[]): ReturnType<typeof runProgram> =>
    runProgram("bin/run.js", ["init", "--coordinators", HOSTS.join(), ...args], { cwd: directory.path });

  /** Each file below the directory with its text. */
  async function texts(): Promise<Record<string, string>> {
    const entries = await readdir(directory.path, { recursive: true, withFileTypes: true });
    const files = entries
      .filter((entry) => entry.isFile())
      .map((entry) => `${entry.parentPath}/${entry.name}`);
    const found: Record<string, string> = {};
    for (const file of files) found[file] = await readFile(file, "utf8");
    return found;
  }

  it("writes what each host needs, and says the next commands", async () => {
    const result = await init();
    expect(result.code, result.stderr).to.equal(0);
    expect(result.stdout).to.equal(
      "Wrote\n  ./rollout.toml\n  ./h1.example\n  ./h2.example\n  ./10.0.0.3\n\n" +
        "Next, fill in storage.url in the rollout.toml of each host, and copy them:\n" +
        "  scp -r ./h1.example h1.example:rollout\n  scp -r ./h2.example h2.example:rollout\n" +
        "  scp -r ./10.0.0.3 10.0.0.3:rollout\n" +
        "On each of them:\n  rollout coordinator run --config rollout\n" +
        "Here, as soon as one leads:\n  rollout worker list\n",
    );
    const ca = await readFile(directory.file("data/tls/ca.pem"), "utf8");
    for (const host of HOSTS) {
      const tls = directory.file(`${host}/data/tls`);
      expect(await readFile(`${tls}/ca.pem`, "utf8")).to.equal(ca);
      for (const name of ["ca.key.pem", "coordinator.key.pem", "operator.key.pem", "enrolment.pem"])
        expect((await stat(`${tls}/${name}`)).mode & 0o777, name).to.equal(0o600);
      const certificate = new X509Certificate(await readFile(`${tls}/coordinator.pem`));
      expect(certificate.subjectAltName).to.contain(host);
      expect(certificate.verify(new X509Certificate(ca).publicKey)).to.equal(true);
      const bundle = await loadBundle(`${tls}/enrolment.pem`, ["enrolment"], systemClock);
      expect(bundle.coordinatorAddr).to.deep.equal(ADDRESSES);
    }
  });

  it("writes configurations that resolve: each host's own address, all coordinators everywhere, one run", async () => {
    const { run_id: runId } = JSON.parse((await init("--json")).stdout) as Printed;
    for (const [at, host] of HOSTS.entries()) {
      const file = directory.file(`${host}/rollout.toml`);
      const text = await readFile(file, "utf8");
      expect(text)
        .to.contain(`advertised_addr = "${ADDRESSES[at] ?? ""}"`)
        .and.contain('url = "postgres://');
      for (const role of ["coordinator", "worker", "operator"] as const)
        await loadConfig(role, { ...NOTHING, file, workingDirectory: directory.path });
      const config = await loadConfig("worker", { ...NOTHING, file, workingDirectory: directory.path });
      expect(config.runId).to.equal(runId);
      expect(config.worker.coordinatorAddr).to.deep.equal(ADDRESSES);
      expect(config.transport).to.include({ listenAddr: "0.0.0.0:50051", advertisedAddr: ADDRESSES[at] });
    }
    const here = await loadConfig("operator", {
      ...NOTHING,
      file: undefined,
      workingDirectory: directory.path,
    });
    expect(here.worker.coordinatorAddr).to.deep.equal(ADDRESSES);
    const expected = { runId: here.runId, roles: ["operator"] as const };
    await loadCredentials(operatorFiles(here.transport.tlsDir), expected, systemClock);
  });

  it("changes nothing when it is run again, and says so", async () => {
    await init();
    const before = await texts();
    const again = await init();
    expect(again).to.deep.include({ code: 0, stderr: "" });
    expect(again.stdout).to.match(
      /^\.\/rollout\.toml and the directories of those hosts are already there; nothing was changed\n/,
    );
    const other = await runProgram("bin/run.js", ["init", "--coordinators", "h9"], { cwd: directory.path });
    expect(other.stdout).to.equal(
      "./rollout.toml is already there, without those hosts; nothing was changed\n",
    );
    expect(await texts()).to.deep.equal(before);
  });

  it("overwrites no configuration of a host", async () => {
    const file = directory.file("h1.example/rollout.toml");
    await mkdir(directory.file("h1.example"));
    await writeFile(file, "mine\n");
    const { code, stderr } = await init();
    expect(code).to.equal(2);
    expect(stderr).to.contain(`${file} is there already, and is not overwritten`);
    expect(await readFile(file, "utf8")).to.equal("mine\n");
    expect(await readdir(directory.path)).to.not.include("rollout.toml");
  });

  it("has a coordinator listen on loopback alone where its address means that, and tells two of a host apart", () => {
    expect(parseCoordinatorHosts("127.0.0.1:4001, 127.0.0.1:4002")).to.deep.equal([
      { address: "127.0.0.1:4001", name: "127.0.0.1-4001" },
      { address: "127.0.0.1:4002", name: "127.0.0.1-4002" },
    ]);
    expect(parseCoordinatorHosts("[::1]:7,h2")).to.deep.equal([
      { address: "[::1]:7", name: "ip--1" },
      { address: "h2:50051", name: "h2" },
    ]);
  });

  for (const hosts of [
    "",
    "h1,",
    "h1,h1",
    "h1,h1:50051",
    "h1:0",
    "h 1",
    "../h1",
    Array.from({ length: 17 }, (_, at) => `h${at}`).join(),
  ])
    it(`refuses "${hosts.slice(0, 20)}"`, async () => {
      expect(parseCoordinatorHosts(hosts)).to.equal(undefined);
    });
});
