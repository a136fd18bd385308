// The walk of docs/actors.md, as a newcomer takes it: its files are those of the page, its commands are given in their order, and what it says that
// they print is looked for.
import { writeFileSync } from "node:fs";
import { expect } from "chai";
import { blocksOfFile } from "./document-blocks.ts";
import type { Block } from "./document-blocks.ts";
import { withCluster } from "../support/cluster.ts";
import type { Cluster } from "../support/cluster.ts";

const LINES_MAX = 40;
const PAGE = "docs/actors.md";

const WALK = "a step of the walk";

async function take(cluster: Cluster, command: string): Promise<string> {
  const words = command.match(/'[^']*'|\S+/g)?.map((word) => word.replaceAll("'", "")) ?? [];
  const { code, stdout, stderr } = await cluster.run(...words.slice(1));
  return `${stdout}${stderr}(${code})`;
}

/** As it stands in the page: one more member of what `defineActor` takes. */
function withMigration(source: string, blocks: readonly Block[]): string {
  const [member = ""] = blocks.flatMap(({ text }) => (text.startsWith("migrations:") ? [text.trim()] : []));
  expect(member).to.not.equal("");
  return source.replace("defineActor({", `defineActor({ ${member}`);
}

describe("the page about actors", () => {
  it(`leads from an empty directory to an order that is shipped by a second version, in ${LINES_MAX} lines`, async () => {
    const blocks = blocksOfFile(PAGE);
    const fileOf = (name: string): string => blocks.find(({ file }) => file === name)?.text ?? "";
    expect(fileOf("order.ts").trimEnd().split("\n").length).to.be.at.most(LINES_MAX);
    expect(fileOf("order-2.ts")).to.equal(fileOf("order.ts").replaceAll("paid", "packed"));
    await withCluster({}, async (cluster) => {
      for (const { file, text } of blocks) if (file !== undefined) writeFileSync(cluster.file(file), text);
      await cluster.startCoordinator();
      const first = await cluster.startWorker({ args: ["--plugin", "order.toml"] });
      let linesSeen = 0;
      for (const [at, block] of blocks.entries()) {
        if (block.notRun?.startsWith(WALK) !== true) continue;
        let said = "";
        for (const line of block.text.trim().split("\n")) said += await take(cluster, line);
        const printed = blocks[at + 1];
        for (const line of printed?.language === "text" ? printed.text.trim().split("\n") : []) {
          expect(onOneSpace(said), block.at).to.include(onOneSpace(line));
          linesSeen++;
        }
        if (!block.text.includes("history")) continue;
        await first.kill();
        await cluster.startWorker({ args: ["--plugin", "order.toml"] });
      }
      expect(linesSeen, "lines that the page says are printed").to.be.above(0);
      writeFileSync(cluster.file("order-2.ts"), withMigration(fileOf("order-2.ts"), blocks));
      expect(await take(cluster, "rollout actor check --plugin order-2.toml")).to.include(
        "All 1 go on with this code.",
      );
      await cluster.startWorker({ args: ["--plugin", "order-2.toml"] });
      const ship = `rollout actor send order/17 '{"type":"ship"}' --plugin order-2.toml --wait shipped`;
      expect(await take(cluster, ship)).to.include("actor order/17: shipped (done), after 3 events");
    });
  });
});

function onOneSpace(text: string): string {
  return text.replaceAll(/ +/g, " ").trim();
}
