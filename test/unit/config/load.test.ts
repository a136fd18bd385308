import { mkdir, writeFile } from "node:fs/promises";
import { expect } from "chai";
import { systemClock } from "../../../src/base/clock.ts";
import { newUlid } from "../../../src/base/ids.ts";
import type { RunId } from "../../../src/base/ids.ts";
import { systemRandom } from "../../../src/base/random.ts";
import { loadConfig } from "../../../src/config/load.ts";
import type { ClientConfig } from "../../../src/config/resolve.ts";
import { configTemplate } from "../../../src/commands/init.ts";
import { failureOf } from "../../support/rejection.ts";
import { useTemporaryDirectory } from "../../support/temporary-directory.ts";

describe("the file of the configuration", () => {
  const temporary = useTemporaryDirectory();

  const load = (file: string | undefined): Promise<ClientConfig> =>
    loadConfig("operator", {
      ...{ file, environment: {}, flags: {}, topics: [] },
      workingDirectory: temporary.path,
    });

  it("may be named by its directory", async () => {
    const runId = newUlid<RunId>(systemClock, systemRandom);
    await mkdir(temporary.file("out.jsonl.rollout"));
    await writeFile(temporary.file("out.jsonl.rollout/rollout.toml"), configTemplate(runId));
    for (const file of ["out.jsonl.rollout", "out.jsonl.rollout/", "out.jsonl.rollout/rollout.toml"]) {
      const config = await load(file);
      expect(config).to.include({ runId, source: temporary.file("out.jsonl.rollout/rollout.toml") });
      expect(config.transport.tlsDir).to.equal(temporary.file("out.jsonl.rollout/data/tls"));
    }
  });

  it("is missed where a directory has none, by its whole name", async () => {
    await mkdir(temporary.file("empty"));
    const error = await failureOf(load("empty"));
    expect(error).to.include({ code: "config_unreadable" });
    expect(error.message).to.contain(temporary.file("empty/rollout.toml"));
  });
});
