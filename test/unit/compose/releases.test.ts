// Releases by the library, with a real coordinator over mutual TLS: each method, and the example of docs/library.md.
import { writeFile } from "node:fs/promises";
import { expect } from "chai";
import { RolloutError } from "../../../src/base/errors.ts";
import { RolloutClient } from "../../../src/compose/rollout-client.ts";
import type { Releases } from "../../../src/compose/releases.ts";
import { loadConfig } from "../../../src/config/load.ts";
import { TOPICS } from "../../../src/observe/events.ts";
import { silentLogger } from "../../../src/observe/log.ts";
import { blocksOfFile } from "../../e2e/document-blocks.ts";
import { newIdentity } from "../../support/certificates.ts";
import { eventually } from "../../support/eventually.ts";
import { useLedCluster } from "../../support/led-cluster.ts";
import { writeCredentials } from "../../support/real-authority.ts";
import { useTemporaryDirectory } from "../../support/temporary-directory.ts";

type Example = (
  client: { readonly releases: Releases },
  console: { log(...words: unknown[]): void },
) => Promise<void>;

describe("releases by the library", () => {
  const directory = useTemporaryDirectory();
  const led = useLedCluster(() => ({}));
  let client: RolloutClient;

  /** A client as a program has it, of a run with an item. */
  beforeEach(async () => {
    const { runId, ca, server } = led.listening;
    const [taskDigest, submissionId] = [Buffer.alloc(32, 1), Buffer.alloc(16, 2)];
    const items = [{ payload: Buffer.from("1") }];
    await led.operator.run.submit({ submissionId, batchNumber: 1n, taskDigest, plugin: "words", items });
    const identity = await ca.issue(newIdentity(runId, "operator"));
    const words = await writeCredentials(directory.file("tls"), identity);
    const flags: Record<string, string> = { "coordinator-addr": server.address };
    for (let at = 0; at < words.length; at += 2) flags[words[at]?.slice(2) ?? ""] = words[at + 1] ?? "";
    const file = directory.file("rollout.toml");
    await writeFile(file, `run_id = "${runId}"\n`);
    const place = { file, environment: {}, flags, workingDirectory: directory.path, topics: TOPICS };
    client = await RolloutClient.open(await loadConfig("operator", place), silentLogger);
    led.closeLater(() => Promise.resolve(client.close()));
    await writeFile(directory.file("v2.toml"), 'name = "words"\nversion = "2"\nbackend = "mock"\n');
  });

  const create = (dryRun = false): ReturnType<Releases["create"]> =>
    client.releases.create({
      ...{ plugin: directory.file("v2.toml"), stages: ["10%", "50%"], maxWorse: "5%" },
      ...{ wait: true, dryRun },
    });

  async function refusalOf(call: Promise<unknown>): Promise<string> {
    const error: unknown = await call.catch((reason: unknown) => reason);
    return error instanceof RolloutError ? error.code : "none";
  }

  it("begin, are shown, and do what a person decides, once", async () => {
    const { releases } = client;
    expect(await refusalOf(releases.get())).to.equal("release_unknown");
    expect(await create(true)).to.include({ release: undefined, itemsLeft: 1, candidateVersion: "2" });
    expect(await releases.list()).to.deep.equal([]);
    const { release = "", detects } = await create();
    expect(detects).to.be.an("object");
    expect(await releases.get()).to.deep.include({ release, state: "rolling", stage: 1 });
    expect(await refusalOf(create())).to.equal("release_not_over");
    for (let times = 0; times < 2; times++)
      expect(await releases.pause("lunch")).to.include({ state: "held", reason: "lunch" });
    for (let times = 0; times < 2; times++) expect((await releases.resume()).state).to.equal("rolling");
    for (let times = 0; times < 2; times++) expect((await releases.promote({ stage: 1 })).stage).to.equal(2);
    const aborted = await releases.abort("its answers are too long", release);
    expect(aborted.state).to.equal("aborted");
    expect(aborted.stages.map(({ phase }) => phase)).to.deep.equal(["promoted", "abandoned", "abandoned"]);
    expect((await releases.abort()).state).to.equal("aborted");
    expect(await refusalOf(releases.resume())).to.equal("release_over");
    const { release: second = "" } = await create();
    await releases.promote();
    expect((await releases.promote()).state, "all items have it").to.equal("completed");
    expect(await refusalOf(releases.abort())).to.equal("release_completed");
    const all = await releases.list();
    expect(all.map((one) => [one.release, one.state])).to.deep.equal([
      [second, "completed"],
      [release, "aborted"],
    ]);
  });

  it("are begun and followed as the page says", async () => {
    const blocks = blocksOfFile("docs/library.md").map(({ text }) => text);
    const example = blocks.find((text) => text.includes("client.releases.create")) ?? "";
    const program = example.replace('"v2.toml"', JSON.stringify(directory.file("v2.toml")));
    await writeFile(
      directory.file("example.mjs"),
      `export default async (client, console) => {\n${program}\n};\n`,
    );
    const { default: run } = (await import(directory.file("example.mjs"))) as { readonly default: Example };
    const said: string[] = [];
    const ended = run(client, { log: (...words) => void said.push(words.join(" ")) });
    await eventually("it rolls", () => said.some((line) => line.startsWith("rolling")));
    const { release } = await client.releases.get();
    await client.releases.abort("lunch");
    await ended;
    expect([said[0], said.at(-1)]).to.deep.equal([`release ${release} of 1 items`, "aborted lunch"]);
  });
});
