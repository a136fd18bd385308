import { inspect } from "node:util";
import { expect } from "chai";
import { RolloutError } from "../../../src/base/errors.ts";
import { resolveConfig } from "../../../src/config/resolve.ts";
import type { ResolvedConfig } from "../../../src/config/resolve.ts";

const SECRET = "s3cret-w0rd";

function resolved(storage: string, environment: Record<string, string> = {}): ResolvedConfig {
  const text = `run_id = "01JZ0000000000000000000000"\n[storage]\n${storage}\n[transport]\nlisten_addr = "127.0.0.1:1"\n`;
  const file = { path: "/etc/rollout/rollout.toml", text };
  return resolveConfig("coordinator", {
    ...{ file, environment, flags: {}, workingDirectory: "/home/somebody", topics: [] },
  });
}

function refusal(storage: string, environment: Record<string, string> = {}): RolloutError {
  try {
    resolved(storage, environment);
  } catch (error) {
    if (error instanceof RolloutError) return error;
    throw error;
  }
  throw new Error("the configuration was accepted");
}

describe("where a run is stored", () => {
  it("is a directory, or a Postgres with its password in a file", () => {
    expect(resolved('path = "db"').storage).to.deep.include({ path: "/etc/rollout/db" });
    const { storage } = resolved('url = "postgres://u@db1,db2/work"\npassword_file = "pw"');
    expect(storage.path).to.equal(undefined);
    expect(storage.postgres?.passwordFile).to.equal("/etc/rollout/pw");
    expect(storage.postgres?.address.hosts.map(({ host }) => host)).to.deep.equal(["db1", "db2"]);
    expect(storage.postgres?.password()).to.equal(undefined);
  });

  it("is one of both: without either the directory is asked for, and both are refused", () => {
    expect(refusal("")).to.include({ code: "config_missing_key" });
    expect(refusal("").params).to.include({ key: "storage.path" });
    const both = refusal('path = "db"', { ROLLOUT_STORAGE_URL: `postgres://u:${SECRET}@db/work` });
    expect(both).to.include({ code: "config_contradiction" });
    expect(both.params).to.include({ key: "storage.path", otherValue: "postgres://u@db:5432/work" });
  });

  it("has its password in one place, and only with a Postgres", () => {
    expect(refusal('path = "db"\npassword_file = "pw"').hint).to.include("is for storage.url");
    const twice = refusal(`url = "postgres://u:${SECRET}@db/work"\npassword_file = "pw"`);
    expect(twice.hint).to.include("not in both");
    expect(inspect(twice)).to.not.include(SECRET);
  });

  it("shows no password, wherever it was written", () => {
    const config = resolved(`url = "postgres://u:${SECRET}@db/work"`);
    expect(config.storage.postgres?.password()).to.equal(SECRET);
    expect(inspect(config, { depth: null }) + JSON.stringify(config)).to.not.include(SECRET);
    for (const url of [
      `u:${SECRET}@db/work`,
      `postgres://u:${SECRET}/@db/work`,
      `postgres://u@db/${SECRET}/x`,
    ]) {
      const error = refusal(`url = "${url}"`);
      expect(error).to.include({ code: "config_invalid_value" });
      expect(inspect(error)).to.not.include(SECRET);
    }
  });
});
