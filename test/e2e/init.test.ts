import { X509Certificate } from "node:crypto";
import { readFile, stat, writeFile } from "node:fs/promises";
import { expect } from "chai";
import { loadConfig } from "../../src/config/load.ts";
import { runProgram } from "../support/run-program.ts";
import { useTemporaryDirectory } from "../support/temporary-directory.ts";

const BIN = "bin/run.js";
const NOTHING = { environment: {}, flags: {}, topics: [] };

describe("rollout init", () => {
  const directory = useTemporaryDirectory();
  const init = (...args: string[]): ReturnType<typeof runProgram> =>
    runProgram(BIN, ["init", ...args], { cwd: directory.path });

  it("writes a file that resolves, makes the CA, and says what to type next", async () => {
    const result = await init();
    expect(result.code).to.equal(0);
    expect(result.stderr).to.equal("Generated dev CA at ./data/tls/ca.pem\n");
    expect(result.stdout).to.equal(
      "Wrote ./rollout.toml\n\nNext, each in a terminal of its own:\n" +
        "  rollout coordinator run\n  rollout worker run\n  rollout worker list\n",
    );
    const request = { ...NOTHING, file: undefined, workingDirectory: directory.path };
    for (const role of ["coordinator", "worker", "operator"] as const) {
      const config = await loadConfig(role, request);
      expect(config.transport.tlsDir).to.equal(directory.file("data/tls"));
    }
    expect(new X509Certificate(await readFile(directory.file("data/tls/ca.pem"))).ca).to.equal(true);
    expect((await stat(directory.file("data/tls/ca.key.pem"))).mode & 0o777).to.equal(0o600);
  });

  it("changes nothing when it is run again, and says so", async () => {
    await init();
    const files = ["rollout.toml", "data/tls/ca.pem", "data/tls/ca.key.pem"].map((name) =>
      directory.file(name),
    );
    const before = await Promise.all(files.map((file) => readFile(file, "utf8")));
    const result = await init();
    expect(result).to.deep.include({ code: 0, stderr: "" });
    expect(result.stdout).to.contain("./rollout.toml is already there; nothing was changed\n");
    expect(await Promise.all(files.map((file) => readFile(file, "utf8")))).to.deep.equal(before);
  });

  it("never overwrites a file, and makes nothing beside it", async () => {
    await writeFile(directory.file("rollout.toml"), "mine\n");
    const result = await init("--json");
    expect(JSON.parse(result.stdout)).to.deep.include({ created: false });
    expect(await readFile(directory.file("rollout.toml"), "utf8")).to.equal("mine\n");
    expect(await stat(directory.file("data")).catch(() => undefined)).to.equal(undefined);
  });

  it("makes the directory that it is given, and names the file in what to type next", async () => {
    const result = await init("--dir", "cluster/one", "--json");
    const printed = JSON.parse(result.stdout) as { run_id: string };
    expect(result).to.deep.include({ code: 0, stderr: "" });
    expect(printed).to.deep.include({
      created: true,
      config: directory.file("cluster/one/rollout.toml"),
      next: ["coordinator run", "worker run", "worker list"].map(
        (command) => `rollout ${command} --config ./cluster/one/rollout.toml`,
      ),
    });
    const request = { ...NOTHING, file: "cluster/one/rollout.toml", workingDirectory: directory.path };
    expect((await loadConfig("worker", request)).runId).to.equal(printed.run_id);
  });

  it("makes one run only when two start at once", async () => {
    const results = await Promise.all([init("--json"), init("--json")]);
    const created = results.map((result) => (JSON.parse(result.stdout) as { created: boolean }).created);
    expect(created.toSorted()).to.deep.equal([false, true]);
  });

  it("reports that it may not write there", async () => {
    await writeFile(directory.file("file"), "");
    const result = await init("--dir", "file/sub");
    const file = directory.file("file/sub/rollout.toml");
    expect(result).to.deep.equal({
      code: 2,
      stdout: "",
      stderr:
        `error: cannot write ${file}: a part of the path is not a directory ` +
        "(choose a directory that this user may write to)\n",
    });
  });
});
