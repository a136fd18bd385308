import { expect } from "chai";
import { writeFile } from "node:fs/promises";
import { RolloutError } from "../../../src/base/errors.ts";
import { loadManifests } from "../../../src/compose/plugins.ts";
import { submittedTask } from "../../../src/compose/operator-client.ts";
import type { ClientConfig } from "../../../src/config/resolve.ts";
import { resolveConfig } from "../../../src/config/resolve.ts";
import { newRunId } from "../../support/certificates.ts";
import { useTemporaryDirectory } from "../../support/temporary-directory.ts";

describe("the task that items are submitted for", () => {
  const directory = useTemporaryDirectory();

  function config(plugins: readonly string[]): ClientConfig {
    const text = `run_id = "${newRunId()}"\n[worker]\ncoordinator_addr = "head:1"\nplugins = ${JSON.stringify(plugins)}\n`;
    const file = { path: directory.file("rollout.toml"), text };
    const workingDirectory = "/elsewhere";
    return resolveConfig("operator", { file, environment: {}, flags: {}, workingDirectory, topics: [] });
  }

  beforeEach(async () => {
    for (const name of ["one", "two"])
      await writeFile(directory.file(`${name}.toml`), `name = "${name}"\nversion = "1"\nbackend = "mock"\n`);
  });

  it("is the task of the named manifest, whatever workers have", async () => {
    const named = directory.file("two.toml");
    expect((await submittedTask(named, config(["one.toml"]))).plugin).to.equal("two");
  });

  it("is otherwise the task of the only manifest that workers have", async () => {
    expect((await submittedTask(undefined, config(["./one.toml"]))).plugin).to.equal("one");
  });

  it("is otherwise the task of the plugin that every worker has", async () => {
    expect((await submittedTask(undefined, config([]))).plugin).to.equal("mock");
  });

  it("has to be named when workers have several", async () => {
    const error: unknown = await submittedTask(undefined, config(["one.toml", "two.toml"])).catch(
      (thrown: unknown) => thrown,
    );
    expect(error).to.be.instanceOf(RolloutError).and.include({ code: "config_missing_key" });
    expect((error as RolloutError).hint)
      .to.include("--plugin")
      .and.include("two.toml");
  });

  it("comes of manifests of which no two have one name and version", async () => {
    const again = directory.file("again.toml");
    await writeFile(again, `name = "one"\nversion = "1"\nbackend = "mock"\n`);
    const error: unknown = await loadManifests([directory.file("one.toml"), again]).catch(
      (thrown: unknown) => thrown,
    );
    expect(error).to.be.instanceOf(RolloutError);
    expect((error as RolloutError).params).to.deep.equal({
      file: again,
      name: "one",
      version: "1",
      other: directory.file("one.toml"),
    });
  });
});
