// Pages of a run over real HTTP, and its real coordinator over mutual TLS: the coordinator is asked once for all of them.
import { writeFile } from "node:fs/promises";
import { createClient } from "@connectrpc/connect";
import { expect } from "chai";
import { systemClock } from "../../../src/base/clock.ts";
import { newUlid } from "../../../src/base/ids.ts";
import { systemRandom } from "../../../src/base/random.ts";
import { createRelease, steerRelease } from "../../../src/client/releases.ts";
import { InspectedRun } from "../../../src/compose/inspected-run.ts";
import { RolloutClient } from "../../../src/compose/rollout-client.ts";
import { loadConfig } from "../../../src/config/load.ts";
import { releaseOfFlags } from "../../../src/config/release-file.ts";
import type { ClientConfig } from "../../../src/config/resolve.ts";
import { Sight } from "../../../src/coordinator/sight/sight.ts";
import { ReleaseService } from "../../../src/gen/rollout/v1/release_pb.ts";
import { Hub } from "../../../src/inspector/hub.ts";
import { TOPICS } from "../../../src/observe/events.ts";
import { silentLogger } from "../../../src/observe/log.ts";
import { newIdentity } from "../../support/certificates.ts";
import { eventually } from "../../support/eventually.ts";
import { useLedCluster } from "../../support/led-cluster.ts";
import { startPageRig } from "../../support/page-rig.ts";
import type { FeedReader, PageRig } from "../../support/page-rig.ts";
import { writeCredentials } from "../../support/real-authority.ts";
import { useTemporaryDirectory } from "../../support/temporary-directory.ts";

const PAGES = 1_000;

/** A sight that counts who looks. */
class CountedSight extends Sight {
  streams = 0;

  override follow(): ReturnType<Sight["follow"]> {
    this.streams++;
    return super.follow();
  }
}

describe("the pages of a run", () => {
  const directory = useTemporaryDirectory();
  let sight: CountedSight;
  const led = useLedCluster(() => ({ sight: (sight = new CountedSight(systemClock)) }));

  /** As the command has it. */
  async function load(): Promise<ClientConfig> {
    const { runId, ca, server } = led.listening;
    const words = await writeCredentials(
      directory.file("tls"),
      await ca.issue(newIdentity(runId, "operator")),
    );
    const flags: Record<string, string> = { "coordinator-addr": server.address };
    for (let at = 0; at < words.length; at += 2) flags[words[at]?.slice(2) ?? ""] = words[at + 1] ?? "";
    const file = directory.file("rollout.toml");
    await writeFile(file, `run_id = "${runId}"\n`);
    return loadConfig("operator", {
      ...{ file, environment: {}, flags, workingDirectory: directory.path, topics: TOPICS },
    });
  }

  async function open(): Promise<PageRig> {
    const source = new InspectedRun({
      load,
      open: (config) => RolloutClient.open(config, silentLogger),
      line: (...words) => words.join(" "),
    });
    const hub = new Hub({ source, clock: systemClock, random: systemRandom, log: silentLogger });
    const rig = await startPageRig(hub, { operator: source });
    led.closeLater(async () => {
      await rig.close();
      source.close();
    });
    return rig;
  }

  const paused = ({ news }: FeedReader): boolean =>
    news.some((each) => each.kind === "steps" && each.steps.some(({ event }) => event === "run.paused"));

  it(`are ${PAGES}, and cost the coordinator one stream; each is told each step`, async () => {
    const rig = await open();
    const first = await rig.follow();
    await eventually("the coordinator answers", () => first.of("status").length > 0);
    const others = await Promise.all(Array.from({ length: PAGES - 1 }, () => rig.follow()));
    const pages = [first, ...others];
    await eventually("all are there", () => rig.feed.readers === PAGES);
    await led.operator.run.pause({ reason: "lunch" });
    await eventually("each was told the step", () => pages.every(paused));
    expect(sight.streams).to.equal(1);
    for (const page of pages) page.leave();
    await eventually("all have left", () => rig.feed.readers === 0);
  });

  it("are told of the run's release, and how it has ended", async () => {
    const { run, transport } = led.operator;
    const [taskDigest, submissionId] = [Buffer.alloc(32, 1), Buffer.alloc(16, 2)];
    const items = [{ payload: Buffer.from("1") }];
    await run.submit({ submissionId, batchNumber: 1n, taskDigest, plugin: "words", items });
    const rig = await open();
    const page = await rig.follow();
    await eventually("the coordinator answers", () => page.of("status").length > 0);
    expect(page.of("release"), "there is none").to.deep.equal([]);
    const calls = createClient(ReleaseService, transport);
    const { spec } = releaseOfFlags({ plugin: "v2.toml", stages: "50%", maxWorse: "5%" }, directory.path);
    const candidate = { name: "words", version: "2", digest: Buffer.alloc(32, 8) };
    const id = newUlid(systemClock, systemRandom);
    await createRelease(calls, { id, spec, candidate, wait: true, dryRun: false });
    await eventually("the release", () => page.of("release").at(-1)?.release?.state === "rolling");
    const { release, points } = page.of("release").at(-1) ?? {};
    expect(release?.stages.map(({ phase, share }) => [phase, share])).to.deep.equal([
      ["active", "50%"],
      ["waiting", "100%"],
    ]);
    expect([release?.metrics.map(({ metric }) => metric), points?.length]).to.deep.equal([["errors"], 1]);
    await steerRelease(calls, "abort", { id, reason: "lunch" });
    await eventually("its end", () => page.of("release").at(-1)?.release?.state === "aborted");
  });

  it("go on with the next coordinator, whose course and steps they are told", async () => {
    const rig = await open();
    const page = await rig.follow();
    await eventually("the coordinator answers", () => page.of("link").at(-1)?.connected === true);
    await led.restart();
    await led.operator.run.pause({ reason: "lunch" });
    await eventually("the step is told", () => paused(page));
    expect(page.of("link").map(({ connected }) => connected)).to.include.members([true, false]);
    await eventually("it is connected", () => page.of("link").at(-1)?.connected === true);
    expect(page.of("history").filter(({ anew }) => anew)).to.have.length.at.least(2);
    expect(page.of("events").flatMap(({ events }) => events.map(({ words }) => words))).to.include(
      "the run is paused: lunch",
    );
  });
});
